"""Every row is in each target of a pipeline once, whichever of its processes is killed.

Driver, executors, server and database are killed at random moments.

The targets are tables in all formats, streams of rejects and windows, and tables of PostgreSQL and SQLite. A
failure names its seed; PENSTOCK_SEED repeats the run, as far as the timing of processes can be repeated.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK
from tests.support.campaign import SOAK, cases, cells, seed
from tests.support.servers.durable_redis import running_durable_redis
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import redis_program_or_none

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.lake.formats import DELTA, ICEBERG, PARQUET
from penstock.spark.pipeline.definition.file import load_pipeline
from penstock.spark.pipeline.run import pipeline_session
from tests.support.spark.databases import (
    SQLITE_NATIVE,
    need_databases,
    running_postgres,
    sqlite_database,
)
from tests.support.spark.former_pipeline import run_former
from tests.support.spark.kill_campaign import KillCampaign, Server

ENTRIES = cases(500_000)
BATCHES = 40 if SOAK else 16
POSTGRES, SQLITE = "postgresql", "sqlite"
VICTIMS = ["driver", "executor", "server", "database"]
KILLS = 12 if SOAK else 3
# Executors are processes that can be killed. In `make test`, plain Redis runs without them to save time.
EXECUTORS, THREADS = "local-cluster[2,1,1024]", "local[2]"
FORMER_OUTPUTS = ["bronze", "silver", "reject", "minute", "minute.stream"]
JOINING_FILES_MAX = 30  # about as many are made while the outputs of a former lake join


@dataclass(frozen=True)
class Cell:
    """A cell of the matrix. `is_former`: the lake begins in the layout before the query `main`."""

    server: str
    form: str
    database: str = ""
    is_former: bool = False

    def __str__(self) -> str:
        former = "former" if self.is_former else ""
        return "-".join(filter(None, (self.server, self.form, self.database, former)))


# Cells side by side differ in everything.
CELLS = [
    Cell("penstock", PARQUET, POSTGRES),
    Cell("redis", DELTA, SQLITE),
    Cell("penstock", ICEBERG),
    Cell("redis", PARQUET, is_former=True),
    Cell("penstock", DELTA, POSTGRES),
    Cell("redis", ICEBERG, POSTGRES),
    Cell("penstock", PARQUET, SQLITE, is_former=True),
]


@contextmanager
def durable_server(kind: str, folder: Path) -> Iterator[Server]:
    if kind == "penstock":
        with running_penstock(data=folder) as ours:
            yield ours
        return
    if redis_program_or_none() is None:
        pytest.skip("no redis-server on PATH")
    with running_durable_redis(folder) as theirs:
        yield theirs


@pytest.mark.parametrize("cell", cells(CELLS), ids=str)
def test_every_row_is_in_each_target_once(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    start = seed()
    master = EXECUTORS if SOAK or cell.server == "penstock" else THREADS
    if cell.database:
        need_databases()
    postgres = running_postgres() if cell.database == POSTGRES else nullcontext()
    with durable_server(cell.server, tmp_path / "data") as server, postgres as base:
        database = base.database if base is not None else None
        if cell.database == SQLITE:
            java = os.environ.get("JDK_JAVA_OPTIONS", "")  # it reaches driver and executors
            native = f"-Dorg.sqlite.lib.path={SQLITE_NATIVE}"
            monkeypatch.setenv("JDK_JAVA_OPTIONS", f"{java} {native}")
            database = sqlite_database(tmp_path)
        campaign = KillCampaign(
            seed=start,
            dice=random.Random(f"{start}/{cell}"),
            folder=tmp_path,
            server=server,
            form=cell.form,
            batch=ENTRIES // BATCHES,
            master=master,
            database=database,
            postgres=base,
        )
        if cell.is_former:
            monkeypatch.setenv("PENSTOCK_URL", campaign.url)
            begin_as_former(campaign, request.getfixturevalue("spark"))
        campaign.add(ENTRIES - len(campaign.ids))
        victims = VICTIMS if base is not None else VICTIMS[:-1]
        chosen = campaign.dice.sample(victims, min(KILLS, len(victims)))
        chosen += campaign.dice.choices(victims, k=KILLS - len(chosen))
        campaign.kill(chosen, JOINING_FILES_MAX if cell.is_former else 0)
        campaign.finish()
        campaign.check()


def begin_as_former(campaign: KillCampaign, spark: Any) -> None:
    """Make a lake of the former layout, in which some outputs are behind the others, as after a kill."""
    pipeline = load_pipeline(campaign.file)
    session = pipeline_session(spark)
    for names in (FORMER_OUTPUTS, campaign.dice.sample(FORMER_OUTPUTS, 3)):
        campaign.add(2 * campaign.batch)
        run_former(pipeline, session, {*names})
