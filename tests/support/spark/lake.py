"""Reads a lake with several readers, and fails file operations at a chosen one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pyarrow.dataset as ds

from penstock.spark.lake.files import LakeFiles


class Crash(BaseException):
    """Simulates the end of the process. No code may catch it and clean up."""


class FailingFiles(LakeFiles):
    """Stops before the n-th change, counted from 1. A file that it stops at is half written."""

    def __init__(self, spark: Any, stop_at: int | None = None) -> None:
        super().__init__(spark)
        self.stop_at = stop_at
        self.changes = 0

    def create(self, path: str, text: str) -> None:
        if self._is_last():
            super().create(path, text[: len(text) // 2])
            raise Crash(path)
        super().create(path, text)

    def rename(self, path: str, target: str) -> None:
        if self._is_last():
            raise Crash(path)
        super().rename(path, target)

    def delete(self, path: str) -> bool:
        if self._is_last():
            raise Crash(path)
        return super().delete(path)

    def _is_last(self) -> bool:
        self.changes += 1
        return self.changes == self.stop_at


def files_seen(lake: Path) -> list[Path]:
    """The files that a Parquet glob finds, including hidden ones."""
    return sorted(lake.rglob("*.parquet"))


def by_duckdb(lake: Path, column: str = "v") -> Counter[Any]:
    if not files_seen(lake):
        return Counter()
    glob = f"{lake}/**/*.parquet"
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"select {column} from read_parquet(?, hive_partitioning=true)", [glob]
        ).fetchall()
    return Counter(row[0] for row in rows)


def by_arrow(lake: Path, column: str = "v") -> Counter[Any]:
    if not files_seen(lake):
        return Counter()
    table = ds.dataset(lake, format="parquet", partitioning="hive").to_table([column])
    return Counter(table[column].to_pylist())


def by_spark(spark: Any, lake: Path, column: str = "v") -> Counter[Any]:
    if not files_seen(lake):
        return Counter()
    # A session caches the listing of files.
    rows = spark.newSession().read.parquet(str(lake)).select(column).collect()
    return Counter(row[0] for row in rows)


def by_pandas(lake: Path, column: str = "v") -> Counter[Any]:
    if not files_seen(lake):
        return Counter()
    values = pandas.read_parquet(lake, columns=[column])[column]
    pairs = zip(values, values.isna(), strict=True)
    return Counter(None if is_null else value for value, is_null in pairs)


def seen(spark: Any, lake: Path) -> Counter[Any]:
    """The values of v with their counts. Checks that all readers agree."""
    found = seen_without_spark(lake)
    assert by_spark(spark, lake) == found
    return found


def seen_without_spark(lake: Path) -> Counter[Any]:
    """The same without Spark, whose reads are too slow for each step of a crash test."""
    found = by_duckdb(lake)
    assert by_arrow(lake) == found
    assert by_pandas(lake) == found
    return found
