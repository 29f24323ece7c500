"""The SQL functions of pipelines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.pipeline.definition.file import load_pipeline
from penstock.spark.pipeline.run import pipeline_session, run_pipeline
from penstock.spark.replay import Replay, frame_of, next_part, write_part

NOON = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
TEXT = """
[source]
url = "URL"
stream = "orders"

[schema]
qty = "int"
_source_id = "string"

[columns]
happened = "coalesce(id_timestamp(_source_id), _timestamp)"

[archive]
path = "lake"

[[aggregate]]
name = "minute"
time = "happened"
window = "1 minute"
watermark = "1 minute"
measures = { pieces = "sum(qty)" }
"""


@pytest.mark.parametrize("is_ansi", [True, False])
def test_the_time_of_an_id(spark: Any, is_ansi: bool) -> None:
    session = pipeline_session(spark)
    session.conf.set("spark.sql.ansi.enabled", is_ansi)
    cases = {
        "1714564800000-0": 1714564800000,
        "1714564800001-18446744073709551615": 1714564800001,
        "7": 7,
        "0-1": 0,
        "253402300799999-0": 253402300799999,
        "253402300800000-0": None,
        "18446744073709551615-0": None,
        "-5": None,
        "5-": None,
        "5-x": None,
        "": None,
        "now": None,
        " 5-0": None,
    }
    frame = session.createDataFrame([(one,) for one in cases], "id string")
    found = frame.selectExpr("id", "unix_millis(id_timestamp(id)) as ms").collect()
    assert {row.id: row.ms for row in found} == cases
    assert session.sql("select id_timestamp(null) is null").collect()[0][0]


def test_replayed_entries_count_at_the_time_of_the_original(
    spark: Any, penstock: Broker, tmp_path: Path
) -> None:
    for minutes in (0, 0.5, 1, 7):
        at = int((NOON + timedelta(minutes=minutes)).timestamp() * 1000)
        penstock.client.xadd("lost", {"qty": 1}, id=f"{at}-0")
    what = Replay("lost", None, "orders")
    part = next_part(what, "again", penstock.options, penstock.options)
    assert part is not None
    frame = frame_of(spark, what, part, penstock.options)
    assert write_part(frame, what, "again", part, penstock.options) == 4
    file = tmp_path / "shop.toml"
    file.write_text(TEXT.replace("URL", penstock.options["url"]))
    run_pipeline(load_pipeline(file), spark, once=True)
    found = spark.read.parquet(str(tmp_path / "lake/gold/minute")).collect()
    windows = {row.window_start.astimezone(UTC): row.pieces for row in found}
    assert windows == {NOON: 2, NOON + timedelta(minutes=1): 1}
    ids = [one.decode() for one, _ in penstock.client.xrange("orders")]
    assert all(int(one.split("-")[0]) > 1_750_000_000_000 for one in ids)
