"""Which types a column may change to, and how values are converted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType

from penstock.spark.lake.column_types import (
    TypeConflict,
    converted,
    only_adds_fields,
    wider,
)
from penstock.spark.lake.columns import TYPE_CHANGES
from penstock.spark.lake.formats import ICEBERG
from penstock.spark.lake.manifest import ArchiveError

pytestmark = pytest.mark.usefixtures("spark")  # Spark parses the types


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        ("tinyint", "smallint", "smallint"),
        ("int", "bigint", "bigint"),
        ("bigint", "int", "bigint"),
        ("float", "double", "double"),
        ("decimal(10,2)", "decimal(12,4)", "decimal(12,4)"),
        ("decimal(12,2)", "decimal(10,2)", "decimal(12,2)"),
        ("array<int>", "array<bigint>", "array<bigint>"),
        ("map<string,int>", "map<string,bigint>", "map<string,bigint>"),
        ("struct<a:int>", "struct<a:int,b:string>", "struct<a:int,b:string>"),
        ("struct<a:int,b:string>", "struct<c:int,a:bigint>", "struct<a:bigint,b:string,c:int>"),
        (
            "array<struct<a:struct<b:int>>>",
            "array<struct<a:struct<b:int,c:int>>>",
            "array<struct<a:struct<b:int,c:int>>>",
        ),
    ],
)
def test_the_wider_type_holds_the_values_of_both(old: str, new: str, both: str) -> None:
    assert wider(DataType.fromDDL(old), DataType.fromDDL(new), ("v",)).simpleString() == both


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("int", "string", ("v",)),
        ("int", "double", ("v",)),
        ("bigint", "decimal(20,0)", ("v",)),
        ("date", "timestamp", ("v",)),
        ("decimal(10,2)", "decimal(10,4)", ("v",)),
        ("string", "binary", ("v",)),
        ("int", "array<int>", ("v",)),
        ("map<int,int>", "map<bigint,int>", ("v",)),
        ("struct<a:struct<b:int>>", "struct<a:struct<b:string>>", ("v", "a", "b")),
    ],
)
def test_other_types_are_refused_with_the_path_of_the_part(
    old: str, new: str, path: tuple[str, ...]
) -> None:
    for one, other in ((old, new), (new, old)):
        with pytest.raises(TypeConflict) as caught:
            wider(DataType.fromDDL(one), DataType.fromDDL(other), ("v",))
        assert caught.value.path == path


def test_fields_of_a_struct_keep_their_spelling() -> None:
    with pytest.raises(ArchiveError, match=r"column v\.A: the lake spells it a\."):
        wider(DataType.fromDDL("struct<a:int>"), DataType.fromDDL("struct<A:int>"), ("v",))


@pytest.mark.parametrize(
    ("value", "have", "wanted", "text"),
    [
        ("7", "int", "bigint", "7"),
        ("1.5", "decimal(10,2)", "decimal(12,4)", "1.5000"),
        ("null", "struct<a:int>", "struct<a:int,b:int>", "null"),
        ("named_struct('a', 1)", "struct<a:int>", "struct<b:string,a:bigint>", '{"a":1}'),
        ("array(named_struct('a', 1), null)", "array<struct<a:int>>", "", '[{"a":1},null]'),
        ("map('k', named_struct('a', 1))", "map<string,struct<a:int>>", "", '{"k":{"a":1}}'),
    ],
)
def test_values_are_converted(spark: Any, value: str, have: str, wanted: str, text: str) -> None:
    there = DataType.fromDDL(have)
    goal = DataType.fromDDL(wanted or have.replace("a:int", "a:bigint,z:string"))
    frame = spark.sql(f"select cast({value} as {have}) as v")
    made = frame.select(converted(F.col("v"), there, goal).alias("v"))
    assert made.schema["v"].dataType.simpleString() == goal.simpleString()
    shown = made.select(F.to_json(F.struct("v"))).collect()[0][0]
    assert shown == ("{}" if text == "null" else f'{{"v":{text}}}')


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("struct<a:int>", "struct<a:int,b:string>", True),
        ("array<struct<a:int>>", "array<struct<a:int,b:int>>", True),
        ("map<int,struct<a:int>>", "map<int,struct<a:int,b:int>>", True),
        ("int", "int", True),
        ("int", "bigint", False),
        ("struct<a:int>", "struct<a:bigint,b:string>", False),
        ("struct<a:int,b:string>", "struct<a:int>", False),
        ("array<int>", "array<bigint>", False),
    ],
)
def test_new_fields_of_structs_are_told_from_wider_types(
    old: str, new: str, expected: bool
) -> None:
    assert only_adds_fields(DataType.fromDDL(old), DataType.fromDDL(new)) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("int", "bigint", True),
        ("smallint", "int", True),
        ("bigint", "int", False),
        ("float", "double", True),
        ("int", "double", False),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(12,3)", False),
        ("decimal(10,2)", "decimal(9,2)", False),
        ("array<struct<a:int>>", "array<struct<a:bigint,b:string>>", True),
        ("map<int,float>", "map<int,double>", True),
        ("map<int,float>", "map<bigint,float>", False),
        ("string", "binary", False),
    ],
)
def test_iceberg_takes_some_wider_types(old: str, new: str, expected: bool) -> None:
    takes = TYPE_CHANGES[ICEBERG]
    assert takes(DataType.fromDDL(old), DataType.fromDDL(new)) == expected
