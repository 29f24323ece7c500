"""Duplicates, lookups and upsert tables when the driver is killed at random moments.

A failure names its seed; PENSTOCK_SEED repeats the run, as far as the timing of processes can be repeated.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
import redis

from tests.spark.conftest import NO_PYSPARK
from tests.support.campaign import SOAK, seed
from tests.support.servers.penstock_server import running_penstock
from tests.support.spark.pipeline_process import PipelineProcess
from tests.support.spark.readers import read_by_all

pytest.importorskip("pyspark", reason=NO_PYSPARK)

ENTRIES = 40_000
KEYS = 500
KILLS = 8
START_MS = 1_714_564_800_000
STEP_MS = 100
WITHIN_MS = 60_000

PIPELINE = """
[source]
url = "${PENSTOCK_URL}"
stream = "orders"
max_entries = 1000
[schema]
k = "int"
n = "bigint"
[valid]
known = "name is not null"
[archive]
path = "lake"
[reject]
stream = "rejected"
[dedup]
key = ["k"]
within = "1 minute"
[[lookup]]
name = "names"
path = "names.csv"
format = "csv"
on = ["k"]
columns = ["name"]
[[table]]
name = "latest"
key = ["k"]
buckets = 4
delete_when = "k % 10 = 3"
[[aggregate]]
name = "minute"
window = "1 minute"
watermark = "1 minute"
measures = { rows = "count(*)", total = "sum(n)" }
"""


@pytest.mark.skipif(not SOAK, reason="starts many Sparks: make soak")
def test_killed_at_random_moments_every_row_is_there_once(spark: Any, tmp_path: Path) -> None:
    start = seed()
    dice = random.Random(start)
    file = tmp_path / "orders.toml"
    file.write_text(PIPELINE)
    named = [one for one in range(KEYS) if one % 7]
    (tmp_path / "names.csv").write_text("k,name\n" + "".join(f"{one},n{one}\n" for one in named))
    keys = [dice.randrange(KEYS) for _ in range(ENTRIES)]
    with running_penstock() as server, server.client() as client:
        fill(client, keys)
        url = f"redis://127.0.0.1:{server.port}"
        for _ in range(KILLS):
            run = PipelineProcess(file, url, "--master", "local[2]")
            run.wait_for_batches(dice.randint(1, 12))
            time.sleep(dice.random())  # into the middle of a batch
            run.kill()
        last = PipelineProcess(file, url, "--master", "local[2]", "--once")
        assert last.wait() == 0, last.log.read_text()[-3000:]
        rejected = [int(fields[b"n"]) for _, fields in client.xrange("rejected")]
    kept = first_of_each(keys)
    lake = tmp_path / "lake"
    found = read_by_all(spark, lake / "silver", ["n"])
    assert sorted(row["n"] for row in found) == kept, f"PENSTOCK_SEED={start}"
    assert sorted(rejected) == [n for n, key in enumerate(keys) if key % 7 == 0]
    assert len(read_by_all(spark, lake / "bronze", ["_id"])) == ENTRIES
    newest = {keys[n]: n for n in kept if keys[n] % 10 != 3}
    latest = read_by_all(spark, lake / "tables" / "latest", ["k", "n"])
    assert {row["k"]: row["n"] for row in latest} == newest, f"PENSTOCK_SEED={start}"
    assert len(latest) == len(newest)
    gold = lake / "gold" / "minute"
    windows = read_by_all(spark, gold, ["total", "rows"])
    assert windows, "no window was written"
    starts = ds.dataset(gold, format="parquet").to_table(["window_start"])[0].to_pylist()
    last_ms = max(one.timestamp() * 1000 for one in starts) + 60_000
    counted = [n for n in kept if START_MS + n * STEP_MS < last_ms]
    assert sum(one["rows"] for one in windows) == len(counted), f"PENSTOCK_SEED={start}"
    assert sum(one["total"] for one in windows) == sum(counted)


def fill(client: redis.Redis, keys: list[int]) -> None:
    with client.pipeline(transaction=False) as commands:
        for number, key in enumerate(keys):
            commands.xadd("orders", {"k": key, "n": number}, id=f"{START_MS + number * STEP_MS}-0")
        commands.execute()


def first_of_each(keys: list[int]) -> list[int]:
    """The numbers of the rows that are kept."""
    kept_at: dict[int, int] = {}
    found = []
    for number, key in enumerate(keys):
        at = number * STEP_MS
        if key % 7 and (key not in kept_at or at - kept_at[key] > WITHIN_MS):
            kept_at[key] = at
            found.append(number)
    return found
