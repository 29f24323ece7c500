"""File operations of a lake: local files, hdfs://, s3a:// and whatever else Hadoop knows.

A rename is the commit. It is atomic on a local disk and on HDFS. On S3 it is a copy and a deletion, and the
copy appears completely or not at all. Files are never changed in place, and a name is never reused for other
content.

    local_files    on a local disk: without Java, because a batch takes about a hundred operations, and Hadoop
                   starts two processes (chmod) for each file that it creates there
    hadoop_files   everywhere else

`create`, `rename` and `delete` are the methods that change something; the crash tests stop at each of them.
`sync` is for a local disk, where a power failure may undo a rename.

A path without a scheme is on Hadoop's default file system. That of a pipeline's session is the local disk.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from penstock.spark.lake.hadoop_files import LOCAL_URL, HadoopFiles
from penstock.spark.lake.local_files import (
    LOCAL,
    LocalFiles,
    failed,
    is_local,
    local_path,
    write_atomically,
)
from penstock.spark.lake.manifest import ArchiveError

DEFAULT_SYSTEM = "fs.defaultFS"
_LOCAL_FILES = LocalFiles()

# Other readers take INT96, Spark's default, for a timestamp without a time zone.
_TIMESTAMPS = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")


class LakeFiles:
    """File operations. Paths are qualified (`qualify`)."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def qualify(self, path: str) -> str:
        """The path with its scheme and without a trailing slash."""
        place = re.sub(LOCAL_URL, "/", path)
        if place.startswith("/") and self._is_local(path):
            return LOCAL + posixpath.normpath(f"/{place.lstrip('/')}")
        return self._hadoop.qualify(path)

    def url(self, path: str) -> str:
        """The path as a URL, with escaped characters, as in Spark's `_metadata.file_path`."""
        return self._hadoop.url(path)

    def names(self, directory: str) -> list[str]:
        """The names in a directory, in order. Empty if the directory does not exist."""
        return self._of(directory).names(directory)

    def data_files(self, directory: str) -> list[tuple[str, int]]:
        """The Parquet files below a directory, in order: relative path and size in bytes."""
        return self._of(directory).data_files(directory)

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""
        return self._of(path).exists(path)

    def read(self, path: str) -> str:
        """The text of a file. Raises: FileNotFoundError."""
        return self._of(path).read(path)

    def rows(self, path: str) -> int:
        """The number of rows in a Parquet file, from its footer."""
        if not self._is_local(path):
            return self._hadoop.rows(path)
        try:
            return int(pq.read_metadata(local_path(path)).num_rows)
        except (OSError, pa.ArrowException) as error:
            raise failed("read", path, error) from error

    def schema(self, path: str) -> dict[str, Any]:
        """The columns in a Parquet file that Spark wrote, as Spark writes them, from its footer."""
        return self._hadoop.schema(path)

    def write(self, path: str, text: str, aside: str | None = None) -> None:
        """Write a small file atomically. A crash may leave an incomplete file in `aside`."""
        write_atomically(self, path, text, aside)

    def create(self, path: str, text: str) -> None:
        """Create or replace a file. A crash may leave it incomplete."""
        self._of(path).create(path, text)

    def rename(self, path: str, target: str) -> None:
        """Rename a file. Raises: ArchiveError if the target exists."""
        files = self._of(path)
        if files.exists(target):  # a local disk would replace it, HDFS would not
            raise ArchiveError(
                f"{target} exists already: does another query or compaction use this lake?"
            )
        files.rename(path, target)

    def delete(self, path: str) -> bool:
        """Delete a file or a whole directory. Returns whether it existed. Raises: ArchiveError."""
        return self._of(path).delete(path)

    def sync(self, path: str) -> None:
        """Sync a local file to disk. Other storage does that itself. Raises: ArchiveError."""
        if self._is_local(path):
            _LOCAL_FILES.sync(path)

    def sync_names(self, root: str, paths: Iterable[str]) -> None:
        """Sync the directories of files below a root, so that the names survive a power failure."""
        if self._is_local(root):
            _LOCAL_FILES.sync_names(root, paths)

    def _of(self, path: str) -> LocalFiles | HadoopFiles:
        return _LOCAL_FILES if self._is_local(path) else self._hadoop

    def _is_local(self, path: str) -> bool:
        return is_local(path, self._default)

    @cached_property
    def _default(self) -> str:
        """The file system of paths without a scheme."""
        default = _default_of(self._spark.sparkContext)
        if default.startswith(LOCAL):
            return default
        return str(self._spark.conf.get(DEFAULT_SYSTEM, default))

    @cached_property
    def _hadoop(self) -> HadoopFiles:
        return HadoopFiles(self._spark)


@lru_cache(1)
def _default_of(context: SparkContext) -> str:
    """The default file system of an application. A session may have another one."""
    java: Any = context._jsc
    return str(java.hadoopConfiguration().get(DEFAULT_SYSTEM))


def write_parquet(frame: DataFrame, directory: str, partition_by: Sequence[str]) -> None:
    """Write a frame into a new directory."""
    settings = frame.sparkSession.conf
    key, wanted = _TIMESTAMPS
    before = settings.get(key)
    settings.set(key, wanted)
    try:
        frame.write.mode("error").partitionBy(*partition_by).parquet(directory)
    finally:
        settings.set(key, str(before))


def literal(path: str) -> str:
    """A path with glob characters escaped: Spark takes the paths it reads for patterns."""
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", path)


def temporary_of(root: str) -> str:
    """The directory for unfinished Parquet: next to the lake, since readers' globs search inside it."""
    scheme, _, path = root.partition(":")
    parent, _, name = root.rpartition("/")
    if not parent or parent.endswith(":/"):
        raise ArchiveError(
            f"{root}: use a directory below it, because temporary files are written next to the lake"
        )
    if scheme == "file" and Path(path).is_mount():
        raise ArchiveError(
            f"{root} is a mount point: use a directory below it, because temporary files are written next to"
            " the lake and renamed into it"
        )
    return f"{parent}/_{name}.tmp"
