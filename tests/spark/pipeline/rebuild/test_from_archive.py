"""--from-archive: the tables equal those of a new pipeline, which continues without gap or double."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("duckdb")

from penstock.spark.lake.manifest import DataFile
from penstock.spark.pipeline.definition.file import PipelineFileError, load_pipeline
from penstock.spark.pipeline.rebuild.from_archive import RebuildError, parts_of, rebuild
from penstock.spark.pipeline.rebuild.swap import Swap
from penstock.spark.pipeline.run import pipeline_session, rebuild_pipeline, run_pipeline
from tests.support.campaign import cells
from tests.support.spark.lake import Crash, FailingFiles

NOON = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
TEXT = """
[source]
url = "URL"
stream = "orders"
group = "lake"

[schema]
sku = "string"
qty = "int"
at = "timestamp"

[valid]
few = "qty < 10"

[archive]
path = "lake"
trim = "TRIM"

[reject]
stream = "rejected"

[[aggregate]]
name = "minute"
time = "at"
window = "1 minute"
watermark = "2 minutes"
measures = { orders = "count(*)", pieces = "sum(qty)" }
stream = "minutes"
"""
# A type that cannot be widened, other conditions, another definition of the aggregate, a new aggregate.
CHANGED = (
    TEXT.replace('qty = "int"', 'qty = "double"')
    .replace("qty < 10", "qty < 20")
    .replace("sum(qty)", "max(qty)")
    .replace('window = "1 minute"', 'window = "2 minutes"\ngroup_by = ["sku"]')
    + """
[[aggregate]]
name = "hour"
time = "at"
window = "1 hour"
watermark = "1 minute"
measures = { orders = "count(*)" }
stream = "hours"
"""
)

Run = Callable[..., Any]


@pytest.fixture
def run(spark: Any, penstock: Broker, tmp_path: Path) -> Run:
    """run(text): run the pipeline of a text over all existing entries."""

    def running(
        text: str,
        place: str = "shop",
        trim: str = "never",
        from_archive: bool = False,
        **options: Any,
    ) -> Any:
        file = tmp_path / place / "shop.toml"
        file.parent.mkdir(exist_ok=True)
        text = text.replace("URL", penstock.options["url"]).replace("TRIM", trim)
        if place != "shop":  # streams and the group belong to the pipeline under test
            text = "\n".join(
                line
                for line in text.splitlines()
                if not line.startswith(('stream = "minutes', 'stream = "hours', "group = "))
            ).replace('"rejected"', '"also rejected"')
        file.write_text(text)
        if from_archive:
            rebuild_pipeline(load_pipeline(file), spark, **options)
        return run_pipeline(load_pipeline(file), spark, once=True)

    return running


def add(broker: Broker, minutes: float, **fields: Any) -> None:
    """Add an order some minutes after noon. Its id has the same time."""
    at = NOON + timedelta(minutes=minutes)
    order = {"sku": "A", "qty": 2, "at": at.isoformat()} | fields
    words = [word for pair in order.items() for word in pair]
    broker.client.execute_command("XADD", "orders", f"{int(at.timestamp() * 1000)}-*", *words)


def rows(spark: Any, table: Path, *columns: str) -> list[Any]:
    if not list(table.rglob("*.parquet")):
        return []
    frame = spark.newSession().read.parquet(str(table))
    found: list[Any] = frame.select(*columns or sorted(frame.columns)).collect()
    return sorted(found, key=str)


def tables(spark: Any, lake: Path, *aggregates: str) -> dict[str, list[Any]]:
    """The rows of all tables. Checks that none is there twice."""
    found = {
        name: rows(spark, lake / name)
        for name in ("bronze", "silver", *(f"gold/{one}" for one in aggregates))
    }
    for name, table in found.items():
        assert len(table) == len({str(row) for row in table}), name
    return found


@pytest.mark.parametrize("trim", cells(["archived", "never"]))
def test_new_tables_equal_those_of_a_new_pipeline(
    spark: Any, penstock: Broker, run: Run, tmp_path: Path, trim: str
) -> None:
    every: list[tuple[float, dict[str, Any]]] = [
        *((tens / 6, {"sku": "AB"[tens % 2]}) for tens in range(60)),
        (10, {"qty": 15}),
        (10.1, {"qty": b"\xff"}),
        (10.2, {"qty": "x"}),
    ]
    for minutes, fields in every:
        add(penstock, minutes, **fields)
    run(TEXT, trim=trim)
    before = [fields for _, fields in penstock.client.xrange("minutes")]
    with pytest.raises(PipelineFileError) as caught:
        run(CHANGED, trim=trim)
    assert [problem.line for problem in caught.value.problems] == [9, 22]
    for problem in caught.value.problems:
        assert problem.text.endswith("shop.toml --from-archive")

    notes: list[str] = []
    run(CHANGED, trim=trim, from_archive=True, note=notes.append)
    assert notes == [
        "silver: part 1 of 1",
        "minute: computing windows",
        "hour: computing windows",
        "replacing the tables",
    ]
    assert penstock.client.xlen("rejected") == 3  # not sent again
    later = [(minutes, {"sku": "A"}) for minutes in (11, 11.5, 30, 200)]
    for minutes, fields in later:  # the window from 10 to 12 is open and has rows already
        add(penstock, minutes, **fields)
    run(CHANGED, trim=trim)
    if trim == "archived":  # the reference needs the entries again
        assert penstock.client.xlen("orders") == 0
        penstock.client.delete("orders")
        for minutes, fields in [*every, *later]:
            add(penstock, minutes, **fields)
    run(CHANGED, "reference")
    ours, reference = tmp_path / "shop/lake", tmp_path / "reference/lake"
    names = ("minute", "hour")
    assert tables(spark, ours, *names) == tables(spark, reference, *names)
    assert len(rows(spark, ours / "silver")) == 65
    assert [row.orders for row in rows(spark, ours / "gold/hour", "orders")] == [64]
    streamed = [fields for _, fields in penstock.client.xrange("minutes")]
    assert streamed[: len(before)] == before
    added = [(one[b"window_start"], one[b"sku"]) for one in streamed[len(before) :]]
    assert len(added) == len(set(added))
    closed = max(one[b"window_end"] for one in before)
    assert all(one[b"window_end"] > closed for one in streamed[len(before) :])
    assert len([fields for _, fields in penstock.client.xrange("hours")]) == 1


def test_a_lake_without_valid_rows_continues(
    spark: Any, penstock: Broker, run: Run, tmp_path: Path
) -> None:
    text = TEXT.replace('group = "lake"', 'group = "lake"\nstarting = "latest"')
    run(text)
    add(penstock, 0, qty="x")
    run(text)
    run(text, from_archive=True)
    assert rows(spark, tmp_path / "shop/lake/bronze", "_id")
    for minutes in (1, 2, 9):
        add(penstock, minutes)
    run(text)
    assert len(rows(spark, tmp_path / "shop/lake/silver", "_id")) == 3
    found = rows(spark, tmp_path / "shop/lake/gold/minute", "orders")
    assert [row.orders for row in found] == [1, 1]


def test_without_an_archive_it_is_refused(run: Run, penstock: Broker) -> None:
    with pytest.raises(RebuildError, match="has no batch yet: run the pipeline without"):
        run(TEXT, from_archive=True)
    add(penstock, 0)
    run(TEXT)
    stop = threading.Event()
    stop.set()
    with pytest.raises(RebuildError, match="stopped; the tables are unchanged"):
        run(TEXT, from_archive=True, stop=stop)
    delta = 'path = "lake"\nformat = "delta"'
    dedup = '\n[dedup]\nkey = ["sku"]\nwithin = "1 hour"\n'
    for text, says in (
        (TEXT.replace('path = "lake"', delta), "works with Parquet only, and the tables are delta"),
        (TEXT + dedup, "cannot drop duplicates: remove"),
    ):
        with pytest.raises(PipelineFileError, match=says):
            run(text, from_archive=True)


@pytest.mark.parametrize(
    "step", cells(["replacing the tables", "minute: computing windows", "silver: part 1 of 1"])
)
def test_killed_before_the_swap_it_is_undone(
    spark: Any, penstock: Broker, run: Run, tmp_path: Path, step: str
) -> None:
    for minutes in range(9):
        add(penstock, minutes)
    run(TEXT)
    lake = tmp_path / "shop/lake"
    before = tables(spark, lake, "minute")

    def note(text: str) -> None:
        if text == step:
            raise Crash

    with pytest.raises(Crash):
        run(CHANGED, from_archive=True, note=note)
    add(penstock, 20)
    run(TEXT)
    after = tables(spark, lake, "minute")
    assert len(after["silver"]) == len(before["silver"]) + 1
    assert len(after["gold/minute"]) == 9
    assert penstock.client.xlen("minutes") == 9
    for name in ("_silver.tmp", "gold/_minute.tmp", "_checkpoints/_minute.tmp"):
        for version in ("new", "old", "rows"):
            assert not (lake / name / version).exists()
    run(CHANGED, from_archive=True)
    assert len(tables(spark, lake, "minute", "hour")["silver"]) == 10


@pytest.mark.parametrize("part", cells([0.6, 0.3, 0.9, 0]))
def test_killed_during_the_swap_the_next_run_finishes_it(
    spark: Any, penstock: Broker, run: Run, tmp_path: Path, part: float
) -> None:
    for minutes in range(9):
        add(penstock, minutes)
    run(TEXT)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "shop", copy)
    run(CHANGED, from_archive=True)
    wanted = tables(spark, tmp_path / "shop/lake", "minute", "hour")
    shutil.rmtree(tmp_path / "shop")
    shutil.copytree(copy, tmp_path / "shop")
    file = tmp_path / "shop" / "shop.toml"
    text = CHANGED.replace("URL", penstock.options["url"]).replace("TRIM", "never")
    file.write_text(text)
    pipeline = load_pipeline(file)
    files = FailingFiles(spark)

    def note(step: str) -> None:
        if step == "replacing the tables":  # a write, then two renames for each of five directories
            files.stop_at = files.changes + 3 + int(part * 9)

    with pytest.raises(Crash):
        rebuild(pipeline, pipeline_session(spark), note, threading.Event(), files)
    assert Swap(FailingFiles(spark), pipeline).is_interrupted
    run(CHANGED)
    assert tables(spark, tmp_path / "shop/lake", "minute", "hour") == wanted
    assert not Swap(FailingFiles(spark), pipeline).is_interrupted


def test_parts_have_about_the_same_size() -> None:
    files = [DataFile(f"day={day}/{number}", 1, 4) for day in (2, 1) for number in range(3)]
    parts = [[one.path for one in part] for part in parts_of(files, 10)]
    assert parts == [
        ["day=1/0", "day=1/1"],
        ["day=1/2", "day=2/0"],
        ["day=2/1", "day=2/2"],
    ]
    assert parts_of([], 10) == [[]]
    assert [len(part) for part in parts_of(files, 1)] == [1] * 6
