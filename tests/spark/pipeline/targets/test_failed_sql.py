"""SQL that fails for a value stops the pipeline. The error names its line; after the fix nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.test_run import TEXT, accounted, add, pipeline_of
from tests.support.campaign import cells

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.pipeline.run import PipelineFailed, run_pipeline

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
