"""The order of the demonstration.

1. a durable server in a fresh directory;
2. producers send orders, and the pipeline of orders.toml reads them meanwhile;
3. when a part of them is archived the pipeline is killed (SIGKILL: driver, Java and workers);
4. it is started again and works off the rest;
5. the accounts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import redis

from penstock.demo.accounting import Accounts, Names, settle
from penstock.demo.children import PipelineRun, running_server
from penstock.demo.orders import Share, Tally
from penstock.demo.producers import produce_all

FILE = "orders.toml"
STREAM = "orders"
GROUP = "lake"
REJECTS = "orders:rejected"
GOLD_STREAM = "orders:by_minute"
AGGREGATE = "revenue_by_minute"
KILL_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for."""

    directory: Path
    orders: int
    producers: int
    seed: int

    @property
    def lake(self) -> Path:
        """Where the tables are."""
        return self.directory / "lake"

    def shares(self) -> list[Share]:
        """What each producer sends."""
        return [Share(self.seed, n, self.producers, self.orders) for n in range(self.producers)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it."""

    accounts: Accounts
    sent: Tally
    seconds: float
    killed_at: int


class Watcher:
    """Whoever shows how far it is: `step` says what begins, `count` how many rows an output got."""

    def __init__(self, step: Callable[[str], None], count: Callable[[str, int], None]) -> None:
        self.step = step
        self.count = count


def run_demo(plan: Plan, watcher: Watcher) -> Outcome:
    """All of it. Raises: PenstockError if a part of it fails."""
    began = time.monotonic()
    file = plan.directory / FILE
    file.write_text(files("penstock.demo").joinpath(FILE).read_text())
    watcher.step(f"a durable server, its data in {plan.directory / 'data'}")
    with running_server(plan.directory) as url:
        first = PipelineRun(file, url, once=False)
        producing = Producing(url, plan, watcher, on_failure=first.kill)
        producing.start()
        watcher.step(
            f"{plan.producers} producers send {plan.orders:,} orders, the pipeline reads them"
        )
        killed_at = run_and_kill(first, producing, plan, watcher)
        sent = producing.result()
        watcher.step("the pipeline starts again where it stopped")
        again = PipelineRun(file, url, once=True)
        try:
            for report in again.reports():
                watcher.count(report["output"], report["rows"])
            again.finish()
        finally:
            again.kill()
        watcher.step("the accounts")
        with redis.Redis.from_url(url) as client:
            names = Names(STREAM, GROUP, REJECTS, GOLD_STREAM, plan.lake, AGGREGATE)
            accounts = settle(client, names, sent)
    return Outcome(accounts, sent, time.monotonic() - began, killed_at)


def run_and_kill(first: PipelineRun, producing: Producing, plan: Plan, watcher: Watcher) -> int:
    """Let the pipeline run until a part of the orders is archived, and kill it; how many that were."""
    archived = 0
    try:
        for report in first.reports():
            watcher.count(report["output"], report["rows"])
            if report["output"] == "bronze":
                archived += report["rows"]
            if archived >= plan.orders * KILL_SHARE:
                watcher.step(f"kill -9 for the pipeline, with {archived:,} orders archived")
                return archived
    finally:
        first.kill()
    producing.check()  # it may have ended the pipeline, for there was nothing to wait for
    first.finish()
    return archived


class Producing(threading.Thread):
    """The producers, beside the pipeline; `on_failure` is called if one of them cannot go on."""

    def __init__(
        self, url: str, plan: Plan, watcher: Watcher, on_failure: Callable[[], None]
    ) -> None:
        super().__init__(name="producers", daemon=True)
        self._on_failure = on_failure
        self._work = (url, STREAM, plan.shares(), lambda sent: watcher.count("produced", sent))
        self._sent: Tally | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        """Send everything."""
        try:
            self._sent = produce_all(*self._work)
        except Exception as error:  # noqa: BLE001 (it is raised in the thread that waits)
            self._error = error
            self._on_failure()

    def check(self) -> None:
        """Raises: what stopped a producer, if one was."""
        if self._error is not None:
            raise self._error

    def result(self) -> Tally:
        """Wait for the end of it. Raises: what stopped a producer."""
        self.join()
        self.check()
        assert self._sent is not None
        return self._sent
