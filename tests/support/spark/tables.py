"""Reads Delta and Iceberg tables with several readers, and stops a writer at a chosen step."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from penstock.spark.lake.formats import DELTA, TablePlace
from penstock.spark.lake.manifest import DataFile, Manifest
from penstock.spark.lake.table_formats.iceberg import local_catalog
from penstock.spark.lake.table_formats.table_log import TableState, plain_path
from penstock.spark.replay import archived
from tests.support.spark.lake import Crash

os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")  # the other one is not installed


def place_of(folder: Path, form: str, name: str = "t") -> TablePlace:
    """A table in a lake in this folder."""
    return TablePlace(str(folder / "lake" / name), form, name, str(folder / "lake"))


def library_table(place: TablePlace) -> Any:
    """The table of deltalake or pyiceberg."""
    if place.format == DELTA:
        return DeltaTable(place.path)
    return load_catalog("penstock", **local_catalog(place.lake)).load_table(
        ("penstock", place.name)
    )


def by_library(place: TablePlace, column: str = "v") -> Counter[Any]:
    table = library_table(place)
    read = table.to_pyarrow_table() if place.format == DELTA else table.scan().to_arrow()
    return Counter(read[column].to_pylist())


def by_pandas(place: TablePlace, column: str = "v") -> Counter[Any]:
    table = library_table(place)
    read = table.to_pandas() if place.format == DELTA else table.scan().to_pandas()
    pairs = zip(read[column], read[column].isna(), strict=True)
    return Counter(None if is_null else value for value, is_null in pairs)


def by_polars(place: TablePlace, column: str = "v") -> Counter[Any]:
    if place.format == DELTA:
        read = polars.scan_delta(place.path)
    else:
        read = polars.scan_iceberg(library_table(place))
    return Counter(read.select(column).collect()[column].to_list())


def by_duckdb(place: TablePlace, column: str = "v") -> Counter[Any]:
    """By the file list: the extensions of DuckDB for both formats must be downloaded."""
    log = place.log_at(place.path)
    state = log.load()
    assert state is not None
    paths = [plain_path(file.path) for file in log.files(state)]
    if not paths:
        return Counter()
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"select {column} from read_parquet(?, union_by_name=true)", [paths]
        ).fetchall()
    return Counter(row[0] for row in rows)


def by_spark(spark: Any, place: TablePlace, column: str = "v") -> Counter[Any]:
    rows = archived(spark.newSession(), place).select(column).collect()
    return Counter(row[0] for row in rows)


def seen(spark: Any, place: TablePlace, column: str = "v") -> Counter[Any]:
    """The values of a column with their counts. Checks that all readers agree."""
    found = by_library(place, column)
    assert by_duckdb(place, column) == found
    assert by_pandas(place, column) == found
    assert by_polars(place, column) == found
    assert by_spark(spark, place, column) == found
    return found


class SteppedLog:
    """The log of a table that calls a function before and after each change."""

    def __init__(self, place: TablePlace, step: Callable[[], None]) -> None:
        self._log = place.log_at(place.path)
        self._step = step
        self.root = self._log.root
        self.format = self._log.format
        self.own_names = self._log.own_names
        self.keeps_partitions = self._log.keeps_partitions

    def load(self) -> TableState | None:
        return self._log.load()

    def create(self, first: Manifest) -> None:
        self._step()
        self._log.create(first)
        self._step()

    def commit(self, before: TableState, after: Manifest, files: Sequence[DataFile]) -> list[str]:
        self._step()
        names = self._log.commit(before, after, files)
        self._step()
        return names

    def files(self, state: TableState) -> Any:
        return self._log.files(state)

    def compact(self, state: TableState, target_bytes: int, rewrite: Any) -> None:
        self._log.compact(state, target_bytes, rewrite)


def acting_at(place: TablePlace, number: int, act: Callable[[], None]) -> Callable[[str], Any]:
    """Open a log that acts at the n-th step, counted from 1."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps == number:
            act()

    return lambda _: SteppedLog(place, step)


def stopping_at(place: TablePlace, number: int) -> Callable[[str], Any]:
    """Open a log that stops at the n-th step, as if the process were killed."""

    def stop() -> None:
        raise Crash(f"step {number}")

    return acting_at(place, number, stop)
