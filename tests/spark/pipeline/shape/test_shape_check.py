"""Checks of [dedup], [[lookup]] and [[table]] by Spark, each with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.pipeline.check import check_pipeline
from penstock.spark.pipeline.definition.file import read_pipeline
from penstock.spark.pipeline.run import pipeline_session

TEXT = """[source]
url = "redis://127.0.0.1:1"
stream = "orders"
[schema]
sku = "string"
qty = "int"
tags = "map<string,string>"
[columns]
value = "qty * price"
[valid]
priced = "price > 0"
[archive]
path = "lake"
[dedup]
key = ["sku"]
within = "1 hour"
[[lookup]]
name = "products"
path = "products.csv"
format = "csv"
on = { sku = "id" }
columns = ["price"]
types = { price = "decimal(10,2)" }
[[table]]
name = "latest"
key = ["sku"]
order_by = "qty"
delete_when = "qty < 0"
[[aggregate]]
name = "minute"
window = "1 minute"
watermark = "1 minute"
measures = { value = "sum(value)" }
"""


def problems(spark: Any, folder: Path, text: str) -> list[str]:
    (folder / "products.csv").write_text("id,price\nA,1.50\n")
    path = folder / "orders.toml"
    path.write_text(text)
    pipeline, found = read_pipeline(path)
    assert pipeline is not None
    found = [*found, *check_pipeline(pipeline, pipeline_session(spark), is_offline=True)]
    return [f"{one.line}: {one.text}" for one in found]


def test_a_valid_file_has_no_problems(spark: Any, tmp_path: Path) -> None:
    assert problems(spark, tmp_path, TEXT) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"products.csv"', '"nope.csv"', "19: lookup products: "),
        (
            'sku = "id"',
            'sku = "code"',
            "21: lookup products: the table has no column code; it has id",
        ),
        (
            'columns = ["price"]',
            'columns = {price = "cost"}',
            "22: lookup products: the table has no",
        ),
        ('"decimal(10,2)"', '"decimall"', "23: 'decimall' is not a type for a column"),
        (
            'path = "products.csv"\nformat = "csv"',
            'jdbc = "jdbc:x:?p=S3"\ntable = "t"',
            "19: lookup",
        ),
        ('key = ["sku"]\nwithin', 'key = ["tags"]\nwithin', "15: key: "),
        ('key = ["sku"]\norder_by', 'key = ["tags"]\norder_by', "26: key: "),
        ('order_by = "qty"', 'order_by = "tags"', "27: order_by: "),
        ("qty < 0", "qty + 1", "28: delete_when is int, but must be boolean"),
        ("qty < 0", "qyt < 0", "28: delete_when: A column"),
        ("qty < 0", "rand() < 0", "28: delete_when may change between evaluations"),
    ],
)
def test_a_mistake_is_found_with_its_line(
    spark: Any, tmp_path: Path, old: str, new: str, problem: str
) -> None:
    assert TEXT.count(old) == 1
    (found,) = problems(spark, tmp_path, TEXT.replace(old, new))
    assert found.startswith(problem)
    assert "S3" not in found
