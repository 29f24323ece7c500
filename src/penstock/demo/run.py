"""Runs the steps of the demonstration.

1. Start a durable server in a new directory.
2. Producers send orders while the pipeline of orders.toml reads them.
3. Kill the pipeline (driver, Java and workers) when a part of the orders is archived.
4. Start it again; it processes the rest.
5. Check the accounts.
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
    """The settings of a run."""

    directory: Path
    orders: int
    producers: int
    seed: int

    @property
    def lake(self) -> Path:
        """The directory of the tables."""
        return self.directory / "lake"

    def shares(self) -> list[Share]:
        """The share of each producer."""
        return [Share(self.seed, n, self.producers, self.orders) for n in range(self.producers)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run."""

    accounts: Accounts
    sent: Tally
    seconds: float
    killed_at: int


class Watcher:
    """Shows progress: `step` announces a step, `count` adds rows to an output."""

    def __init__(self, step: Callable[[str], None], count: Callable[[str, int], None]) -> None:
        self.step = step
        self.count = count


def run_demo(plan: Plan, watcher: Watcher) -> Outcome:
    """Run all steps. Raises: PenstockError if one fails."""
    began = time.monotonic()
    file = plan.directory / FILE
    file.write_text(files("penstock.demo").joinpath(FILE).read_text())
    watcher.step(f"starting a durable server, data in {plan.directory / 'data'}")
    with running_server(plan.directory) as url:
        first = PipelineRun(file, url, once=False)
        producing = Producing(url, plan, watcher, on_failure=first.kill)
        producing.start()
        watcher.step(
            f"{plan.producers} producers send {plan.orders:,} orders while the pipeline reads them"
        )
        killed_at = run_and_kill(first, producing, plan, watcher)
        sent = producing.result()
        watcher.step("restarting the pipeline: it continues from its checkpoint")
        again = PipelineRun(file, url, once=True)
        try:
            for report in again.reports():
                watcher.count(report["output"], report["rows"])
            again.finish()
        finally:
            again.kill()
        watcher.step("checking the accounts")
        with redis.Redis.from_url(url) as client:
            names = Names(STREAM, GROUP, REJECTS, GOLD_STREAM, plan.lake, AGGREGATE)
            accounts = settle(client, names, sent)
    return Outcome(accounts, sent, time.monotonic() - began, killed_at)


def run_and_kill(first: PipelineRun, producing: Producing, plan: Plan, watcher: Watcher) -> int:
    """Kill the pipeline once a part of the orders is archived. Returns how many were."""
    archived = 0
    try:
        for report in first.reports():
            watcher.count(report["output"], report["rows"])
            if report["output"] == "bronze":
                archived += report["rows"]
            if archived >= plan.orders * KILL_SHARE:
                watcher.step(f"killing the pipeline (kill -9) with {archived:,} orders archived")
                return archived
    finally:
        first.kill()
    producing.check()  # a producer that failed has ended the pipeline
    first.finish()
    return archived


class Producing(threading.Thread):
    """The thread of the producers. Calls `on_failure` if a producer fails."""

    def __init__(
        self, url: str, plan: Plan, watcher: Watcher, on_failure: Callable[[], None]
    ) -> None:
        super().__init__(name="producers", daemon=True)
        self._on_failure = on_failure
        self._work = (url, STREAM, plan.shares(), lambda sent: watcher.count("produced", sent))
        self._sent: Tally | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        """Send all orders."""
        try:
            self._sent = produce_all(*self._work)
        except Exception as error:  # noqa: BLE001 (raised again in the thread that waits)
            self._error = error
            self._on_failure()

    def check(self) -> None:
        """Raises: the error of a producer, if one failed."""
        if self._error is not None:
            raise self._error

    def result(self) -> Tally:
        """Wait for the producers. Raises: the error of a producer."""
        self.join()
        self.check()
        assert self._sent is not None
        return self._sent
