"""A lake that another pipeline owns is refused with its line, before anything is written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.test_run import AGGREGATE, TEXT, accounted, add, pipeline_of

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.pipeline.definition.file import PipelineFileError
from penstock.spark.pipeline.run import run_pipeline

__all__ = ["pipeline_of"]  # the fixture

ONE, OTHER, BOTH = 'stream = "orders"', 'stream = "returns"', 'stream = ["orders", "returns"]'
PATTERN = 'streamPattern = "ord*"'


def test_a_copied_file_with_another_stream_is_refused(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    add(penstock, 0)
    run_pipeline(pipeline_of(penstock), spark, once=True)
    penstock.client.xadd("returns", {"sku": "A", "qty": 1})
    for source, shown in ((OTHER, "returns"), (PATTERN.replace("ord", "ret"), "ret*")):
        pipeline = pipeline_of(penstock, TEXT.replace(ONE, source))
        with pytest.raises(PipelineFileError) as caught:
            run_pipeline(pipeline, spark, once=True)
        (problem,) = caught.value.problems
        lines = Path(pipeline.file).read_text().split("\n")
        assert lines[problem.line - 1] == 'path = "lake"'
        assert f"of a pipeline that reads orders, and this one reads {shown}" in problem.text
    assert accounted(tmp_path / "lake", penstock) == (1, 1, 0)
    for number, source in enumerate((BOTH, PATTERN, ONE, BOTH.replace('"orders", ', "")), 2):
        run_pipeline(pipeline_of(penstock, TEXT.replace(ONE, source)), spark, once=True)
        assert accounted(tmp_path / "lake", penstock) == (2, 2, 0), number


def test_a_table_without_the_checkpoint_of_its_query_is_refused(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    pipeline = pipeline_of(penstock, TEXT.split("[reject]")[0] + AGGREGATE.replace("stream", "#"))
    for minute in (0, 5):
        add(penstock, minute)
    run_pipeline(pipeline, spark, once=True)
    checkpoints = tmp_path / "lake" / "_checkpoints"
    shutil.rmtree(checkpoints / "main")
    shutil.rmtree(checkpoints / "minute")
    with pytest.raises(PipelineFileError) as caught:
        run_pipeline(pipeline, spark, once=True)
    found = [problem.text for problem in caught.value.problems]
    assert [one.partition(" was written by query ")[0] for one in found] == [
        str(tmp_path / "lake" / name) for name in ("bronze", "gold/minute", "silver")
    ]
    assert all("_checkpoints" in one and "is missing: entries would be" in one for one in found)
