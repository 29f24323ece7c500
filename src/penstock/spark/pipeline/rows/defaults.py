"""Defaults: the values of fields that an entry does not have.

A default is written as the value of a field would be, and is parsed like one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import AtomicType, DataType, StructField, StructType

from penstock.spark.lake.columns import quoted
from penstock.spark.source.values import convert


class DefaultError(ValueError):
    """A default that does not fit its column. The text says why."""


def with_defaults(read: DataFrame, defaults: Mapping[str, str]) -> DataFrame:
    """The rows with defaults instead of nulls. A value that did not parse is null too, but is rejected."""
    made = {
        name: F.coalesce(F.col(quoted(name)), default_value(text, read.schema[name].dataType))
        for name, text in defaults.items()
    }
    return read.withColumns(made) if made else read


def default_value(text: str, kind: DataType) -> Column:
    """A default as a value of its column. Raises: DefaultError."""
    if not isinstance(kind, AtomicType):
        raise DefaultError(
            f"a {kind.simpleString()} cannot have a default; use coalesce in [columns]"
        )
    arrow = to_arrow_schema(StructType([StructField("value", kind)]), timezone="UTC")
    values, bad = convert([text.encode()], arrow.field("value").type)
    if bad:
        raise DefaultError(f"the default {text!r} is not a value of the type {kind.simpleString()}")
    value = values[0].as_py()
    if isinstance(value, datetime) and value.tzinfo is None:
        return F.lit(value.isoformat(sep=" ")).cast(
            kind
        )  # lit would use the time zone of this machine
    return F.lit(value).cast(kind)
