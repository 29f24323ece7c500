"""Pipelines whose tables are Delta or Iceberg: without loss or duplicates, for every output and reader."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.test_run import AGGREGATE, TEXT, add, pipeline_of, rejected
from tests.support.campaign import cells

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytest.importorskip("polars")

from penstock.spark.lake.compaction import compact
from penstock.spark.lake.formats import DELTA, ICEBERG, TablePlace
from penstock.spark.lake.table_formats.table_writer import TableWriter
from penstock.spark.pipeline.definition.file import PipelineFileError, read_pipeline
from penstock.spark.pipeline.definition.rules import rule_problems
from penstock.spark.pipeline.run import PipelineFailed, run_pipeline
from penstock.spark.replay import Replay, archived, frame_of, next_part, write_part
from tests.support.spark import tables

__all__ = ["pipeline_of"]  # the fixture

ONE = pytest.mark.parametrize("form", cells([DELTA, ICEBERG]))
WHOLE = TEXT + AGGREGATE
STREAM = 'stream = "minutes"\n'
PAYLOAD = """
[payload]
field = "body"
[payload.schema]
kind = "string"
items = "array<struct<sku:string>>"
"""
LAYERS = ("bronze", "silver")


def in_format(form: str, text: str = WHOLE) -> str:
    return text.replace('path = "lake"\n', f'path = "lake"\nformat = "{form}"\n')


def table(folder: Path, form: str, name: str) -> TablePlace:
    path = folder / "lake" / ("gold" if name == "minute" else "") / name
    return TablePlace(str(path), form, name, str(folder / "lake"))


def accounted(spark: Any, folder: Path, form: str, broker: Broker) -> tuple[int, int, int]:
    """The number of rows in bronze, silver and the rejects, by all readers. Checks for duplicates."""
    bronze, silver = (tables.seen(spark, table(folder, form, one), "_id") for one in LAYERS)
    refused = Counter(one["_source_id"] for one in rejected(broker))
    assert bronze == silver + refused
    assert set(bronze.values()) == {1}
    return len(bronze), len(silver), len(refused)


@ONE
def test_all_tables_have_the_format(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path, form: str
) -> None:
    by = 'partition_by = ["day", "sku"]\n'
    pipeline = pipeline_of(penstock, in_format(form).replace('trim = "', f'{by}trim = "'))
    for minutes in (0, 0.5, 3, 6):
        add(penstock, minutes, sku="A/B")
    add(penstock, 6, qty="x")
    first = run_pipeline(pipeline, spark, True)
    assert {name: one.rows for name, one in first.outputs.items()} == {
        "bronze": 5,
        "silver": 4,
        "reject": 1,
        "minute": 2,
        "minute.stream": 2,
    }
    add(penstock, 12, sku="C")
    add(penstock, 18, sku="D")
    for _ in range(2):
        run_pipeline(pipeline, spark, True)
    assert accounted(spark, tmp_path, form, penstock) == (7, 6, 1)
    silver, gold = (table(tmp_path, form, one) for one in ("silver", "minute"))
    assert tables.by_polars(silver, "sku") == {"A/B": 4, "C": 1, "D": 1}
    assert tables.by_pandas(silver, "day") == {date(2024, 5, 1): 6}
    assert tables.by_polars(gold, "orders") == {2: 1, 1: 3}
    assert tables.by_spark(spark, gold, "day") == {date(2024, 5, 1): 4}
    what = Replay(None, silver.path, "again")
    part = next_part(what, "again", {}, penstock.options, spark)
    assert part is not None
    assert write_part(frame_of(spark, what, part, {}), what, "again", part, penstock.options) == 6
    _, fields = penstock.client.xrange("again", count=1)[0]
    assert (fields[b"sku"], b"day" in fields) == (b"A/B", False)


@ONE
def test_the_stream_of_an_aggregate_gets_the_windows_of_the_table(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path, form: str
) -> None:
    for step, text in enumerate((WHOLE.replace(STREAM, ""), WHOLE)):
        for minutes in (0, 1, 5):
            add(penstock, step * 10 + minutes)
        run_pipeline(pipeline_of(penstock, in_format(form, text)), spark, True)
    windows = tables.by_library(table(tmp_path, form, "minute"), "window_start")
    assert len(penstock.client.xrange("minutes")) == len(windows) == 5


@ONE
@pytest.mark.parametrize("after", cells(["silver", "bronze"]))
def test_a_batch_that_some_outputs_have_is_repeated_for_the_others(
    spark: Any,
    penstock: Broker,
    pipeline_of: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    after: str,
) -> None:
    pipeline = pipeline_of(penstock, in_format(form, TEXT))
    add(penstock, 0)
    real = TableWriter.append

    def append(self: TableWriter, *words: Any) -> int:
        made = real(self, *words)
        if self._path.endswith(after):
            raise RuntimeError("stopped by the test")
        return made

    with monkeypatch.context() as patch:
        patch.setattr(TableWriter, "append", append)
        with pytest.raises(PipelineFailed, match="stopped by the test"):
            run_pipeline(pipeline, spark, True)
    add(penstock, 1, qty="x")
    run_pipeline(pipeline, spark, True)
    assert accounted(spark, tmp_path, form, penstock) == (2, 1, 1)


@ONE
def test_a_struct_gets_new_members(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path, form: str
) -> None:
    text = TEXT + PAYLOAD
    wider = text.replace("<sku:string>", "<sku:string,qty:int>")
    wider = wider.replace('kind = "string"', 'kind = "string"\nat = "bigint"')
    body = json.dumps({"kind": "sale", "items": [{"sku": "A", "qty": 3}], "at": 7})
    for minute, step in enumerate((text, wider, text)):
        add(penstock, minute, body=body)
        run_pipeline(pipeline_of(penstock, in_format(form, step)), spark, True)
    assert accounted(spark, tmp_path, form, penstock) == (3, 3, 0)
    silver = table(tmp_path, form, "silver")
    read = library_rows(silver)
    old, new = ({"sku": "A", "qty": qty} for qty in (None, 3))
    assert [row["body"] for row in sorted(read, key=lambda row: row["_id"])] == [
        {"kind": "sale", "items": [old], "at": None},
        {"kind": "sale", "items": [new], "at": 7},
        {"kind": "sale", "items": [old], "at": None},
    ]
    assert tables.by_polars(silver, "sku") == {"A": 3}
    found = (
        archived(spark.newSession(), silver).selectExpr("body.at", "body.items[0].qty").collect()
    )
    assert sorted(map(tuple, found), key=str) == [(7, 3), (None, None), (None, None)]


WIDER = {'qty = "int"': 'qty = "bigint"', "decimal(10,2)": "decimal(20,2)"}
REFUSED = {'qty = "int"': 'qty = "double"', "decimal(10,2)": "decimal(20,4)"}


def changed(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


@ONE
def test_a_wider_type_is_taken_or_refused_with_its_line(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path, form: str
) -> None:
    text = (TEXT + PAYLOAD).replace("<sku:string>", "<sku:string,qty:int>")
    wider = changed(text, WIDER | {"<sku:string,qty:int>": "<sku:string,qty:bigint>"})
    body = json.dumps({"kind": "sale", "items": [{"sku": "A", "qty": 3}]})
    add(penstock, 0, body=body)
    run_pipeline(pipeline_of(penstock, in_format(form, text)), spark, True)
    with pytest.raises(PipelineFileError, match="in silver") as caught:
        run_pipeline(pipeline_of(penstock, in_format(form, changed(text, REFUSED))), spark, True)
    assert [problem.line for problem in caught.value.problems] == [9, 10]
    wide = pipeline_of(penstock, in_format(form, wider))
    if form == DELTA:
        with pytest.raises(PipelineFileError, match="delta does not take this type: use int"):
            run_pipeline(wide, spark, True)
        return
    for minute, step in enumerate((wider, text), 1):
        add(penstock, minute, qty=2**40 if step == wider else 5, body=body)
        run_pipeline(pipeline_of(penstock, in_format(form, step)), spark, True)
    assert accounted(spark, tmp_path, form, penstock) == (3, 3, 0)
    silver = table(tmp_path, form, "silver")
    assert tables.seen(spark, silver, "qty") == Counter([2, 2**40, 5])
    assert tables.seen(spark, silver, "price") == Counter([Decimal("1.50")] * 3)
    found = [row["body"]["items"] for row in library_rows(silver)]
    assert found == [[{"sku": "A", "qty": 3}]] * 3
    compact(spark, silver.path)
    assert tables.seen(spark, silver, "qty") == Counter([2, 2**40, 5])


def library_rows(place: TablePlace) -> list[dict[str, Any]]:
    found = tables.library_table(place)
    read = found.to_pyarrow_table() if place.format == DELTA else found.scan().to_arrow()
    rows: list[dict[str, Any]] = read.to_pylist()
    return rows


@ONE
def test_a_lake_cannot_change_its_format(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path, form: str
) -> None:
    add(penstock, 0)
    run_pipeline(pipeline_of(penstock, in_format(form, TEXT)), spark, True)
    with pytest.raises(PipelineFileError) as caught:
        run_pipeline(pipeline_of(penstock, in_format("parquet", TEXT)), spark, True)
    first, second = caught.value.problems
    assert (first.line, second.line) == (19, 19)
    assert (
        f'bronze is in the format {form}, and a table cannot change its format: set format = "'
        in (first.text)
    )


@ONE
def test_a_table_of_another_program_stops_the_pipeline_with_one_line(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path, form: str
) -> None:
    (tmp_path / "lake" / "silver").mkdir(parents=True)
    (tmp_path / "lake" / "silver" / "x.parquet").write_text("somebody else's")
    add(penstock, 0)
    with pytest.raises(PipelineFailed, match="another program has written there") as caught:
        run_pipeline(pipeline_of(penstock, in_format(form, TEXT)), spark, True)
    assert caught.value.output == "silver"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "line", "says"),
    [
        ('path = "l"\nformat = "orc"', 8, 'format must be "parquet" or "delta" or "iceberg"'),
        ('path = "hdfs://h/l"\nformat = "delta"', 7, "cannot be written to hdfs"),
        ('path = "s3a://b/l"\nformat = "iceberg"', 7, "needs a catalog: set [archive.catalog]"),
        ('path = "l"\ncatalog = {uri = "x"}', 8, "the format parquet has no catalog"),
        ('path = "l"\nformat = "iceberg"\ncatalog = {uri = "x", namespace = "a/b"}', 9, "may have"),
    ],
)
def test_keys_that_do_not_fit_are_refused(keys: str, line: int, says: str, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    head = '[source]\nurl = "redis://127.0.0.1"\nstream = "s"\n[schema]\nv = "int"\n[archive]\n'
    file.write_text(head + keys)
    pipeline, problems = read_pipeline(file)
    assert pipeline is not None
    (problem,) = problems + rule_problems(pipeline)
    assert (problem.line, says in problem.text) == (line, True), problem


def test_the_properties_of_a_catalog_come_from_the_environment_and_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    file = tmp_path / "x.toml"
    file.write_text(
        '[source]\nurl = "redis://127.0.0.1"\nstream = "s"\n[schema]\nv = "int"\n'
        '[archive]\npath = "l"\nformat = "iceberg"\n'
        '[archive.catalog]\nname = "prod"\nuri = "http://catalog"\ntoken = "${TOKEN}"\n'
    )
    pipeline, problems = read_pipeline(file)
    assert pipeline is not None
    assert not problems
    assert not rule_problems(pipeline)
    assert pipeline.archive.catalog["token"] == "secret"
    assert "secret" not in repr(pipeline)
