"""Streams in Spark: the data source "penstock", and what is built on it.

    import penstock.spark
    penstock.spark.register(spark)
    spark.read.format("penstock").option("url", "redis://127.0.0.1:6379").option("stream", "orders").load()

What needs pyspark is imported when it is first asked for: options, offsets and plans can be used, and
tested, without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "register": "penstock.spark.source.data_source",
    "read_stream": "penstock.spark.source.data_source",
    "write_stream": "penstock.spark.source.data_source",
    "PenstockSource": "penstock.spark.source.data_source",
    "build_session": "penstock.spark.runtime.session",
    "archive_writer": "penstock.spark.lake.archive",
    "compact": "penstock.spark.lake.compaction",
    "trim_archived": "penstock.spark.lake.trimming",
}

__all__ = [
    "PenstockSource",
    "archive_writer",
    "build_session",
    "compact",
    "read_stream",
    "register",
    "trim_archived",
    "write_stream",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
