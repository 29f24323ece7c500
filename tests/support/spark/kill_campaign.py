"""A pipeline with every kind of target whose processes are killed, and what must be there afterwards.

stream numbers     n = 0, 1, 2 ... at one entry every STEP_MS
bronze             every entry
silver, a table    even numbers
stream odd         the others
gold, a stream,    windows of one minute with the count and the sum of the even numbers
and a table
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import redis

from penstock.spark.lake.formats import PARQUET, TablePlace
from tests.support.spark import readers, tables
from tests.support.spark.databases import Database, PostgresServer
from tests.support.spark.pipeline_process import PipelineProcess

START_MS = 1_714_564_800_000
STEP_MS = 100
MINUTE_MS = 60_000
PIPELINED = 1_000

PIPELINE = """
[source]
url = "${{PENSTOCK_URL}}"
stream = "numbers"
group = "lake"
max_entries = {batch}

[schema]
n = "bigint"

[valid]
even = "n % 2 = 0"

[archive]
path = "lake"
format = "{form}"

[reject]
stream = "odd"

[[aggregate]]
name = "minute"
window = "1 minute"
watermark = "1 minute"
measures = {{ number = "count(*)", total = "sum(n)" }}
stream = "minutes"
"""


class Server(Protocol):
    """A server that can be killed and started again, on a new port."""

    port: int

    def start(self) -> None: ...
    def kill(self) -> None: ...


@dataclass
class KillCampaign:
    """One pipeline, its servers and its entries. `postgres` is killed, too, if it is given."""

    seed: int
    dice: random.Random
    folder: Path
    server: Server
    form: str
    batch: int
    master: str
    database: Database | None = None
    postgres: PostgresServer | None = None
    ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        text = PIPELINE.format(batch=self.batch, form=self.form)
        if self.database is not None:
            text += self.database.section("evens")
            text += self.database.section("minutes", "totals", "minute")
        self.file.write_text(text)

    @property
    def file(self) -> Path:
        return self.folder / "numbers.toml"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.server.port}"

    def add(self, count: int) -> None:
        """Add the next numbers."""
        with redis.Redis(port=self.server.port) as client:
            end = len(self.ids) + count
            while len(self.ids) < end:
                with client.pipeline(transaction=False) as pipeline:
                    for number in range(len(self.ids), min(end, len(self.ids) + PIPELINED)):
                        pipeline.xadd(
                            "numbers", {"n": number}, id=f"{START_MS + number * STEP_MS}-0"
                        )
                    self.ids += [one.decode() for one in pipeline.execute()]

    def start(self, *words: str) -> PipelineProcess:
        return PipelineProcess(self.file, self.url, "--master", self.master, *words)

    def kill(self, victims: Iterable[str], first: int = 0) -> None:
        """Run the pipeline, and kill each victim at a random moment.

        With `first`, the first one is killed when the run has made some files, at most `first`.
        """
        run = self.start()
        try:
            for victim in victims:
                if first:
                    self._wait_for_files(run, self.dice.randint(1, first))
                    first = 0
                else:
                    run.wait_for_batches(len(run.batches) + self.dice.randint(1, 6))
                    time.sleep(self.dice.random())  # into the middle of a batch
                if self._end(run, victim):
                    run = self.start()
            run.wait_for_batches(len(run.batches) + 1)
        finally:
            run.kill()

    def finish(self) -> None:
        """Run it to the end of the stream."""
        last = self.start("--once")
        assert last.wait() == 0, last.log.read_text()[-3000:]

    def _end(self, run: PipelineProcess, victim: str) -> bool:
        """Kill a victim. Returns whether the run has ended."""
        if victim == "executor" and (executors := run.executors()):
            with suppress(ProcessLookupError):
                os.kill(self.dice.choice(executors), signal.SIGKILL)
            return False
        if victim == "server":
            self.server.kill()
            assert run.wait() == 1, run.log.read_text()[-3000:]
            self.server.start()
        elif victim == "database" and self.postgres is not None:
            self.postgres.kill()
            self.add(2)  # without a row to write, the run would not notice
            assert run.wait() == 1, run.log.read_text()[-3000:]
            self.postgres.start()
        else:
            run.kill()
        return True

    def _wait_for_files(self, run: PipelineProcess, more: int) -> None:
        lake = self.folder / "lake"
        end = time.monotonic() + 300
        before = _files_in(lake)
        while len(_files_in(lake) - before) < more and not run.has_ended:
            assert time.monotonic() < end, run.log.read_text()[-3000:]
            time.sleep(0.02)

    # --- What must be there ------------------------------------------------------------------------

    def check(self) -> None:
        """Check that every row is in each target once, by all readers."""
        told = f"PENSTOCK_SEED={self.seed}"
        with redis.Redis(port=self.server.port) as client:
            odd = [fields[b"_source_id"].decode() for _, fields in client.xrange("odd")]
            minutes = [int(fields[b"total"]) for _, fields in client.xrange("minutes")]
            (group,) = client.xinfo_groups("numbers")
        assert differences(self.column("bronze", "_id"), self.ids) == [], told
        assert differences(self.column("silver", "_id"), self.ids[::2]) == [], told
        assert differences(odd, self.ids[1::2]) == [], told
        assert (group["pending"], group["lag"]) == (0, 0)
        totals = self.closed_windows()
        assert differences(self.column("minute", "total"), totals) == [], told
        assert differences(minutes, totals) == [], told
        if self.database is not None:
            found = self.database.ask("select _id from evens")
            assert differences([one for (one,) in found], self.ids[::2]) == [], told
            found = self.database.ask("select total from minutes")
            assert differences([int(one) for (one,) in found], totals) == [], told
            assert not [one for one in self.database.tables() if "staging" in one]

    def closed_windows(self) -> list[int]:
        """The sums of the windows that have closed."""
        evens = range(0, len(self.ids), 2)
        last_ms = START_MS + evens[-1] * STEP_MS
        totals: Counter[int] = Counter()
        for number in evens:
            end_ms = (START_MS + number * STEP_MS) // MINUTE_MS * MINUTE_MS + MINUTE_MS
            if end_ms <= last_ms - MINUTE_MS:
                totals[end_ms] += number
        assert len(set(totals.values())) == len(totals), "a sum stands for one window"
        return list(totals.values())

    def column(self, name: str, column: str) -> list[Any]:
        """A column of a table. Checks that DuckDB, polars and pandas agree."""
        lake = self.folder / "lake"
        table = lake / ("gold" if name == "minute" else "") / name
        if self.form == PARQUET:
            read = (readers.by_duckdb, readers.by_polars, readers.by_pandas)
            found = [Counter(row[column] for row in by(table, [column])) for by in read]
        else:
            place = TablePlace(str(table), self.form, name, str(lake))
            others = (tables.by_duckdb, tables.by_polars, tables.by_pandas)
            found = [by(place, column) for by in others]
        assert found[0] == found[1] == found[2], f"readers of {name} differ"
        return list(found[0].elements())


def _files_in(folder: Path) -> set[str]:
    """All files, though directories may vanish meanwhile: rglob would fail then."""
    return {os.path.join(above, name) for above, _, names in os.walk(folder) for name in names}  # noqa: PTH118


def differences(found: Sequence[Any], expected: Sequence[Any]) -> list[tuple[Any, int]]:
    """The first few values that do not appear exactly once, with their counts."""
    counts = Counter(found)
    counts.subtract(expected)
    return [(one, count + 1) for one, count in counts.items() if count][:5]
