"""SQL that fails for a value stops the pipeline. The error names its line; after the fix nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.test_run import AGGREGATE, TEXT, accounted, add, pipeline_of
from tests.support.campaign import cells

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from pyspark.errors import PySparkException

from penstock.spark.pipeline.rebuild.from_archive import RebuildError
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.run import (
    PipelineFailed,
    pipeline_session,
    rebuild_pipeline,
    run_pipeline,
)
from penstock.spark.pipeline.targets.failed_sql import failed_sql
from penstock.spark.pipeline.targets.output_error import OutputError

__all__ = ["pipeline_of"]  # the fixture

OLD = 'known = "sku is not null"\n'  # on line 14
COLUMNS = '[columns]\nfirst = "sku"\nlink = "SQL"\n'  # the last one is on line 25


@pytest.mark.parametrize(
    ("section", "failing", "fixed", "says"),
    cells(
        [
            (COLUMNS, "url_decode(first)", "try_url_decode(first)", "The provided URL cannot"),
            (
                'link = "SQL"\n',
                "element_at(array(true), qty)",
                "qty >= 0",
                "The index 0 is invalid",
            ),
            (COLUMNS, "size(sequence(0L, qty - 7000000000L))", "qty", "Can't create array with"),
        ]
    ),
)
def test_it_is_named_and_the_pipeline_continues_after_the_fix(
    spark: Any,
    penstock: Broker,
    pipeline_of: Any,
    tmp_path: Path,
    section: str,
    failing: str,
    fixed: str,
    says: str,
) -> None:
    is_column = section == COLUMNS
    text = TEXT + section if is_column else TEXT.replace(OLD, section)
    run_pipeline(pipeline_of(penstock, text.replace("SQL", fixed)), spark, once=True)
    add(penstock, 0, sku="%zz", qty=0)
    add(penstock, 1)
    with pytest.raises(PipelineFailed) as caught:
        run_pipeline(pipeline_of(penstock, text.replace("SQL", failing)), spark, once=True)
    line = 25 if is_column else 14
    assert f"{tmp_path}/shop.toml:{line}: link fails for a row: {says}" in str(caught.value)
    assert "\n" not in str(caught.value)
    run_pipeline(pipeline_of(penstock, text.replace("SQL", fixed)), spark, once=True)
    assert accounted(tmp_path / "lake", penstock) == (2, 1, 1)


DEDUP = '\n[dedup]\nkey = ["sku"]\nwithin = "1 hour"\n'
FAILING = COLUMNS.replace("SQL", "element_at(array(true), qty - 2)")  # qty is 2


def line_of(file: str, key: str) -> int:
    lines = Path(file).read_text().split("\n")
    return next(number for number, line in enumerate(lines, 1) if line.startswith(key))


def fails(spark: Any, pipeline: Any, says: str, key: str) -> None:
    """A run fails with this text, and names the line of this key."""
    with pytest.raises(PipelineFailed, match=says) as caught:
        run_pipeline(pipeline, spark, once=True)
    assert f":{line_of(pipeline.file, key)}: " in str(caught.value)


@pytest.mark.parametrize("queries", cells(["stream", "silver"]))
def test_a_measure_is_named(spark: Any, penstock: Broker, pipeline_of: Any, queries: str) -> None:
    measures = (
        'measures = { orders = "count(*)", broken = "max(element_at(array(true), qty - 2))" }'
    )
    old = next(line for line in AGGREGATE.split("\n") if line.startswith("measures"))
    text = TEXT + (DEDUP if queries == "silver" else "") + AGGREGATE.replace(old, measures)
    pipeline = pipeline_of(penstock, text)
    add(penstock, 0)
    fails(spark, pipeline, "broken fails for a row: The index 0 is", "measures")


def test_measures_are_named_if_one_fails_for_rows_of_several_batches(
    spark: Any, penstock: Broker, pipeline_of: Any
) -> None:
    measures = AGGREGATE.replace("count(*)", "element_at(array(1, 1), cast(3 - count(*) as int))")
    pipeline = pipeline_of(penstock, TEXT + measures)
    add(penstock, 0)
    add(penstock, 0)
    run_pipeline(pipeline, spark, once=True)
    add(penstock, 0)
    add(penstock, 9)
    fails(spark, pipeline, "measures fails for a row: The index 0 is", "measures")


def test_it_is_named_before_the_first_target_gets_the_batch(
    spark: Any, penstock: Broker, pipeline_of: Any
) -> None:
    pipeline = pipeline_of(penstock, TEXT + FAILING + DEDUP.replace('"sku"', '"link"'))
    add(penstock, 0)
    fails(spark, pipeline, "link fails for a row: The index 0 is", "link")


def test_it_is_named_while_an_output_catches_up_and_while_tables_are_computed_again(
    spark: Any, penstock: Broker, pipeline_of: Any
) -> None:
    bare = TEXT.replace('\n[reject]\nstream = "rejected"\n', "")
    add(penstock, 0)
    run_pipeline(pipeline_of(penstock, bare), spark, once=True)
    condition = 'link = "element_at(array(true), qty - 2)"\n'
    joining = pipeline_of(penstock, TEXT.replace(OLD, condition))
    with pytest.raises(OutputError, match=r"output reject: .*toml:14: link fails for a row"):
        run_pipeline(joining, spark, once=True)
    pipeline = pipeline_of(penstock, TEXT + FAILING)
    line = line_of(pipeline.file, "link")
    with pytest.raises(RebuildError, match=f"toml:{line}: link fails .*; the tables are unchanged"):
        rebuild_pipeline(pipeline, spark)


def test_only_the_rows_of_the_first_batch_are_searched(
    spark: Any, penstock: Broker, pipeline_of: Any
) -> None:
    for minutes in range(3):
        add(penstock, minutes)
    second, third = (one.decode() for one, _ in penstock.client.xrange("orders")[1:])
    start = f'group = "lake"\nstarting = {{orders = "{second}"}}'
    pipeline = pipeline_of(penstock, TEXT.replace('group = "lake"', start))
    rows = frames.stored_entries(pipeline_session(spark), pipeline, {}, {"orders": third})
    assert [row._id for row in rows.select("_id").collect()] == [second, third]


def test_the_error_itself_is_reported_if_the_rows_cannot_be_read_again(
    spark: Any, penstock: Broker, pipeline_of: Any
) -> None:
    def read() -> Any:
        raise PySparkException("the server is gone")

    error = PySparkException("[DIVIDE] by zero. SQLSTATE: 22012")
    assert failed_sql(pipeline_of(penstock, TEXT + FAILING), error, read) is None
