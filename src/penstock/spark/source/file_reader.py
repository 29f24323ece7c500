"""Batch reads of files with `format("penstock").option("path", ...)`, without a server. files.py reads them.

path        an RDB file, an AOF directory, or a glob of either
what        entries (default), pending, groups
stream      keys or globs; default: all
database    a number; default: all
fieldsType, onParseError    as for a server
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from penstock.client.rows import RowLimits
from penstock.persist.offline import check_path
from penstock.spark.option_reader import OptionError, OptionReader
from penstock.spark.runtime.short_errors import short_errors
from penstock.spark.source.files import GROUPS, PENDING, WHATS, OfflineQuery, batches_in
from penstock.spark.source.schema import DEFAULT_SCHEMAS

NAMES = ("path", "what", "stream", "database", "fieldsType", "onParseError")
DATABASES_MAX = 2**31 - 1


@dataclass(frozen=True)
class PathPartition(InputPartition):
    """One file or directory."""

    path: str


def is_offline(given: Mapping[str, str]) -> bool:
    """Whether the options select files."""
    return any(name.lower() == "path" for name in given)


def offline_schema(given: Mapping[str, str]) -> StructType | str:
    """The columns if the user gives no schema."""
    reader = OptionReader(given, NAMES)
    what = reader.one_of("what", WHATS, "entries")
    if what == "entries":
        kind = reader.one_of("fieldsType", tuple(DEFAULT_SCHEMAS), "string")
        return DEFAULT_SCHEMAS[kind]
    return from_arrow_schema(PENDING if what == "pending" else GROUPS)


@short_errors
class OfflineReader(DataSourceReader):
    """Reads each path as one partition."""

    def __init__(self, given: Mapping[str, str], schema: pa.Schema) -> None:
        reader = OptionReader(given, NAMES)
        self._path = reader.required("path", "an RDB file, an AOF directory or a glob")
        fails = reader.one_of("onParseError", ("null", "fail"), "null") == "fail"
        self._schema = schema
        self._query = OfflineQuery(
            reader.one_of("what", WHATS, "entries"),
            reader.names("stream"),
            reader.integer("database", -1, 0, DATABASES_MAX),
            limits=RowLimits(fail_on_error=fails),
        )

    def partitions(self) -> Sequence[InputPartition]:
        """The paths that match. Raises: OptionError, CorruptData, OSError."""
        found = sorted(glob(self._path))  # noqa: PTH207  Path.glob takes no absolute pattern
        if not found:
            raise OptionError("path", self._path, "a path or glob of files that exist")
        for path in found:
            check_path(path)
        return [PathPartition(path) for path in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a file. Runs in a worker, which must see the same files."""
        assert isinstance(partition, PathPartition)
        return batches_in(partition.path, self._schema, self._query)
