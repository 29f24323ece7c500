"""The formats of tables, and the one that a table has.

    parquet    Parquet files with manifests (archive.py); any reader of Parquet can read them
    delta      a Delta table (table_formats/delta.py)
    iceberg    an Iceberg table in a catalog (table_formats/iceberg.py)

The libraries of Delta and Iceberg are imported when they are needed. Nothing here imports Spark before that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from penstock.spark.lake.manifest import (
    MANIFESTS,
    ArchiveError,
    Files,
    Manifest,
    load_newest_or_none,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from penstock.spark.lake.files import LakeFiles
    from penstock.spark.lake.table_formats.table_log import TableLog

PARQUET, DELTA, ICEBERG = FORMATS = ("parquet", "delta", "iceberg")
DELTA_LOG, ICEBERG_METADATA = "_delta_log", "metadata"  # directories in a table
CATALOG_NAME = NAMESPACE = "penstock"
CATALOG_FILE = "_catalog.db"  # in the lake

_LIBRARIES = {DELTA: ("deltalake",), ICEBERG: ("pyiceberg", "sqlalchemy")}


class TableWriting(Protocol):
    """Writes batches to a table: an ArchiveWriter or a TableWriter."""

    @property
    def rows(self) -> int:
        """The rows of the last batch, 0 if it existed already."""

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a batch of a streaming query."""

    def append(
        self,
        frame: DataFrame,
        owners: Sequence[str],
        position: Mapping[str, str],
        left: Callable[[DataFrame, Manifest | None], DataFrame | None],
    ) -> int:
        """Write what is left of a batch. Returns the number of rows."""


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where a table is, and its format.

    An Iceberg table has a `name` in a catalog. Without properties of a catalog, the catalog is in `lake`.
    """

    path: str
    format: str = PARQUET
    name: str = ""
    lake: str = ""
    catalog: Mapping[str, str] = field(default_factory=dict, repr=False)

    def writer(self, partition_by: Sequence[str]) -> TableWriting:
        """The writer of this table. Raises: ArchiveError, if a library is missing."""
        from penstock.spark.lake.archive import ArchiveWriter
        from penstock.spark.lake.table_formats.table_writer import TableWriter

        if self.format == PARQUET:
            return ArchiveWriter(self.path, partition_by)
        return TableWriter(self.path, partition_by, self.log_at)

    def newest_or_none(self, files: LakeFiles) -> Manifest | None:
        """The newest batch, or None without a table."""
        root = files.qualify(self.path)
        if self.format == PARQUET:
            return load_newest_or_none(files, root)
        state = self.log_at(root).load()
        return None if state is None else state.newest

    def log_or_none(self, files: LakeFiles) -> TableLog | None:
        """The log of this table. A Parquet lake has none."""
        return None if self.format == PARQUET else self.log_at(files.qualify(self.path))

    def log_at(self, root: str) -> TableLog:
        """The log of this table, for its qualified path."""
        need_library(self.format)
        if self.format == DELTA:
            from penstock.spark.lake.table_formats.delta import DeltaLog

            return DeltaLog(root)
        from penstock.spark.lake.table_formats.iceberg import IcebergLog, TableName, local_catalog

        properties = dict(self.catalog) or local_catalog(self.lake)
        name = properties.pop("name", CATALOG_NAME)
        namespace = properties.pop("namespace", NAMESPACE)
        return IcebergLog(root, TableName(self.name, properties, name, namespace))


def found_format(files: Files, root: str) -> str | None:
    """The format of the table in a directory; None if there is no table."""
    names = files.names(root)
    if DELTA_LOG in names:
        return DELTA
    if MANIFESTS in names:
        return PARQUET
    if any(name.endswith(".metadata.json") for name in files.names(f"{root}/{ICEBERG_METADATA}")):
        return ICEBERG
    return None


def found_log(files: Files, root: str) -> TableLog | None:
    """The log of the table in a directory; None if it is a Parquet lake or no table. Raises: ArchiveError.

    An Iceberg table is found if its catalog is in the lake.
    """
    form = found_format(files, root)
    if form in (None, PARQUET):
        return None
    need_library(str(form))
    if form == DELTA:
        from penstock.spark.lake.table_formats.delta import DeltaLog

        return DeltaLog(root)
    from penstock.spark.lake.table_formats.iceberg import IcebergLog, find_table

    table = find_table(root)
    if table is None:
        raise ArchiveError(
            f"{root} looks like an Iceberg table, but no {CATALOG_FILE} above it names it: it is in another"
            " catalog. Read it by that catalog"
        )
    return IcebergLog(str(Path(root).absolute()) if ":" not in root else root, table)


def missing_library(form: str) -> str | None:
    """What to install for a format, or None if everything is there."""
    missing = [name for name in _LIBRARIES.get(form, ()) if find_spec(name) is None]
    return f"needs {missing[0]}: pip install 'penstock[{form}]'" if missing else None


def need_library(form: str) -> None:
    """Raises: ArchiveError, if the library of a format is missing."""
    missing = missing_library(form)
    if missing is not None:
        raise ArchiveError(f"the format {form} {missing}")
