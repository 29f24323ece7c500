"""Workers in threads and processes, on real time: leases, stops, failures of the server, child processes."""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from penstock.work import App, Message, per_second
from penstock.work.running import lane
from penstock.work.running.bell import SECONDS_MAX as SECONDS_MAX_OF_BELL
from penstock.work.running.metrics import MetricsServer, text_of
from tests.support.campaign import seed
from tests.support.servers.penstock_server import running_penstock
from tests.support.work.backends import NAMES, empty_app, running_url
from tests.support.work.faults import LossyBackend
from tests.support.work.waiting import SECONDS_MAX, wait_until


@pytest.fixture(scope="module", params=NAMES)
def where(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each backend."""
    if request.param == "embedded":
        yield "memory:"
        return
    with running_url(request.param) as url:
        yield url


@pytest.fixture
def app(where: str) -> Iterator[App]:
    with empty_app(where) as app:
        yield app


def pending(app: App, stream: str) -> list[Any]:
    """[id, consumer, idle, attempts] of what is not settled."""
    rows: list[Any] = app.backend.ask("XPENDING", stream, "g", "-", "+", 100)
    return rows


def test_everything_runs_and_ends(app: App) -> None:
    """Plain and async functions, retries, order per key, what is sent, batches, rates."""
    ran: list[Any] = []

    @app.on("jobs", attempts=3, backoff=(0.05, 0.1))
    async def job(number: int, msg: Message) -> None:
        if number % 10 == 0 and msg.attempt == 1:
            raise ValueError("not yet")
        msg.send("keyed", {"key": number % 3, "number": number})

    @app.on("keyed", key="key")
    def in_order(payload: dict[str, int]) -> None:
        ran.append(payload)

    @app.on("batch", batch=10, wait=0.05, rate=per_second(1000))
    def together(numbers: list[int], msg: Message) -> None:
        ran.extend(("batch", number) for number in numbers)

    worker = app.worker()
    worker.start()
    for number in range(100):
        job.send(number)
        together.send(number)
    wait_until(lambda: len(ran) == 200)
    assert worker.stop()
    assert [row for stream in ("jobs", "keyed", "batch") for row in pending(app, stream)] == []
    order = {one["number"]: index for index, one in enumerate(ran) if isinstance(one, dict)}
    assert len(order) == 100
    assert 'penstock_work_outcomes_total{stream="jobs",outcome="retry"} 10' in text_of(worker)


def test_delays_and_retries_are_never_early(app: App) -> None:
    begun: list[float] = []

    @app.on("jobs", backoff=(0.4, 0.4))
    def job(number: int) -> None:
        begun.append(time.time())
        if len(begun) == 1:
            raise ValueError("not yet")

    worker = app.worker()
    worker.start()
    sent = time.time()
    job.send(1, delay=0.3)
    wait_until(lambda: len(begun) == 2)
    assert worker.stop()
    assert begun[0] - sent >= 0.299  # the server counts milliseconds
    assert begun[1] - begun[0] >= 0.299  # three quarters of the pause, at least


def test_delays_and_retries_are_less_than_a_second_late(app: App) -> None:
    """On a machine that is busy with other things this needs more than one try."""
    late: list[float] = []

    @app.on("jobs", backoff=(0.2, 0.2))
    def job(due: float, msg: Message) -> None:
        late.append(time.time() - due - 0.2 * (msg.attempt - 1))
        if msg.attempt == 1:
            raise ValueError("not yet")

    def is_soon() -> bool:
        late.clear()
        job.send(time.time() + 0.2, delay=0.2)
        wait_until(lambda: len(late) == 2)
        return max(late) < 1.0

    worker = app.worker()
    worker.start()
    wait_until(is_soon)
    assert worker.stop()


def test_a_key_that_runs_long_or_is_retried_holds_back_no_other(app: App) -> None:
    finish = threading.Event()
    ran: list[int] = []

    @app.on("jobs", key="key", concurrency=2, backoff=(300, 300))
    def job(payload: dict[str, int]) -> None:
        if payload["key"] == 0:
            finish.wait(SECONDS_MAX)
        if payload["key"] == 1:
            raise ValueError("not yet")
        ran.append(payload["number"])

    for number in range(100):
        job.send({"key": number % 10, "number": number})
    worker = app.worker()
    worker.start()
    wait_until(lambda: len(ran) == 80)
    assert all(number % 10 >= 2 for number in ran)
    finish.set()
    wait_until(lambda: len(ran) == 90)
    for key in range(2, 10):
        assert [number for number in ran if number % 10 == key] == list(range(key, 100, 10))
    assert worker.stop()
    assert len(pending(app, "jobs")) == 10  # those of the key that failed


def test_an_async_handler_ends_at_its_timeout(app: App) -> None:
    ran: list[int] = []

    @app.on("jobs", timeout=0.2, attempts=1)
    async def job(number: int) -> None:
        if number == 1:
            await asyncio.sleep(SECONDS_MAX)
        ran.append(number)

    worker = app.worker()
    worker.start()
    for number in range(3):
        job.send(number)
    wait_until(lambda: app.backend.ask("XLEN", "jobs:dead") == 1)
    wait_until(lambda: sorted(ran) == [0, 2])
    assert worker.stop()
    found = app.backend.ask("XRANGE", "jobs:dead", "-", "+")
    [(_, fields)] = found if isinstance(found, list) else found.entries()
    assert b"TimeoutError: after 0.2 s" in fields


def test_a_thread_that_never_returns_holds_back_neither_others_nor_a_stop(app: App) -> None:
    never = threading.Event()
    begun: list[tuple[int, int]] = []

    @app.on("jobs", concurrency=2, lease=0.5)
    def job(number: int, msg: Message) -> None:
        begun.append((number, msg.attempt))
        if msg.attempt == 1 and number == 1:
            never.wait()

    worker = app.worker()
    worker.start()
    for number in range(1, 11):
        job.send(number)
    wait_until(lambda: len(begun) == 10 and len(pending(app, "jobs")) == 1)
    assert not worker.stop(0)
    [row] = pending(app, "jobs")
    assert (row[1], row[3]) == (b"waiting", 1)  # it was given back
    other = app.worker()
    other.start()
    wait_until(lambda: begun[-1] == (1, 2))
    assert other.stop()
    assert sorted(begun) == sorted([(1, 2), *((number, 1) for number in range(1, 11))])
    never.set()


def test_a_rate_holds_for_all_partitions_of_a_worker_together() -> None:
    app = App("memory:", group="g")
    ran: list[int] = []

    @app.on("jobs", key="key", partitions=8, rate=per_second(20))
    def job(payload: dict[str, int]) -> None:
        ran.append(payload["number"])

    for number in range(60):
        job.send({"key": number, "number": number})
    worker = app.worker()
    begin = time.monotonic()
    worker.start()
    wait_until(lambda: len(ran) == 60)
    assert time.monotonic() - begin >= 1.9  # 20 at once, then 20 a second
    assert worker.stop()
    app.close()


@pytest.mark.parametrize("name", ["penstock", "redis"])
def test_a_job_costs_few_commands_and_waiting_costs_none(name: str) -> None:
    with running_url(name) as url:
        app = App(url, group="g")
        ran: list[int] = []

        @app.on("jobs")
        def job(number: int) -> None:
            ran.append(number)

        worker = app.worker()
        worker.start()
        begin = time.monotonic()
        for number in range(20):
            wait_until(lambda: _blocked(app) == 1 and not pending(app, "jobs"))
            job.send(number)
            wait_until(lambda: len(ran) == number + 1)  # noqa: B023
        wait_until(lambda: not pending(app, "jobs"))
        calls = _calls(app)
        seldom = int((time.monotonic() - begin) / SECONDS_MAX_OF_BELL) + 1
        assert worker.stop()
        app.close()
    takes = calls.get("penstock|take", calls.get("evalsha", 0) - 20)  # a script for each settling
    assert calls["xread"] <= 20 + seldom
    assert takes <= 40 + 2 * seldom  # one wakes up, one may find out that there is no more


def _calls(app: App) -> dict[str, int]:
    """How often each command was called."""
    lines = app.backend.ask("INFO", "commandstats").decode().splitlines()
    rows = [line.removeprefix("cmdstat_").split(":calls=") for line in lines if ":calls=" in line]
    return {name: int(rest.partition(",")[0]) for name, rest in rows}


def _blocked(app: App) -> int:
    """The number of clients that wait for an entry."""
    found = re.search(rb"blocked_clients:(\d+)", app.backend.ask("INFO", "clients"))
    return int(found[1]) if found else 0


def test_a_lease_is_renewed_while_a_job_runs_long(app: App) -> None:
    begun: list[int] = []
    finish = threading.Event()

    @app.on("jobs", lease=0.3)
    def job(number: int, msg: Message) -> None:
        begun.append(msg.attempt)
        finish.wait(SECONDS_MAX)

    workers = [app.worker(), app.worker()]
    for worker in workers:
        worker.start()
    job.send(1)
    wait_until(lambda: begun)
    idle = pending(app, "jobs")[0][2]
    # Five renewals: idle times fall back each time.
    for _ in range(5):
        last = idle
        wait_until(lambda: pending(app, "jobs")[0][2] > last)  # noqa: B023
        idle = pending(app, "jobs")[0][2]
        wait_until(lambda: pending(app, "jobs")[0][2] < idle)  # noqa: B023
    finish.set()
    for worker in workers:
        assert worker.stop()
    assert begun == [1]


def test_a_stop_that_takes_too_long_gives_back(app: App) -> None:
    begun = threading.Event()

    @app.on("jobs", concurrency=2)
    async def job(number: int) -> None:
        begun.set()
        await asyncio.sleep(SECONDS_MAX)

    worker = app.worker()
    worker.start()
    job.send(1)
    assert begun.wait(SECONDS_MAX)
    now = threading.Event()
    now.set()
    assert not worker.stop(SECONDS_MAX, now)
    [row] = pending(app, "jobs")
    assert (row[1], row[3]) == (b"waiting", 1)
    taken = app.backend.work(
        "TAKE", ["jobs", "jobs:dead", "jobs:delayed"], ["g", "c", 1000, 8, 1, "ANY"]
    )
    assert taken[0][0][2:] == [2, 0]


def test_a_group_that_is_destroyed_is_created_again(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[int] = []

    @app.on("jobs")
    def job(number: int) -> None:
        ran.append(number)

    worker = app.worker()
    worker.start()
    job.send(1)
    wait_until(lambda: ran == [1])
    app.backend.ask("XGROUP", "DESTROY", "jobs", "g")
    job.send(2)
    wait_until(lambda: 2 in ran)
    assert worker.stop()
    assert "the group is gone: created again from 0" in caplog.text


def test_a_stream_of_another_type_is_refused_at_the_start(app: App) -> None:
    @app.on("jobs")
    def job(number: int) -> None: ...

    app.backend.ask("SET", "jobs", "text")
    with pytest.raises(Exception, match="WRONGTYPE"):
        app.worker().start()


def test_something_sent_to_a_key_of_another_type_fails_the_attempt(app: App) -> None:
    @app.on("jobs", attempts=1)
    def job(number: int, msg: Message) -> None:
        msg.send("text" if number == 1 else "out", number)

    app.backend.ask("SET", "text", "v")
    worker = app.worker()
    worker.start()
    for number in range(5):
        job.send(number)
    wait_until(lambda: app.backend.ask("XLEN", "jobs:dead") == 1)
    wait_until(lambda: app.backend.ask("XLEN", "out") == 4)
    assert worker.stop()
    assert pending(app, "jobs") == []


def test_an_entry_with_very_many_fields_can_die(app: App) -> None:
    ran: list[int] = []

    @app.on("jobs")
    def job(number: int) -> None:
        ran.append(number)

    fields = [piece for number in range(10_000) for piece in (f"name{number}", number)]
    app.backend.ask("XADD", "jobs", "*", *fields)
    worker = app.worker()
    worker.start()
    job.send(5)
    wait_until(lambda: app.backend.ask("XLEN", "jobs:dead") == 1 and ran == [5])
    assert worker.stop()
    assert pending(app, "jobs") == []


def test_a_server_that_vanishes_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[int] = []
    with running_penstock(data=tmp_path) as server:
        app = App(f"redis://127.0.0.1:{server.port}", group="g")

        @app.on("jobs", lease=5)
        def job(number: int) -> None:
            ran.append(number)

        worker = app.worker()
        worker.start()
        job.send(1)
        wait_until(lambda: ran == [1])
        port = server.port
        server.kill()
        wait_until(lambda: "cannot take" in caplog.text)
        server.start("--port", str(port))
        wait_until(lambda: _sends(job))
        wait_until(lambda: 2 in ran)
        assert worker.stop()
        app.close()


def test_jobs_that_end_while_the_server_is_away_for_longer_than_a_lease_are_settled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(lane, "PAUSE_SECONDS_MAX", 0.01)
    go = threading.Event()
    begun: list[int] = []
    with running_penstock(data=tmp_path) as server:
        app = App(f"redis://127.0.0.1:{server.port}", group="g")

        @app.on("jobs", lease=0.3)
        def job(number: int, msg: Message) -> None:
            begun.append(number)
            go.wait(SECONDS_MAX)
            msg.send("out", number)

        worker = app.worker()
        worker.start()
        for number in range(5):
            job.send(number)
        wait_until(lambda: len(begun) == 5)
        port = server.port
        server.kill()
        go.set()
        tries = {"cannot take": 50, "cannot settle": 50, "cannot renew": 5}
        wait_until(lambda: all(caplog.text.count(what) >= n for what, n in tries.items()))
        server.start("--port", str(port))
        wait_until(lambda: _sends(job))
        wait_until(lambda: app.backend.ask("XLEN", "out") >= 6 and not pending(app, "jobs"))
        assert worker.stop()
        found = [int(fields[1]) for _, fields in app.backend.ask("XRANGE", "out", "-", "+")]
        assert sorted(found) == [0, 1, 2, 2, 3, 4]  # once each; _sends sends another 2
        assert app.backend.ask("XLEN", "jobs:dead") == 0
        app.close()


def _sends(job: Any) -> bool:
    """Tell whether the server can be reached again."""
    try:
        job.send(2)
    except Exception:  # noqa: BLE001
        return False
    return True


def test_lost_replies_lose_and_double_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "PAUSE_SECONDS", 0.001)
    app = App("memory:", group="g")

    @app.on("jobs", lease=1, attempts=20, backoff=(0.01, 0.02))
    def job(number: int, msg: Message) -> None:
        if number % 10 == 0 and msg.attempt == 1:
            raise ValueError("not yet")
        msg.send("keyed", {"key": number % 7, "number": number})

    @app.on("keyed", key="key", lease=1, attempts=20)
    def in_order(payload: dict[str, int], msg: Message) -> None:
        msg.send("out", payload)

    lossy = LossyBackend(app.backend, random.Random(seed()))
    app.use(lossy)
    for number in range(150):
        lossy.ask("XADD", "jobs", "*", "data", number)
    worker = app.worker()
    lossy.is_lossy = False  # a worker that loses a reply at its start says so and ends
    worker.start()
    lossy.is_lossy = True
    wait_until(lambda: lossy.ask("XLEN", "out") >= 150 and not pending(app, "keyed"))
    lossy.is_lossy = False
    assert worker.stop()
    assert len(lossy.lost) >= 3
    found = lossy.ask("XRANGE", "out", "-", "+").entries()
    numbers = [json.loads(fields[1])["number"] for _, fields in found]
    assert sorted(numbers) == list(range(150))
    assert lossy.ask("XLEN", "jobs:dead") == lossy.ask("XLEN", "keyed:dead") == 0
    assert pending(app, "jobs") == []
    app.close()


def test_metrics_are_served() -> None:
    app = App("memory:", group="g")

    @app.on("jobs")
    def job(number: int) -> None: ...

    worker = app.worker()
    worker.start()
    job.send(1)
    served = MetricsServer(worker, 0)
    address = f"http://127.0.0.1:{served.port}"
    line = 'penstock_work_outcomes_total{stream="jobs",outcome="ack"} 1'
    wait_until(lambda: line in urlopen(f"{address}/metrics").read().decode().splitlines())
    took = 'penstock_work_attempt_seconds_count{stream="jobs"} 1'
    assert took in urlopen(f"{address}/metrics").read().decode().splitlines()
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"{address}/other")
    assert urlopen(f"{address}/readyz").read() == b"ready\n"
    assert worker.stop()
    with pytest.raises(HTTPError, match="503") as refused:
        urlopen(f"{address}/readyz")
    assert refused.value.read() == b"the worker is stopping\n"
    served.close()
    app.close()
