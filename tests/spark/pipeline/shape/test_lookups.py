"""Lookups: columns of static tables in every place, rejects without a match, the same table on a retry."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.test_joining import fail_after
from tests.spark.pipeline.test_run import accounted, add, pipeline_of, rejected, rows

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.pipeline.run import PipelineFailed, pipeline_session, run_pipeline
from penstock.spark.pipeline.targets.pinned_lookups import PinnedLookups

__all__ = ["pipeline_of"]  # the fixture

SQLITE_JAR = Path("/usr/share/java/sqlite-jdbc.jar")

TEXT = """
[source]
url = "{url}"
stream = "orders"

[schema]
code = "string"
qty = "int"
at = "timestamp"

[columns]
sku = "upper(code)"
value = "qty * price"

[valid]
not_cheap = "price > 1"

[[lookup]]
name = "products"
path = "products.csv"
format = "csv"
on = { sku = "id" }
columns = { title = "name", price = "price" }
types = { price = "decimal(10,2)" }
required = true

[[lookup]]
name = "colours"
path = "colours.json"
format = "json"
on = ["title"]
columns = ["colour"]

[archive]
path = "lake"
partition_by = ["title"]

[reject]
stream = "rejected"

[[aggregate]]
name = "minute"
time = "at"
window = "1 minute"
watermark = "1 minute"
group_by = ["title"]
measures = { value = "sum(value)" }
"""

BARE = TEXT[: TEXT.index("[[aggregate]]")]
PRODUCTS = "id,name,price\nA,Anvil,2.50\nB,Bolt,0.10\nC,Clamp,4.00\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "products.csv").write_text(PRODUCTS)
    (tmp_path / "colours.json").write_text('{"title": "Anvil", "colour": "black"}\n')
    return tmp_path


def silver(spark: Any, folder: Path) -> list[tuple[Any, ...]]:
    found = sorted(rows(spark, folder / "lake" / "silver"), key=lambda row: row._id)
    return [(row.sku, row.title, row.price, row.value, row.colour) for row in found]


def test_columns_of_lookups_can_be_used_everywhere(
    spark: Any, penstock: Broker, pipeline_of: Any, folder: Path
) -> None:
    pipeline = pipeline_of(penstock, TEXT)
    for minutes, code in ((0, "a"), (0.1, "b"), (0.2, "x"), (0.3, None), (0.4, "c"), (0.5, "A")):
        add(penstock, minutes, code=code, sku=None, price=None)
    add(penstock, 5, code="c", sku=None, price=None)
    run_pipeline(pipeline, spark, once=True)
    assert silver(spark, folder) == [
        ("A", "Anvil", Decimal("2.50"), Decimal("5.00"), "black"),
        ("C", "Clamp", Decimal("4.00"), Decimal("8.00"), None),
        ("A", "Anvil", Decimal("2.50"), Decimal("5.00"), "black"),
        ("C", "Clamp", Decimal("4.00"), Decimal("8.00"), None),
    ]
    assert [one["_reason"] for one in rejected(penstock)] == [
        "not_cheap",
        "not_cheap,partition:title,lookup:products",
        "not_cheap,partition:title,lookup:products",
    ]
    assert accounted(folder / "lake", penstock) == (7, 4, 3)
    windows = {(row.title, row.value) for row in rows(spark, folder / "lake" / "gold" / "minute")}
    assert windows == {("Anvil", Decimal("10.00")), ("Clamp", Decimal("8.00"))}


def test_a_key_that_occurs_twice_is_refused(
    spark: Any, penstock: Broker, pipeline_of: Any, folder: Path
) -> None:
    text = BARE.replace('path = "products.csv"\nformat = "csv"', 'path = "products.parquet"')
    table = pa.table(
        {"id": ["A", "C", "C"], "name": ["Anvil", "Clamp", "Clasp"], "price": [2.5, 4, 1]}
    )
    pq.write_table(table, folder / "products.parquet")
    add(penstock, 0, code="a")
    with pytest.raises(PipelineFailed) as caught:
        run_pipeline(pipeline_of(penstock, text), spark, once=True)
    assert "lookup products: the table has 2 rows with id = C" in str(caught.value)
    assert not (folder / "lake" / "bronze").exists()
    pq.write_table(table.slice(0, 2), folder / "products.parquet")
    run_pipeline(pipeline_of(penstock, text), spark, once=True)
    assert silver(spark, folder) == [
        ("A", "Anvil", Decimal("2.50"), Decimal("5.00"), "black"),
    ]


def test_a_repeated_batch_gets_the_same_table(
    spark: Any,
    penstock: Broker,
    pipeline_of: Any,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for minutes, code in ((0, "a"), (0.1, "b"), (0.2, "c")):
        add(penstock, minutes, code=code)
    with monkeypatch.context() as patch:
        fail_after(patch, "silver")  # the rejects have not got the batch
        with pytest.raises(PipelineFailed, match="stopped by the test"):
            run_pipeline(pipeline_of(penstock, BARE), spark, once=True)
    changed = PRODUCTS.replace("2.50", "0.50").replace("0.10", "9.00").replace("4.00", "5.00")
    (folder / "products.csv").write_text(changed)
    add(penstock, 1, code="c")
    run_pipeline(pipeline_of(penstock, BARE), spark, once=True)
    assert accounted(folder / "lake", penstock) == (4, 3, 1)
    add(penstock, 2, code="c")
    run_pipeline(pipeline_of(penstock, BARE), spark, once=True)
    assert [price for _, _, price, _, _ in silver(spark, folder)][-1] == Decimal("5.00")
    copies = list((folder / "lake" / "_checkpoints" / "_lookups" / "products").iterdir())
    assert len([one for one in copies if one.name[0] != "."]) == 1


def test_a_repeated_batch_gets_a_column_that_was_added_meanwhile(
    spark: Any,
    penstock: Broker,
    pipeline_of: Any,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fewer = BARE.replace(', price = "price" }', " }").replace(
        'types = { price = "decimal(10,2)" }', ""
    )
    fewer = fewer.replace("qty * price", "qty").replace("price > 1", "qty > 1")
    add(penstock, 0, code="a")
    add(penstock, 0, code="x")
    with monkeypatch.context() as patch:
        fail_after(patch, "bronze")
        with pytest.raises(PipelineFailed, match="stopped by the test"):
            run_pipeline(pipeline_of(penstock, fewer), spark, once=True)
    run_pipeline(pipeline_of(penstock, BARE.replace("qty * price", "qty")), spark, once=True)
    assert accounted(folder / "lake", penstock) == (2, 1, 1)
    assert silver(spark, folder) == [("A", "Anvil", Decimal("2.50"), 2, "black")]
    copies = list((folder / "lake" / "_checkpoints" / "_lookups" / "products").iterdir())
    assert len([one for one in copies if one.name[0] != "."]) == 1


def test_a_table_is_read_again_after_refresh(
    spark: Any, penstock: Broker, pipeline_of: Any, folder: Path
) -> None:
    text = BARE.replace("required = true", 'required = true\nrefresh = "10 minutes"')
    pipeline = pipeline_of(penstock, text)
    session = pipeline_session(spark)
    read = session.createDataFrame([("a", 2)], "code string, qty int")
    now = [0.0]
    lookups = PinnedLookups(pipeline, -1, clock=lambda: now[0])

    def price(batch: int) -> Decimal:
        found: Decimal = lookups.joined(read, batch).collect()[0].price
        return found

    assert price(0) == Decimal("2.50")
    (folder / "products.csv").write_text(PRODUCTS.replace("2.50", "3.50"))
    now[0] = 599.0
    assert price(1) == Decimal("2.50")
    now[0] = 601.0
    assert price(1) == Decimal("2.50"), "the batch has begun"
    assert price(2) == Decimal("3.50")
    assert PinnedLookups(pipeline, 2).joined(read, 2).collect()[0].price == Decimal("3.50")


def test_a_lookup_reads_a_database(
    spark: Any, penstock: Broker, pipeline_of: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not SQLITE_JAR.exists():
        pytest.skip("no SQLite driver for Java")
    with sqlite3.connect(folder / "shop.db") as database:
        database.execute("create table products (id text, name text, price real)")
        database.execute("insert into products values ('A', 'Anvil', 2.5), ('C', 'Clamp', 4)")
    monkeypatch.setenv("SHOP", str(folder / "shop.db"))
    text = BARE.replace(
        'path = "products.csv"\nformat = "csv"',
        'jdbc = "jdbc:sqlite:${SHOP}"\ntable = "products"\noptions = { driver = "org.sqlite.JDBC" }',
    )
    _add_jar(spark)
    add(penstock, 0, code="a")
    add(penstock, 0, code="b")
    run_pipeline(pipeline_of(penstock, text), spark, once=True)
    assert accounted(folder / "lake", penstock) == (2, 1, 1)
    assert silver(spark, folder)[0][:3] == ("A", "Anvil", Decimal("2.50"))


def _add_jar(spark: Any) -> None:
    spark.sql(f"add jar '{SQLITE_JAR}'").collect()
