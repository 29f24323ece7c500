"""A campaign: workers run the jobs of jobs.py while everything around them is killed, stopped and cut off.

    worker    kill -9 of a worker
    child     kill -9 of a child process of a worker
    server    kill -9 of the server, which starts again
    stop      SIGSTOP of a worker for longer than a lease
    replies   commands reach the server, their replies are lost, and the connections end

Half of the entries are there at the start; each disturbance sends a part of the other half.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

import penstock
from penstock.errors import CommandError, ConnectionLost
from penstock.work import App
from tests.support.campaign import SOAK
from tests.support.replication.proxy import FROM_SERVER, Proxy
from tests.support.servers.penstock_server import penstock_command
from tests.support.servers.redis_server import client_without_retries, free_port
from tests.support.work import jobs
from tests.support.work.backends import PROGRAMS

START_SECONDS_MAX = 60.0
SECONDS_MAX_PER_1000 = 120.0
WORKERS = 2
SEND_MAX = 200  # in one go, so that what has died is started again soon
# Each worker that dies has to start again: that is most of the time that a short campaign takes.
DISTURBANCES = 200 if SOAK else 10


@dataclass
class Attempt:
    """One attempt, from the lines that it wrote."""

    number: int
    attempt: int
    pid: int
    begin: float
    end: float | None = None


@dataclass
class Campaign:
    """One backend by name, files in a folder, and the number of entries."""

    name: str
    folder: Path
    entries: int
    dice: random.Random
    port: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    deaths: int = 0  # of workers
    stops: list[tuple[int, float, float]] = field(default_factory=list)  # pid, from, to
    _sent: int = 0
    _delayed: dict[int, float] = field(default_factory=dict)  # when a number was sent for later
    _server: subprocess.Popen[bytes] | None = None
    _workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _proxy: Proxy = field(default_factory=Proxy)

    def run(self) -> None:
        """Send half of it, run it under disturbances while the other half is sent, and stop in order."""
        self.port = self._proxy.target = free_port()
        with sqlite3.connect(self.folder / "effects.db") as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("CREATE TABLE effects (number INTEGER)")
        try:
            self._start_server()
            self._send_half()
            self._workers = [self._start_worker() for _ in range(self._worker_count())]
            self._disturb_until_done()
            for worker in self._workers:
                worker.send_signal(signal.SIGTERM)
            codes = {worker.wait(START_SECONDS_MAX) for worker in self._workers}
            assert codes <= {0, -signal.SIGTERM}, codes  # one may have been starting
        except BaseException:
            for worker in self._workers:
                worker.kill()
            self.close()
            raise

    def close(self) -> None:
        self._end_server()
        self._proxy.__exit__(None, None, None)

    # --- Processes ---------------------------------------------------------------------------------

    def _worker_count(self) -> int:
        return 1 if self.name == "embedded" else WORKERS

    def _where(self) -> str:
        if self.name == "embedded":
            return str(self.folder / "data")
        return f"redis://127.0.0.1:{self.port}"

    def _start_server(self) -> None:
        if self.name == "embedded":
            return
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        path = None if self.name == "penstock" else PROGRAMS[self.name].path_or_none()
        command = penstock_command("serve") if path is None else [path, "--save", ""]
        command += ["--port", str(self.port), "--dir", str(data), "--bind", "127.0.0.1"]
        command += ["--appendonly", "yes", "--appendfsync", "always"]
        self._server = self._begin(command, "server.log")
        self._wait_for_server()

    def _begin(self, command: list[str], log: str) -> subprocess.Popen[bytes]:
        where = {
            "CAMPAIGN_FOLDER": str(self.folder),
            "CAMPAIGN_URL": f"redis://127.0.0.1:{self._proxy.port}",
        }
        with (self.folder / log).open("ab") as output:
            return subprocess.Popen(
                command,
                env=os.environ | where,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _wait_for_server(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                with client_without_retries(self.port) as client:
                    client.ping()
            except redis.RedisError:
                assert time.monotonic() < deadline, "the server does not start"
                time.sleep(0.02)
            else:
                return

    def _end_server(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()

    def _start_worker(self) -> subprocess.Popen[bytes]:
        command = penstock_command("worker", "tests.support.work.jobs:app", "--drain", "20")
        if self.name == "embedded":
            command = [sys.executable, "-m", "tests.support.work.jobs", self._where()]
            command.append(str(self.port))
        return self._begin(command, "workers.log")

    def _send_half(self) -> None:
        embedded = self.name == "embedded"
        with penstock.open(self._where()) if embedded else _client(self.port) as to:
            pipe = to.pipeline(transaction=False)
            self._sent = self.entries // 2
            for number in range(self._sent):
                payload = jobs.payload_of(number)
                stream = jobs.app.handlers[jobs.handler_of(number)].stream_for(payload)
                pipe.xadd(stream, {"data": json.dumps(payload)})
                if number % 1000 == 999:
                    pipe.execute()
            pipe.execute()

    def _send_up_to(self, last: int) -> None:
        """Send a part of the other half. A lost reply does no harm: each has a name that is used once."""
        last = min(last, self._sent + SEND_MAX)
        while self._sent < last:
            number = self._sent
            delay = jobs.DELAY if jobs.is_delayed(number) else 0
            if delay:
                self._delayed.setdefault(number, time.time())
            handler = jobs.app.handlers[jobs.handler_of(number)]
            try:
                handler.send(jobs.payload_of(number), dedup=str(number), delay=delay)
            except (CommandError, ConnectionLost):
                return  # the server was killed
            self._sent += 1

    # --- Disturbing --------------------------------------------------------------------------------

    def _disturb_until_done(self) -> None:
        deadline = time.monotonic() + SECONDS_MAX_PER_1000 * (1 + self.entries / 1000)
        next_kill = time.monotonic() + 1
        half = self.entries // 2
        sender = App(f"redis://127.0.0.1:{self.port}", group=jobs.GROUP)
        jobs.app.use(sender.backend)
        while self._sent < self.entries or not self._is_done():
            kills = sum(self.kills.values())
            part = min(1.0, (kills + 1) / DISTURBANCES)
            self._send_up_to(half + round((self.entries - half) * part))
            assert time.monotonic() < deadline, f"not done: {self.left()}"
            for at, worker in enumerate(self._workers):
                if worker.poll() is not None:
                    self.deaths += 1
                    self._workers[at] = self._start_worker()
            if time.monotonic() >= next_kill and kills < DISTURBANCES:
                self._disturb()
                next_kill = time.monotonic() + 0.5 + self.dice.random()
            time.sleep(0.05)
        jobs.app.use(None)
        sender.close()

    def _disturb(self) -> None:
        servers = [] if self._server is None else ["server", "replies"]
        what = self.dice.choice(["worker", "child", "stop", *servers])
        worker = self.dice.choice(self._workers)
        self.kills[what] += 1
        if what == "worker":
            worker.kill()
        elif what == "child":
            for pid in _children(worker.pid)[:1]:
                with suppress(ProcessLookupError):  # it has just ended
                    os.kill(pid, signal.SIGKILL)
        elif what == "server":
            self._end_server()
            self._start_server()
        elif what == "replies":
            self._proxy.cut(directions=FROM_SERVER)
            time.sleep(0.2 * self.dice.random())
            self._proxy.heal()
        else:
            begin = time.time()
            worker.send_signal(signal.SIGSTOP)
            time.sleep(1.5 * jobs.LEASE)
            worker.send_signal(signal.SIGCONT)
            self.stops.append((worker.pid, begin, time.time()))

    def left(self) -> dict[str, Any]:
        """What is not settled, for a failure."""
        with _client(self.port) as client:
            return {name: client.xinfo_groups(name) for name in jobs.STREAMS}

    def _is_done(self) -> bool:
        try:
            with _client(self.port) as client:
                if any(client.xlen(f"{name}:delayed") for name in jobs.STREAMS):
                    return False
                return all(_has_ended(client, name) for name in jobs.STREAMS)
        except redis.RedisError:
            return False

    # --- Checking ----------------------------------------------------------------------------------

    def check(self) -> dict[str, int]:
        """Every promise, from what was left behind; returns some counts."""
        found = self._data()
        poison = {number for number in range(self.entries) if jobs.is_poison(number)}
        healthy = set(range(self.entries)) - poison
        receipts = Counter(found["receipts"])
        wrong = set(receipts) ^ healthy
        assert not wrong, f"receipts of exactly the healthy entries: {sorted(wrong)[:20]}"
        assert set(receipts.values()) <= {1}, "one receipt for each"
        assert Counter(found["dead"]) == Counter(poison), "dead are the poison entries, and once"
        assert set(found["attempts"]) <= {jobs.ATTEMPTS}, "poison is begun exactly so often"
        with sqlite3.connect(self.folder / "effects.db") as database:
            effects = Counter(row[0] for row in database.execute("SELECT number FROM effects"))
        assert set(effects) == healthy
        assert set(effects.values()) <= {1}, "effects through once happen once"
        attempts = self._attempts()
        begun = Counter(one.number for one in attempts)
        assert all(count <= jobs.ATTEMPTS for count in begun.values()), "never beyond the limit"
        # A death between a take and the first line of an attempt leaves one attempt unseen.
        unseen = sum(self.kills.values()) + self.deaths
        assert sum(jobs.ATTEMPTS - begun[number] for number in poison) <= unseen
        assert found["pending"] == 0
        self._check_order(attempts)
        self._check_times(attempts)
        return {"attempts": len(attempts), "deaths": self.deaths, **self.kills}

    def _attempts(self) -> list[Attempt]:
        open_: dict[tuple[int, int, int], Attempt] = {}
        found: list[Attempt] = []
        for line in (self.folder / "attempts").read_text().splitlines():
            what, *words, when = line.split()
            number, attempt, pid = map(int, words)
            if what == "begin":
                made = Attempt(number, attempt, pid, float(when))
                open_[number, attempt, pid] = made
                found.append(made)
            else:
                open_[number, attempt, pid].end = float(when)
        return found

    def _check_order(self, attempts: list[Attempt]) -> None:
        """Entries of a key: the attempts that ended are disjoint and in order.

        Attempts of a process that was stopped meanwhile had lost their lease: they do not count.
        """
        by_key: dict[int, list[Attempt]] = defaultdict(list)
        for one in attempts:
            if jobs.is_keyed(one.number) and one.end is not None and not self._was_stopped(one):
                by_key[jobs.payload_of(one.number)["key"]].append(one)
        for ended in by_key.values():
            ended.sort(key=lambda one: one.begin)
            for before, after in itertools.pairwise(ended):
                assert before.end is not None
                assert before.end <= after.begin, f"overlap: {before} {after}"
                assert before.number <= after.number, f"overtaken: {before} {after}"

    def _check_times(self, attempts: list[Attempt]) -> None:
        """Neither retries nor delayed entries begin early."""
        by_number: dict[int, list[Attempt]] = defaultdict(list)
        for one in attempts:
            by_number[one.number].append(one)
        for number, at in self._delayed.items():
            first = by_number[number][0]
            assert first.begin >= at + jobs.DELAY - 0.001, f"early: {first}, sent at {at}"
        for number, tried in by_number.items():
            if jobs.fails_first(number) and len(tried) > 1:
                before, after = tried[:2]
                if before.end is not None and not self._was_stopped(before):
                    pause = 0.75 * jobs.BACKOFF[0]
                    assert after.begin >= before.end + pause - 0.001, f"early: {before} {after}"

    def _was_stopped(self, one: Attempt) -> bool:
        """Tell whether the process was stopped, or stalled by a machine under load, for about a lease.

        Until it renews, it does not know that it has lost its leases: what begins then does not count either.
        """
        took = 0.0 if one.end is None else one.end - one.begin
        if took > jobs.LEASE / 2 and not jobs.is_long(one.number):
            return True
        return any(
            one.pid == pid and one.begin <= to + jobs.LEASE and (one.end or to) >= since
            for pid, since, to in self.stops
        )

    def _data(self) -> dict[str, Any]:
        if self.name == "embedded":
            with penstock.open(self.folder / "data") as database:
                return _data_of(database)
        with _client(self.port) as client:
            return _data_of(client)


def _has_ended(client: Any, stream: str) -> bool:
    """Tell whether the group has read and settled everything. Redis 6.2 does not know its lag."""
    groups = client.xinfo_groups(stream)
    last = client.xinfo_stream(stream)["last-generated-id"]
    return any(one["pending"] == 0 and one["last-delivered-id"] == last for one in groups)


def _client(port: int) -> Any:
    return client_without_retries(port)


def _children(pid: int) -> list[int]:
    """The child processes of a worker that run handlers."""
    return [
        int(child)
        for path in Path(f"/proc/{pid}/task").glob("*/children")
        for child in _read(path).split()
        if b"multiprocessing.spawn" in _read(Path(f"/proc/{int(child)}/cmdline"))
    ]


def _read(path: Path) -> bytes:
    """A file of a thread or a process; empty if that has just ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _data_of(client: Any) -> dict[str, Any]:
    dead = [entry for name in jobs.STREAMS for entry in client.xrange(f"{name}:dead")]
    return {
        "receipts": [int(fields[b"data"]) for _, fields in client.xrange("receipts")],
        "dead": [json.loads(fields[b"data"])["number"] for _, fields in dead],
        "attempts": [int(fields[b"_attempts"]) for _, fields in dead],
        "pending": sum(client.xpending(name, jobs.GROUP)["pending"] for name in jobs.STREAMS),
    }
