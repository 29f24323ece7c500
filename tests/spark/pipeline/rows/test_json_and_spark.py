"""Payloads that both accept are decoded as by from_json of Spark, whose rules are less strict than ours."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK

pytest.importorskip("pyspark", reason=NO_PYSPARK)

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.spark.pipeline.rows.json_payload import decode
from tests.support.campaign import cases, seed

TYPES = (
    "a bigint, b string, c array<struct<d:double,n:smallint>>, e boolean, f map<string,int>,"
    " g decimal(14,4), h date, who struct<id:int,tags:array<string>>"
)
CHARACTERS = 'aé"\\/\n\t\0 €😀'


def body_of(dice: random.Random) -> dict[str, Any]:
    """A random object whose members fit their types, are null, or are missing."""

    def text() -> str:
        return "".join(dice.choice(CHARACTERS) for _ in range(dice.randrange(6)))

    def several(make: Callable[[], Any]) -> list[Any]:
        return [make() for _ in range(dice.randrange(4))]

    def some(**members: Callable[[], Any]) -> dict[str, Any]:
        kept = {name: make for name, make in members.items() if dice.random() < 0.8}
        return {name: make() if dice.random() < 0.9 else None for name, make in kept.items()}

    def item() -> dict[str, Any]:
        return some(
            d=lambda: dice.choice([dice.uniform(-1e9, 1e9), dice.random() * 1e-300, 1e300, 0]),
            n=lambda: dice.randrange(-(2**15), 2**15),
        )

    return some(
        a=lambda: dice.choice([-(2**63), 2**63 - 1, dice.randrange(-99, 99)]),
        b=text,
        c=lambda: several(item),
        e=lambda: dice.random() < 0.5,
        f=lambda: {text(): dice.randrange(-(2**31), 2**31) for _ in range(dice.randrange(3))},
        g=lambda: dice.randrange(-(10**9), 10**9) / 100,
        h=lambda: str(date(1900, 1, 1) + timedelta(dice.randrange(70_000))),
        unknown=lambda: {"a": several(text)},
        who=lambda: some(id=lambda: dice.randrange(99), tags=lambda: several(text)),
    )


def test_valid_payloads_are_decoded_as_by_from_json(spark: Any) -> None:
    start = seed()
    dice = random.Random(start)
    bodies = [body_of(dice) for _ in range(cases(5000))]
    texts = [json.dumps(one, indent=dice.choice([None, 1])) for one in bodies]
    types = StructType.fromDDL(TYPES)
    assert isinstance(types, StructType)
    kind = pa.struct(list(to_arrow_schema(types, timezone="UTC")))
    values, reasons = decode([text.encode() for text in texts], kind, "body")
    assert reasons.null_count == len(texts), f"PENSTOCK_SEED={start}"
    frame = spark.createDataFrame(list(enumerate(texts)), "n int, text string").orderBy("n")
    rows = frame.select(F.from_json("text", TYPES).alias("value")).collect()
    for text, row, value in zip(texts, rows, values.to_pylist(), strict=True):
        ours = {**value, "f": None if value["f"] is None else dict(value["f"])}
        assert ours == row.value.asDict(recursive=True), f"PENSTOCK_SEED={start}: {text}"
    assert any(isinstance(value["g"], Decimal) for value in values.to_pylist())
