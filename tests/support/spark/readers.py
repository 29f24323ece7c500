"""Reads a table whose files may have different columns, with each reader as its documentation says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

Rows = list[dict[str, Any]]


def by_spark(spark: Any, table: Path, columns: Sequence[str]) -> Rows:
    # A session caches the listing of files.
    frame = spark.newSession().read.option("mergeSchema", "true").parquet(str(table))
    return [row.asDict(recursive=True) for row in frame.select(*columns).collect()]


def by_duckdb(table: Path, columns: Sequence[str]) -> Rows:
    names = ", ".join(columns)
    with duckdb.connect() as connection:
        found = connection.execute(
            f"select {names} from read_parquet(?, hive_partitioning=true, union_by_name=true)",
            [f"{table}/**/*.parquet"],
        )
        return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]


def by_arrow(table: Path, columns: Sequence[str]) -> Rows:
    """With the columns of all files. pandas takes a table of pyarrow."""
    found = ds.dataset(table, format="parquet", partitioning="hive")
    schemas = [one.physical_schema for one in found.get_fragments()]
    whole = found.replace_schema(pa.unify_schemas([found.schema, *schemas]))
    rows: Rows = whole.to_table(list(columns)).to_pylist()
    return rows


def by_pandas(table: Path, columns: Sequence[str]) -> Rows:
    """By its own function, which takes the columns of the first file."""
    rows: Rows = pandas.read_parquet(table, columns=list(columns)).to_dict("records")
    return rows


def by_polars(table: Path, columns: Sequence[str]) -> Rows:
    files = [pl.scan_parquet(one) for one in sorted(table.rglob("*.parquet"))]
    return pl.concat(files, how="diagonal").select(columns).collect().to_dicts()


def read_by_all(spark: Any, table: Path, columns: Sequence[str]) -> Rows:
    """The rows in the order of the first column. Checks that all readers agree."""
    found = {
        "spark": by_spark(spark, table, columns),
        "duckdb": by_duckdb(table, columns),
        "arrow": by_arrow(table, columns),
        "polars": by_polars(table, columns),
    }
    ordered = {name: sorted(rows, key=lambda row: row[columns[0]]) for name, rows in found.items()}
    for name, rows in ordered.items():
        assert rows == ordered["spark"], name
    return ordered["spark"]
