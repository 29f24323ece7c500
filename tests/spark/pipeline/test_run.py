"""Pipelines from a stream to lake, rejects and aggregates, without loss or duplicates."""

from __future__ import annotations

import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.support.servers.raw_redis import RawRedis

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("duckdb")

from penstock.core.stream_id import StreamID
from penstock.spark.lake.lock import held
from penstock.spark.pipeline.definition.file import Pipeline, PipelineFileError, load_pipeline
from penstock.spark.pipeline.progress import BatchRecord, ProgressListener
from penstock.spark.pipeline.run import (
    PipelineFailed,
    PipelineRunning,
    Summary,
    pipeline_session,
    run_pipeline,
    smallest,
)
from penstock.spark.replay import Replay, frame_of, next_part, write_part
from penstock.spark.source.offsets import Offset, Position
from tests.support.spark.lake import by_arrow

DEADLINE_SECONDS = 300
OUTPUTS = {"bronze", "silver", "reject"}
NOON = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)

TEXT = """
[source]
url = "{url}"
stream = "orders"
group = "lake"

[schema]
sku = "string"
qty = "int"
price = "decimal(10,2)"
at = "timestamp"

[valid]
known = "sku is not null"
quantity = "10 / qty > 0"

[archive]
path = "lake"
trim = "{trim}"

[reject]
stream = "rejected"
"""

AGGREGATE = """
[[aggregate]]
name = "minute"
time = "at"
window = "1 minute"
watermark = "1 minute"
measures = { orders = "count(*)", revenue = "sum(qty * price)" }
stream = "minutes"
"""


@pytest.fixture
def pipeline_of(tmp_path: Path) -> Any:
    def making(broker: Broker, text: str = TEXT, trim: str = "never") -> Pipeline:
        path = tmp_path / "shop.toml"
        path.write_text(text.replace("{url}", broker.options["url"]).replace("{trim}", trim))
        return load_pipeline(path)

    return making


def add(broker: Broker, minutes: float, **fields: Any) -> None:
    """Add an order some minutes after noon. Its id has the same time."""
    at = NOON + timedelta(minutes=minutes)
    order = {"sku": "A", "qty": 2, "price": "1.50", "at": at.isoformat()} | fields
    present = {name: value for name, value in order.items() if value is not None}
    broker.client.execute_command(
        "XADD",
        "orders",
        f"{int(at.timestamp() * 1000)}-*",
        *(w for p in present.items() for w in p),
    )


def add_without_time(broker: Broker, minutes: float, at: float) -> None:
    """Add a late order: its own time is before the time of its id."""
    add(broker, minutes, at=(NOON + timedelta(minutes=at)).isoformat())


def rows(spark: Any, folder: Path) -> list[Any]:
    found: list[Any] = spark.read.parquet(str(folder)).collect()
    return found


def rejected(broker: Broker) -> list[dict[str, str]]:
    entries = broker.client.xrange("rejected")
    return [
        {k.decode(): v.decode("utf-8", "backslashreplace") for k, v in fields.items()}
        for _, fields in entries
    ]


def accounted(lake: Path, broker: Broker) -> tuple[int, int, int]:
    """The number of rows in bronze, silver and the rejects. Checks for duplicates."""
    bronze, silver = (by_arrow(lake / name, "_id") for name in ("bronze", "silver"))
    refused = Counter(one["_source_id"] for one in rejected(broker))
    assert bronze == silver + refused
    assert set(bronze.values()) <= {1}
    return len(bronze), len(silver), len(refused)


def test_every_entry_is_archived_and_valid_or_rejected(
    spark: Any, server: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    pipeline = pipeline_of(server, TEXT + AGGREGATE)
    for tens in range(18):
        add(server, tens / 6)
    add(server, 3, qty="many")
    add(server, 3, qty="0")
    add(server, 3, sku=None, price="1.234")
    add(server, 3, sku=b"\xff\xfe", note="kept")
    records: list[BatchRecord] = []
    first = run_pipeline(pipeline, spark, True, records.append)
    assert accounted(lake, server) == (22, 18, 4)
    assert {name: one.rows for name, one in first.outputs.items()} == {
        "bronze": 22,
        "silver": 18,
        "reject": 4,
        "minute": 1,
        "minute.stream": 1,
    }
    assert {one.lag for one in first.outputs.values()} == {0}
    assert first.pending == 0
    assert [(one["_reason"], one["_source_stream"]) for one in rejected(server)] == [
        ("parse:qty,quantity", "orders"),
        ("quantity", "orders"),
        ("parse:price,known", "orders"),
        ("parse:sku,known", "orders"),
    ]
    assert server.client.xrevrange("rejected", count=1)[0][1][b"sku"] == b"\xff\xfe"
    assert rejected(server)[3]["note"] == "kept"

    add(server, 9)
    add_without_time(server, 9.5, at=0.5)  # its window is closed
    add(server, 20)
    again = run_pipeline(pipeline, spark, True, records.append)
    assert accounted(lake, server) == (25, 21, 4)
    assert (again.outputs["bronze"].rows, again.outputs["reject"].rows) == (3, 0)
    minutes = sorted(rows(spark, lake / "gold" / "minute"), key=lambda row: row.window_start)
    found = [(row.window_start.astimezone(UTC), row.orders, row.revenue) for row in minutes]
    assert found == [
        (NOON + timedelta(minutes=minute), orders, Decimal("3.00") * orders)
        for minute, orders in ((0, 6), (1, 6), (2, 6), (9, 1))
    ]
    assert {row.day.isoformat() for row in minutes} == {"2024-05-01"}
    entries = [fields for _, fields in server.client.xrange("minutes")]
    assert sorted(int(one[b"orders"]) for one in entries) == [1, 6, 6, 6]
    assert again.outputs["minute"].late == 1

    (group,) = server.client.xinfo_groups("orders")
    assert (group["name"], group["pending"]) == (b"lake", 0)
    published = [fields for _, fields in server.client.xrange("penstock:metrics")]
    batches = [fields for fields in published if b"batch" in fields]
    assert len(batches) == len(records)
    assert {fields[b"output"].decode() for fields in batches} == set(first.outputs)
    runs = [fields[b"run"] for fields in published if b"run" in fields]
    assert runs == 2 * [b"started", b"ended"]


def test_a_value_that_cannot_name_a_directory_is_rejected(
    spark: Any, server: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    text = TEXT.replace('path = "lake"', 'path = "lake"\npartition_by = ["sku"]')
    longest = 255 - len("sku=")
    taken = ["A", "é" * (longest // 2), "/" * (longest // 3), " a=b%: ", "\x7f\x01"]
    refused = ["", "B" * (longest + 1), "é" * (longest // 2 + 1), "/" * (longest // 3 + 1), None]
    for sku in taken + refused:
        add(server, 0, sku=sku)
    pipeline = pipeline_of(server, text.replace('known = "sku is not null"\n', ""))
    run_pipeline(pipeline, spark, True, lambda _: None)
    lake = tmp_path / "lake"
    assert accounted(lake, server) == (10, 5, 5)
    assert {one["_reason"] for one in rejected(server)} == {"partition:sku"}
    assert sorted(row.sku for row in rows(spark, lake / "silver")) == sorted(taken)
    read = ds.dataset(lake / "silver", format="parquet", partitioning="hive").to_table()
    assert sorted(read["sku"].to_pylist()) == sorted(taken)


def test_a_stream_on_two_servers_has_its_group_on_both(
    spark: Any, penstock: Broker, redis_broker: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    redis_broker.client.flushall()
    both = Broker("both", {"url": f"{penstock.options['url']},{redis_broker.options['url']}"}, None)
    pipeline = pipeline_of(both)
    for begin in (0, 4):
        for minutes in range(begin, begin + 3):
            add(penstock, minutes)
            add(redis_broker, minutes + 0.5)
        add(redis_broker, begin + 3, qty="many")
        run_pipeline(pipeline, spark, True, lambda _: None)
    assert accounted(tmp_path / "lake", penstock) == (14, 12, 2)
    for one in (penstock, redis_broker):
        (group,) = one.client.xinfo_groups("orders")
        assert (group["name"], group["lag"], group["pending"]) == (b"lake", 0, 0)


def test_a_changed_aggregate_is_refused_by_name(
    spark: Any, penstock: Broker, pipeline_of: Any
) -> None:
    add(penstock, 0)
    run_pipeline(pipeline_of(penstock, TEXT + AGGREGATE), spark, True)
    changed = pipeline_of(penstock, TEXT + AGGREGATE.replace("sum(qty * price)", "sum(qty)"))
    with pytest.raises(PipelineFileError) as caught:
        run_pipeline(changed, spark, True)
    (problem,) = caught.value.problems
    assert problem.line == 24
    assert problem.text.startswith("output minute: measures was {")
    assert "rename the aggregate" in problem.text
    assert problem.text.endswith("shop.toml --from-archive")


def test_entries_that_all_outputs_have_are_trimmed(
    spark: Any, server: Broker, pipeline_of: Any
) -> None:
    for minute in range(10):
        add(server, minute)
    summary = run_pipeline(pipeline_of(server, trim="archived"), spark, True)
    assert (summary.trimmed, server.client.xlen("orders")) == (10, 0)
    add(server, 11)
    summary = run_pipeline(pipeline_of(server, trim="archived"), spark, True)
    assert (summary.outputs["silver"].rows, server.client.xlen("orders")) == (1, 0)


def test_entries_that_were_trimmed_unread_stop_the_pipeline(
    spark: Any, server: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    add(server, 0)
    run_pipeline(pipeline_of(server), spark, True)
    for minute in (1, 2, 3):
        add(server, minute)
    server.client.xtrim("orders", maxlen=1, approximate=False)
    with pytest.raises(PipelineFailed, match=r"up to 2 entries after .* were removed before they"):
        run_pipeline(pipeline_of(server), spark, True)
    allowed = TEXT + "\n[source.options]\nfailOnDataLoss = false\n"
    run_pipeline(pipeline_of(server, allowed), spark, True)
    assert accounted(tmp_path / "lake", server) == (2, 2, 0)


def test_a_stopped_pipeline_continues(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    pipeline = pipeline_of(penstock)
    stop = threading.Event()
    seen: dict[str, int] = {}
    ended: list[Summary] = []

    def watch(record: BatchRecord) -> None:
        seen[record.output] = seen.get(record.output, 0) + record.rows

    def run() -> None:
        ended.append(run_pipeline(pipeline, spark, False, watch, stop))

    thread = threading.Thread(target=run)
    thread.start()
    for minute in range(5):
        add(penstock, minute)
    until = time.monotonic() + DEADLINE_SECONDS
    while (seen.get("bronze"), seen.get("silver")) != (5, 5):
        assert thread.is_alive(), "it ended by itself"
        assert time.monotonic() < until, seen
        time.sleep(0.05)
    stop.set()
    thread.join(DEADLINE_SECONDS)
    assert ended[0].outputs["silver"].rows == 5
    assert not [one for one in spark.streams.active if one.name and one.name.startswith("shop/")]
    add(penstock, 6, qty="x")
    run_pipeline(pipeline, spark, True)
    assert accounted(tmp_path / "lake", penstock) == (6, 5, 1)


def test_an_output_that_fails_stops_all_and_says_why(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    (tmp_path / "lake" / "silver").mkdir(parents=True)
    (tmp_path / "lake" / "silver" / "x.parquet").write_text("somebody else's")
    add(penstock, 0)
    with pytest.raises(PipelineFailed) as caught:
        run_pipeline(pipeline_of(penstock), spark, True)
    assert caught.value.output == "silver"
    assert str(caught.value).startswith("output silver: ")
    assert "another program has written there" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not [one for one in spark.streams.active if one.name and one.name.startswith("shop/")]


def test_a_query_without_a_last_report_still_ends_or_fails(
    spark: Any,
    penstock: Broker,
    pipeline_of: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.spark.pipeline.run.LAST_REPORT_SECONDS_MAX", 0)
    monkeypatch.setattr(ProgressListener, "onQueryTerminated", lambda *_: None)
    foreign = tmp_path / "lake" / "silver" / "x.parquet"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("somebody else's")
    add(penstock, 0)
    with pytest.raises(PipelineFailed, match="output silver: "):
        run_pipeline(pipeline_of(penstock), spark, True)
    foreign.unlink()
    assert run_pipeline(pipeline_of(penstock), spark, True).outputs.keys() == OUTPUTS
    assert len(rows(spark, foreign.parent)) == 1


def test_a_file_with_problems_is_not_run(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    pipeline = pipeline_of(penstock, TEXT.replace("sku is not null", "skuu is not null"))
    with pytest.raises(PipelineFileError, match=r"shop\.toml:14: known: "):
        run_pipeline(pipeline, spark, True)
    assert not (tmp_path / "lake").exists()


def test_the_open_files_of_a_task_keep_a_small_row_group_each(spark: Any, tmp_path: Path) -> None:
    texts = (
        "transform(sequence(1, 250), one -> sha2(cast(id * 1000 + one as string), 256)) as texts"
    )
    frame = pipeline_session(spark).range(0, 2_500, 1, 1).selectExpr(texts)  # 40 MB
    frame.write.parquet(str(tmp_path / "made"))
    (file,) = (tmp_path / "made").glob("*.parquet")
    assert pq.ParquetFile(file).num_row_groups > 1


def test_the_smallest_offset_has_the_streams_of_all() -> None:
    def offset(**ids: int) -> Offset:
        return Offset({name: Position(StreamID(ms, 0), ms) for name, ms in ids.items()})

    assert smallest([offset(a=3, b=5), offset(a=4, b=2, c=1)]) == offset(a=3, b=2)
    assert smallest([offset(a=3), offset(b=3)]) == offset()


def test_a_second_run_at_the_same_time_is_refused(
    spark: Any, penstock: Broker, tmp_path: Path, pipeline_of: Any
) -> None:
    penstock.client.xadd("orders", {"sku": "A"})
    pipeline = pipeline_of(penstock)
    checkpoints = str(tmp_path / "lake" / "_checkpoints")
    with (
        held(checkpoints, AssertionError()),
        pytest.raises(PipelineRunning, match="another run is writing there"),
    ):
        run_pipeline(pipeline, spark, once=True)


def test_bronze_keeps_every_byte_and_a_replay_restores_it(
    spark: Any, penstock: Broker, tmp_path: Path, pipeline_of: Any
) -> None:
    plain, odd = [b"a", b"1", "ü".encode(), b"\\xff"], [b"a", b"1", b"b", b"\xff\x00", b"a", b"2"]
    nameless = [b"\xff\x00n", b"v"]
    for words in (plain, odd, nameless):
        penstock.client.execute_command("XADD", "orders", "*", *words)
    run_pipeline(pipeline_of(penstock), spark, once=True)
    lake = tmp_path / "lake" / "bronze"
    first, second, third = sorted(rows(spark, lake), key=lambda row: row._id)
    assert (first.fields, first._raw) == ({"a": "1", "ü": "\\xff"}, None)
    assert second.fields == {"a": "2", "b": None}
    assert [bytes(part) for pair in second._raw for part in pair] == odd
    assert [bytes(part) for pair in third._raw for part in pair] == nameless
    what = Replay(None, str(lake), "again")
    part = next_part(what, "bytes", {}, penstock.options, spark)
    assert part is not None
    frame = frame_of(spark, what, part, {})
    assert write_part(frame, what, "bytes", part, penstock.options) == 3
    with RawRedis(int(penstock.options["url"].rpartition(":")[2])) as client:
        [found] = client.ask([[b"XRANGE", b"again", b"-", b"+"]])
    assert [pairs[:-4] for _, pairs in found] == [plain, odd, nameless]
