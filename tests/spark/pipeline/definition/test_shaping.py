"""[dedup], [[lookup]] and [[table]]: what is read, and every mistake with its line. Needs no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.lake.formats import FORMATS
from penstock.spark.pipeline.definition.file import load_pipeline, read_pipeline
from penstock.spark.pipeline.definition.rules import rule_problems
from penstock.spark.pipeline.definition.shaping import Dedup, Lookup, UpsertTable

TEXT = """[source]
url = "redis://127.0.0.1:7000"
stream = "orders"
[schema]
order_id = "string"
sku = "string"
[archive]
path = "lake"
[dedup]
key = ["order_id"]
within = "1 hour"
[[lookup]]
name = "products"
path = "products"
on = ["sku"]
columns = ["title", "price"]
[[table]]
name = "latest"
key = ["sku"]
"""

AGGREGATE = """[[aggregate]]
name = "a"
window = "1 hour"
watermark = "1 hour"
measures = { n = "count(*)" }
"""


def told(path: Path, text: str) -> list[str]:
    path.write_text(text)
    pipeline, problems = read_pipeline(path)
    assert pipeline is not None
    return [f"{one.line}: {one.text}" for one in sorted([*problems, *rule_problems(pipeline)])]


def test_the_sections_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "orders.toml"
    path.write_text(TEXT)
    pipeline = load_pipeline(path)
    assert pipeline.dedup == Dedup(("order_id",), 3_600_000)
    products = str(tmp_path / "products")
    same = {"title": "title", "price": "price"}
    assert pipeline.lookups == (Lookup("products", {"sku": "sku"}, same, {}, products),)
    assert pipeline.tables == (UpsertTable("latest", ("sku",)),)
    assert pipeline.scalars == ("order_id", "sku", "title", "price")
    assert rule_problems(pipeline) == []

    monkeypatch.setenv("DATABASE_PASSWORD", "s3cret")
    path.write_text(
        TEXT.replace(
            'path = "products"\non = ["sku"]\ncolumns = ["title", "price"]\n',
            'jdbc = "jdbc:sqlite:x"\ntable = "p"\non = { sku = "code" }\ncolumns = { title = "name" }\n'
            'required = true\nrefresh = "10 minutes"\ntypes = { title = "string" }\n'
            'options = { password = "${DATABASE_PASSWORD}" }\n',
        )
    )
    (lookup,) = load_pipeline(path).lookups
    assert (lookup.jdbc, lookup.table) == ("jdbc:sqlite:x", "p")
    assert (lookup.on, lookup.columns) == ({"sku": "code"}, {"title": "name"})
    assert (lookup.required, lookup.refresh_ms) == (True, 600_000)
    assert lookup.options == {"password": "s3cret"}
    assert "s3cret" not in repr(lookup)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("within =", "whithin =", "11: whithin is unknown in [dedup] (did you mean within?)"),
        ("1 hour", "an hour", "11: within must be a duration like"),
        ("1 hour", "0 hours", "11: within must be a duration like"),
        ('within = "1 hour"\n', "", "9: [dedup] needs within"),
        ('["order_id"]', '["nope"]', "10: there is no column nope; there are _stream, order_id"),
        ('["order_id"]', "[]", "10: [dedup] needs at least one column as key"),
        ('key = ["order_id"]\n', "", "9: [dedup] needs key"),
        ("on =", "onn =", "15: onn is unknown in [lookup] (did you mean on?)"),
        ('path = "products"\n', "", "12: [[lookup]] needs either path or jdbc"),
        ('path = "products"', 'jdbc = "jdbc:x"', "12: [[lookup]] needs table"),
        ('path = "products"', 'path = "p"\ntable = "t"', "15: table is only for a lookup with"),
        (
            'path = "products"',
            'path = "p"\nformat = "xml"',
            '15: format must be "parquet" or "csv"',
        ),
        ('on = ["sku"]', 'on = ["suk"]', "15: there is no column suk; there are _stream, order_id"),
        ('on = ["sku"]', "on = { sku = 1 }", "15: on must be an array of names, or a table"),
        ('"price"]', '"sku"]', "16: sku and sku are the same column to Spark"),
        ('"price"]', '"_lookup_x"]', "16: _lookup_x is a column of the source itself"),
        ('"price"]', '"price"]\ntypes = { cost = "int" }', "17: cost is not in columns"),
        ('"price"]', '"price"]\nrequired = "yes"', "17: required must be true or false"),
        ('"price"]', '"price"]\nrefresh = "often"', "17: refresh must be a duration like"),
        ('name = "products"', 'name = "a b"', "13: the name of a lookup may have letters"),
        ('key = ["sku"]', 'key = ["nope"]', "19: there is no column nope"),
        ('name = "latest"', 'name = "silver"', "18: there is already an output silver"),
        ('name = "latest"', 'name = "_x"', "18: _x: readers skip directories that start with"),
        ('key = ["sku"]', 'key = ["sku"]\nbuckets = 0', "20: buckets must be a whole number"),
        ('key = ["sku"]', 'key = ["sku"]\nbuckets = 2000', "20: buckets must be at most 1024"),
        ('key = ["sku"]', 'key = ["sku"]\norder_by = "at"', "20: there is no column at"),
        ('key = ["sku"]', 'key = ["sku"]\npath = "lake/silver/x"', "20: "),
    ],
)
def test_a_mistake_is_found_with_its_line(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert TEXT.count(old) == 1
    found = told(tmp_path / "orders.toml", TEXT.replace(old, new))
    assert any(one.startswith(problem) for one in found), found


@pytest.mark.parametrize("form", FORMATS[1:])
def test_sections_that_need_parquet_are_refused_with_other_formats(
    tmp_path: Path, form: str
) -> None:
    text = TEXT.replace('path = "lake"\n', f'path = "lake"\nformat = "{form}"\n')
    needs = f"needs Parquet tables, and the format is {form}: archive into another directory"
    found = told(tmp_path / "orders.toml", text + AGGREGATE)
    assert [one.partition(" with format")[0] for one in found] == [
        f"10: [dedup] {needs}",
        f"13: [[lookup]] with an aggregate {needs}",
        f"18: [[table]] {needs}",
    ]


def test_aggregates_over_decided_rows_need_a_lake_of_this_machine(tmp_path: Path) -> None:
    text = TEXT.replace('path = "lake"', 'path = "s3a://bucket/lake"')
    assert told(tmp_path / "orders.toml", text) == []
    (found,) = told(tmp_path / "orders.toml", text + AGGREGATE)
    assert found.startswith("8: with [dedup], aggregates read silver")
