"""Suspects run alone, and what that costs the others."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from penstock.work import App
from penstock.work.patience import Patience
from penstock.work.running.gate import Gate
from tests.support.work.waiting import SECONDS_MAX, wait_until


def test_a_suspect_runs_alone() -> None:
    gate = Gate(Patience(first_seconds=0))
    assert gate.enter(2, 0)
    assert not gate.be_alone()
    gate.leave(1)
    gate.leave(1)
    assert gate.be_alone()
    assert not gate.enter(1, 0)
    assert not gate.be_alone()
    gate.leave(1)
    gate.share()
    assert gate.enter(1, 0)


def test_a_worker_that_stops_takes_no_suspects() -> None:
    gate = Gate(Patience(first_seconds=SECONDS_MAX))
    assert gate.enter(1, 0)
    waits = ThreadPoolExecutor(1)
    alone = waits.submit(gate.be_alone)
    gate.stop()
    assert not alone.result()
    gate.leave(1)
    assert not gate.be_alone()
    waits.shutdown()


def test_waits_in_vain_get_longer_and_take_a_tenth_of_the_time() -> None:
    patience = Patience()
    now = 0.0
    waits = []
    for _ in range(7):
        assert patience.begins_in(now) == 0
        waits.append(patience.seconds)
        now += patience.seconds
        patience.in_vain(now)
        assert patience.begins_in(now) == 9 * waits[-1]
        now += 9 * waits[-1]
    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_a_suspect_that_waits_for_a_long_job_does_not_stop_the_others() -> None:
    app = App("memory:", group="g")
    finish = threading.Event()
    ran: list[int] = []

    @app.on("jobs", lease=300)
    def job(number: int) -> None:
        ran.append(number)
        if number == 1:
            finish.wait(SECONDS_MAX)

    app.backend.ask("XGROUP", "CREATE", "jobs", "g", "0", "MKSTREAM")
    job.send(0)
    keys = ["jobs", "jobs:dead", "jobs:delayed"]
    app.backend.work("TAKE", keys, ["g", "dies", 1, 8, 1, "ANY"])  # and dies
    job.send(1)
    worker = app.worker()
    worker._gate = Gate(Patience(first_seconds=0.02))
    worker.start()
    for number in range(2, 30):
        wait_until(lambda: number - 1 in ran)  # noqa: B023
        job.send(number)
    wait_until(lambda: len(ran) == 29)
    assert 0 not in ran
    finish.set()
    wait_until(lambda: 0 in ran)
    assert worker.stop()
    app.close()
