"""Every entry is once in the lake and once in the sink when driver, executors or server are killed.

The pipeline runs on executor processes. A failure names its seed; PENSTOCK_SEED repeats the run, as far as
the timing of processes can be repeated.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import pyarrow.dataset as ds
import pytest
import redis

from penstock.spark.lake.formats import DELTA, ICEBERG, PARQUET, TablePlace
from tests.support.campaign import SOAK, cases, cells, seed
from tests.support.servers.durable_redis import running_durable_redis
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import redis_program_or_none
from tests.support.spark import tables
from tests.support.spark.pipeline_process import PipelineProcess

ENTRIES = cases(1_000_000)
PIPELINED = 1_000
BATCHES = 40 if SOAK else 16
# Cells side by side differ in the server and in the format.
CELLS = [
    *[("penstock", PARQUET), ("redis", DELTA), ("penstock", ICEBERG)],
    *[("redis", PARQUET), ("penstock", DELTA), ("redis", ICEBERG)],
]
VICTIMS = ["driver", "executor", "server"]
KILLS = 12 if SOAK else len(VICTIMS)
# Executors are processes that can be killed. In `make test`, plain Redis runs without them to save time.
EXECUTORS, THREADS = "local-cluster[2,1,1024]", "local[2]"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # Java starts faster

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
"""


class Server(Protocol):
    """A server that can be killed and started again, on a new port."""

    port: int

    def start(self) -> None: ...
    def kill(self) -> None: ...


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


@pytest.mark.parametrize(("kind", "form"), cells(CELLS))
def test_every_entry_is_once_in_the_lake_and_once_in_the_sink(
    kind: str, form: str, tmp_path: Path
) -> None:
    start = seed()
    dice = random.Random(f"{start}/{kind}/{form}")
    file = tmp_path / "numbers.toml"
    file.write_text(PIPELINE.format(batch=ENTRIES // BATCHES, form=form))
    master = EXECUTORS if SOAK or kind == "penstock" else THREADS
    with durable_server(kind, tmp_path / "data") as server:
        ids = fill(server)
        kill_some(dice, server, file, master)
        last = started(server, file, master, "--once")
        assert last.wait() == 0, last.log.read_text()[-3000:]
        with redis.Redis(port=server.port) as client:
            odd = [entry[1][b"_source_id"].decode() for entry in client.xrange("odd")]
            group = client.xinfo_groups("numbers")[0]
    archived, valid = (ids_in(tmp_path / "lake", form, name) for name in ("bronze", "silver"))
    assert differences(archived, ids) == [], f"PENSTOCK_SEED={start}"
    assert differences(valid + odd, ids) == [], f"PENSTOCK_SEED={start}"
    assert (group["pending"], group["lag"]) == (0, 0)


def kill_some(dice: random.Random, server: Server, file: Path, master: str) -> None:
    """Run the pipeline, and kill each victim at a random moment."""
    victims = dice.sample(VICTIMS, len(VICTIMS)) + dice.choices(VICTIMS, k=KILLS - len(VICTIMS))
    run = started(server, file, master)
    try:
        for victim in victims:
            run.wait_for_batches(len(run.batches) + dice.randint(1, 4))
            time.sleep(dice.random())  # into the middle of a batch
            if victim == "executor" and (executors := run.executors()):
                kill_process(dice.choice(executors))
                continue
            if victim == "server":
                server.kill()
                assert run.wait() == 1, run.log.read_text()[-3000:]
                server.start()
            else:
                run.kill()
            run = started(server, file, master)
        run.wait_for_batches(len(run.batches) + 1)
    finally:
        run.kill()


def started(server: Server, file: Path, master: str, *words: str) -> PipelineProcess:
    return PipelineProcess(file, url_of(server), "--master", master, *words)


def kill_process(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def fill(server: Server) -> list[str]:
    """Add numbered entries. Returns their ids."""
    ids: list[str] = []
    with redis.Redis(port=server.port) as client:
        for begin in range(0, ENTRIES, PIPELINED):
            with client.pipeline(transaction=False) as pipeline:
                for number in range(begin, begin + PIPELINED):
                    pipeline.xadd("numbers", {"n": number})
                ids += [one.decode() for one in pipeline.execute()]
    return ids


def ids_in(lake: Path, form: str, name: str) -> list[str]:
    table = lake / name
    if form != PARQUET:
        place = TablePlace(str(table), form, name, str(lake))
        return list(tables.by_library(place, "_id").elements())
    read = ds.dataset(table, format="parquet", partitioning="hive").to_table(columns=["_id"])
    found: list[str] = read["_id"].to_pylist()
    return found


def differences(found: list[str], expected: list[str]) -> list[tuple[str, int]]:
    """The first few ids that do not appear exactly once, with their counts."""
    counts = Counter(found)
    counts.subtract(expected)
    return [(one, count + 1) for one, count in counts.items() if count][:5]


def url_of(server: Server) -> str:
    return f"redis://127.0.0.1:{server.port}"
