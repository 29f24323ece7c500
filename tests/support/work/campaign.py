"""A campaign: workers run the jobs of jobs.py while they and the server are killed and stopped."""

from __future__ import annotations

import itertools
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

import penstock
from penstock.errors import CommandError, ConnectionLost
from penstock.work import App
from tests.support.servers.penstock_server import penstock_command
from tests.support.servers.redis_server import client_without_retries, free_port
from tests.support.work import jobs
from tests.support.work.backends import PROGRAMS

START_SECONDS_MAX = 60.0
SECONDS_MAX_PER_1000 = 120.0
WORKERS = 2


@dataclass
class Attempt:
    """One attempt, from the lines that it wrote."""

    number: int
    key: int
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
    stops: list[tuple[int, float, float]] = field(default_factory=list)  # pid, from, to
    _sent: int = 0
    _server: subprocess.Popen[bytes] | None = None
    _workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(self) -> None:
        """Send half of it, run it under kills while the other half is sent, and stop in order."""
        self.port = free_port()
        with sqlite3.connect(self.folder / "effects.db") as database:
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
            self._end_server()
            raise

    def close(self) -> None:
        self._end_server()

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
        with (self.folder / log).open("ab") as output:
            return subprocess.Popen(
                command,
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
        module = [sys.executable, "-m", "tests.support.work.jobs"]
        return self._begin(
            [*module, self._where(), str(self.folder), str(self.port)], "workers.log"
        )

    def _send_half(self) -> None:
        embedded = self.name == "embedded"
        with penstock.open(self._where()) if embedded else _client(self.port) as to:
            pipe = to.pipeline(transaction=False)
            self._sent = self.entries // 2
            for number in range(self._sent):
                data = json.dumps(jobs.payload_of(number))
                pipe.xadd(jobs.STREAMS[number % 2], {"data": data})
                if number % 1000 == 999:
                    pipe.execute()
            pipe.execute()

    def _send_some(self, app: App) -> None:
        """Send a few of the other half. A lost reply does no harm: each has a name that is used once."""
        last = min(self.entries, self._sent + max(20, self.entries // 100))
        while self._sent < last:
            handler = app.handlers[jobs.STREAMS[self._sent % 2]]
            try:
                handler.send(jobs.payload_of(self._sent), dedup=str(self._sent))
            except (CommandError, ConnectionLost):
                return  # the server was killed
            self._sent += 1

    # --- Disturbing --------------------------------------------------------------------------------

    def _disturb_until_done(self) -> None:
        deadline = time.monotonic() + SECONDS_MAX_PER_1000 * (1 + self.entries / 1000)
        next_kill = time.monotonic() + 1
        last = max(3, self.entries // 400)  # then they may finish
        app = jobs.make_app(f"redis://127.0.0.1:{self.port}", self.folder)
        while self._sent < self.entries or not self._is_done():
            self._send_some(app)
            assert time.monotonic() < deadline, f"not done: {self.left()}"
            for at, worker in enumerate(self._workers):
                if worker.poll() is not None:
                    self._workers[at] = self._start_worker()
            if time.monotonic() >= next_kill and sum(self.kills.values()) < last:
                self._disturb()
                next_kill = time.monotonic() + 1 + self.dice.random() * 2
            time.sleep(0.05)
        app.close()

    def _disturb(self) -> None:
        servers = [] if self._server is None else ["server"]
        what = self.dice.choice(["worker", "worker", "stop", *servers])
        worker = self.dice.choice(self._workers)
        self.kills[what] += 1
        if what == "worker":
            worker.kill()
        elif what == "server":
            self._end_server()
            self._start_server()
        else:
            begin = time.time()
            worker.send_signal(signal.SIGSTOP)
            time.sleep(2.5 * jobs.LEASE)
            worker.send_signal(signal.SIGCONT)
            self.stops.append((worker.pid, begin, time.time()))

    def left(self) -> dict[str, Any]:
        """What is not settled, for a failure."""
        with _client(self.port) as client:
            return {name: client.xinfo_groups(name) for name in jobs.STREAMS}

    def _is_done(self) -> bool:
        try:
            with _client(self.port) as client:
                infos = [client.xinfo_groups(name) for name in jobs.STREAMS]
        except redis.RedisError:
            return False
        ended = [info and info[0]["pending"] == 0 and info[0]["lag"] == 0 for info in infos]
        return all(ended)

    # --- Checking ----------------------------------------------------------------------------------

    def check(self) -> dict[str, int]:
        """Every promise, from what was left behind; returns some counts."""
        found = self._data()
        poison = {number for number in range(self.entries) if jobs.is_poison(number)}
        healthy = set(range(self.entries)) - poison
        receipts = Counter(found["receipts"])
        assert set(receipts) == healthy, "receipts of exactly the healthy entries"
        assert set(receipts.values()) <= {1}, "one receipt for each"
        assert sorted(found["dead"]) == sorted(poison), "dead are the poison entries, and once"
        with sqlite3.connect(self.folder / "effects.db") as database:
            effects = Counter(row[0] for row in database.execute("SELECT number FROM effects"))
        assert set(effects) == healthy
        assert set(effects.values()) <= {1}, "effects through once happen once"
        attempts = self._attempts()
        begun = Counter(one.number for one in attempts)
        assert all(count <= jobs.ATTEMPTS for count in begun.values()), "never beyond the limit"
        # A kill between a take and the first line of an attempt leaves one attempt unseen.
        unseen = sum(self.kills.values())
        assert sum(jobs.ATTEMPTS - begun[number] for number in poison) <= unseen
        assert found["pending"] == 0
        self._check_order(attempts)
        return {"attempts": len(attempts), "entries": self.entries, **self.kills}

    def _attempts(self) -> list[Attempt]:
        open_: dict[tuple[int, int, int], Attempt] = {}
        found: list[Attempt] = []
        for line in (self.folder / "attempts").read_text().splitlines():
            what, *words, when = line.split()
            number, key, attempt, pid = map(int, words)
            if what == "begin":
                made = Attempt(number, key, attempt, pid, float(when))
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
            if one.number % 2 and one.end is not None and not self._was_stopped(one):
                by_key[one.key].append(one)
        for ended in by_key.values():
            ended.sort(key=lambda one: one.begin)
            for before, after in itertools.pairwise(ended):
                assert before.end is not None
                assert before.end <= after.begin, f"overlap: {before} {after}"
                assert before.number <= after.number, f"overtaken: {before} {after}"

    def _was_stopped(self, one: Attempt) -> bool:
        """Tell whether the process was stopped, or stalled by a machine under load, for about a lease."""
        took = 0.0 if one.end is None else one.end - one.begin
        if took > jobs.LEASE / 2 and not jobs.is_long(one.number):
            return True
        return any(
            one.pid == pid and one.begin <= to and (one.end or to) >= since
            for pid, since, to in self.stops
        )

    def _data(self) -> dict[str, Any]:
        if self.name == "embedded":
            with penstock.open(self.folder / "data") as database:
                return _data_of(database)
        with _client(self.port) as client:
            return _data_of(client)


def _client(port: int) -> Any:
    return client_without_retries(port)


def _data_of(client: Any) -> dict[str, Any]:
    dead = [entry for name in jobs.STREAMS for entry in client.xrange(f"{name}:dead")]
    return {
        "receipts": [int(fields[b"data"]) for _, fields in client.xrange("receipts")],
        "dead": [json.loads(fields[b"data"])["number"] for _, fields in dead],
        "pending": sum(client.xpending(name, jobs.GROUP)["pending"] for name in jobs.STREAMS),
    }
