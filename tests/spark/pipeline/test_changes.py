"""A file that changes between runs: columns, types, defaults. Every reader reads the table across it."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("duckdb")
pytest.importorskip("polars")

from penstock.spark.pipeline.definition.file import PipelineFileError, load_pipeline
from penstock.spark.pipeline.run import run_pipeline
from tests.support.spark.readers import read_by_all

TEXT = """[source]
url = "URL"
stream = "orders"

[schema]
number = "int"
qty = "int"
weight = "float"
price = "decimal(10,2)"
gone = "string"

[payload]
field = "body"

[payload.schema]
kind = "string"
items = "array<struct<sku:string>>"

[columns]
double = "qty * 2"

[archive]
path = "lake"

[reject]
stream = "rejected"
"""
CHANGES = (
    ('qty = "int"', 'qty = "bigint"'),
    ('weight = "float"', 'weight = "double"'),
    ('price = "decimal(10,2)"', 'price = "decimal(12,4)"'),
    ('gone = "string"', 'store = {type = "string", default = "online"}'),
    ("struct<sku:string>", "struct<sku:string,qty:int>"),
    ('kind = "string"', 'kind = "string"\nat = "bigint"'),
    ('double = "qty * 2"', 'double = "qty * 2"\nkind = "body.kind"'),
)
COLUMNS = ["number", "qty", "weight", "price", "gone", "double", "body"]

Run = Callable[..., None]


def changed(*changes: tuple[str, str]) -> str:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture
def run(spark: Any, penstock: Broker, tmp_path: Path) -> Run:
    """run(text): run the pipeline of a text over all existing entries."""

    def running(text: str) -> None:
        file = tmp_path / "shop.toml"
        file.write_text(text.replace("URL", penstock.options["url"]))
        run_pipeline(load_pipeline(file), spark, once=True)

    return running


def add(broker: Broker, number: int, **fields: Any) -> None:
    body = json.dumps({"kind": "sale", "items": [{"sku": "A", "qty": 3}], "at": 7})
    order = {"number": number, "qty": 2, "weight": "0.5", "price": "1.5", "body": body} | fields
    broker.client.xadd("orders", order)


def test_all_readers_read_across_every_change(
    spark: Any, penstock: Broker, run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    silver = tmp_path / "lake" / "silver"
    add(penstock, 0, gone="g")
    run(TEXT)
    assert read_by_all(spark, silver, COLUMNS)[0]["gone"] == "g"
    large = 5_000_000_000
    add(penstock, 1, qty=large, weight="0.1", price="1.2345", gone="no column", store="Rome")
    add(penstock, 2)
    with caplog.at_level("INFO", "penstock.spark.pipeline.run"):
        run(changed(*CHANGES))
    assert "silver: 100% rewritten with wider types" in caplog.messages
    first, second, third = read_by_all(spark, silver, [*COLUMNS, "store", "kind"])
    item = {"sku": "A", "qty": 3}
    assert first == {
        "number": 0,
        "qty": 2,
        "weight": 0.5,
        "price": Decimal("1.5000"),
        "gone": "g",
        "double": 4,
        "body": {"kind": "sale", "items": [{"sku": "A", "qty": None}], "at": None},
        "store": None,
        "kind": None,
    }
    assert second == {
        "number": 1,
        "qty": large,
        "weight": 0.1,
        "price": Decimal("1.2345"),
        "gone": None,
        "double": 2 * large,
        "body": {"kind": "sale", "items": [item], "at": 7},
        "store": "Rome",
        "kind": "sale",
    }
    assert (third["qty"], third["store"]) == (2, "online")
    add(penstock, 3, gone="g again")
    run(TEXT)  # the change is undone: the table keeps the wider types
    rows = read_by_all(spark, silver, [*COLUMNS, "store", "kind"])
    assert rows[:3] == [first, second, third]
    assert (rows[3]["gone"], rows[3]["qty"], rows[3]["store"]) == ("g again", 2, None)
    assert penstock.client.xlen("rejected") == 0


REFUSED = [
    ('gone = "string"', 'gone = "int"', "10: column gone is int, but string in silver"),
    ('kind = "string"', 'kind = "int"', "16: column body.kind is int, but string in silver"),
    ("<sku:string>", "<sku:int>", "17: column body.items.sku is int, but string in silver"),
    ('"qty * 2"', '"qty > 2"', "20: column double is boolean, but int in silver"),
    ('path = "lake"', 'path = "lake"\npartition_by = ["day", "qty"]', "24: "),
]


def test_changes_that_cannot_be_taken_are_refused_with_their_line(
    penstock: Broker, run: Run, tmp_path: Path
) -> None:
    add(penstock, 0)
    run(TEXT)
    for old, new, problem in REFUSED:
        with pytest.raises(PipelineFileError) as caught:
            run(changed((old, new)))
        (found,) = caught.value.problems
        assert f"{found.line}: {found.text}".startswith(problem)
        assert found.text.endswith(f"pipeline run {tmp_path / 'shop.toml'} --from-archive")


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ('{type = "int", default = "many"}', "7: qty: the default 'many' is not a value of the"),
        ('{type = "int", default = 1.5}', "7: qty: the default '1.5' is not a value of the type"),
        ('{type = "array<int>", default = "[]"}', "7: qty: a array<int> cannot have a default"),
        ('{type = "int", default = [1]}', "7: default must be a string, a number, true or false"),
        ("{default = 1}", "7: qty needs a type"),
        (
            '{type = "int", defualt = 1}',
            "7: defualt is unknown in [schema] (did you mean default?)",
        ),
        ("7", "7: qty must be a Spark type"),
    ],
)
def test_a_wrong_default_is_found_with_its_line(
    penstock: Broker, run: Run, column: str, problem: str
) -> None:
    text = changed(('qty = "int"', f"qty = {column}"), ('"qty * 2"', '"number * 2"'))
    with pytest.raises(PipelineFileError) as caught:
        run(text)
    found = caught.value.problems[0]
    assert f"{found.line}: {found.text}".startswith(problem)


def test_a_default_is_written_as_the_value_of_a_field(
    spark: Any, penstock: Broker, run: Run, tmp_path: Path
) -> None:
    defaults = {
        "a": ("boolean", "true", True),
        "b": ("decimal(10,2)", "1.5", Decimal("1.50")),
        "c": ("date", '"2026-11-16"', "2026-11-16"),
        "d": ("timestamp", '"2026-11-16T02:29:09Z"', "2026-11-16 02:29:09"),
        "e": ("timestamp_ntz", '"2026-11-16T02:29:09"', "2026-11-16 02:29:09"),
        "f": ("string", '""', ""),
        "g": ("binary", '"xy"', b"xy"),
        "h": ("tinyint", "-7", -7),
        "i": ("double", '"nan"', "nan"),
    }
    lines = [f'{n} = {{type = "{k}", default = {v}}}' for n, (k, v, _) in defaults.items()]
    add(penstock, 0)
    add(penstock, 1, a="no", h="x")  # h does not parse: the default does not hide it
    run(changed(('qty = "int"', "\n".join(['qty = "int"', *lines]))))
    table = spark.read.parquet(str(tmp_path / "lake" / "silver"))
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        (row,) = table.selectExpr(
            "a", "b", "string(c) c", "string(d) d", "string(e) e", "f", "g", "h", "lower(i) i"
        ).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert row.asDict() == {name: value for name, (_, _, value) in defaults.items()}
    ((_, rejected),) = penstock.client.xrange("rejected")
    assert rejected[b"_reason"] == b"parse:h"


PAYLOAD = TEXT[TEXT.index("[payload]") : TEXT.index("[columns]")]
LOOKUP = """
[[lookup]]
name = "shops"
path = "shops.csv"
format = "csv"
on = { number = "id" }
columns = ["shop"]
"""


def test_several_streams_get_a_first_payload_and_a_first_lookup(
    spark: Any, penstock: Broker, run: Run, tmp_path: Path
) -> None:
    text = changed(
        ('stream = "orders"', 'stream = ["orders", "returns"]\ngroup = "lake"'),
        ('double = "qty * 2"', "signed = \"if(_stream = 'returns', -qty, qty)\""),
    )
    add(penstock, 0)
    penstock.client.xadd("returns", {"number": 1, "qty": 5})
    run(text.replace(PAYLOAD, ""))
    penstock.client.xadd("returns", {"number": 2, "qty": 6})
    add(penstock, 3)
    (tmp_path / "shops.csv").write_text("id,shop\n2,Oslo\n0,Bern\n")
    run(text + LOOKUP)
    columns = ["number", "_stream", "signed", "shop", "body"]
    rows = read_by_all(spark, tmp_path / "lake" / "silver", columns)
    assert [tuple(row.values()) for row in rows] == [
        (0, "orders", 2, None, None),
        (1, "returns", -5, None, None),
        (2, "returns", -6, "Oslo", None),
        (3, "orders", 2, None, {"kind": "sale", "items": [{"sku": "A"}]}),
    ]
    for stream in ("orders", "returns"):
        (group,) = penstock.client.xinfo_groups(stream)
        assert (group["name"], group["lag"]) == (b"lake", 0)
