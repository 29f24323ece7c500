"""File operations of a lake through Hadoop's FileSystem: local files, hdfs:// and s3a://.

A rename is the commit. It is atomic on a local disk and on HDFS. On S3 it is a copy and a deletion, and the
copy appears completely or not at all. Files are never changed in place, and a name is never reused for other
content.

`create`, `rename` and `delete` are the methods that change something; the crash tests stop at each of them.
`sync` is for a local disk, where a power failure may undo a rename.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from penstock.persist.disk import SystemDisk
from penstock.spark.lake.manifest import DATA_SUFFIX, ArchiveError

_DISK = SystemDisk()

HEX_DIGITS = 8  # of the random part of file names, which tells attempts apart

LOCAL_URL = "^file:/+"  # Hadoop writes one slash or three

# If two processes delete a directory at once, Hadoop may tell both that it was not deleted.
DELETIONS_MAX = 3

# Other readers take INT96, Spark's default, for a timestamp without a time zone.
_TIMESTAMPS = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")

_SCHEMA_KEY = "org.apache.spark.sql.parquet.row.metadata"


class LakeFiles:
    """File operations. Paths are qualified (`qualify`)."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        # Cached, because each attribute access is a call to Java.
        self._path = jvm.org.apache.hadoop.fs.Path
        self._settings: Any = spark._jsparkSession.sessionState().newHadoopConf()

    def qualify(self, path: str) -> str:
        """The path with its scheme and without a trailing slash."""
        system, place = self._at(path)
        return str(system.makeQualified(place).toString()).rstrip("/")

    def url(self, path: str) -> str:
        """The path as a URL, with escaped characters, as in Spark's `_metadata.file_path`."""
        system, place = self._at(path)
        found = str(system.makeQualified(place).toUri().toString())
        return re.sub(LOCAL_URL, "file:/", found)

    def names(self, directory: str) -> list[str]:
        """The names in a directory, in order. Empty if the directory does not exist."""
        system, place = self._at(directory)
        try:
            if not system.exists(place):  # an error of Java costs a hundred times more than a call
                return []
            found = self._jvm.org.apache.hadoop.fs.FileUtil.stat2Paths(system.listStatus(place))
        except Py4JJavaError as error:
            if _is_missing(error):
                return []
            raise _failed("list", directory, error) from error
        # One string for all names: each name by itself would take several calls to Java. No name has a NUL.
        paths = str(self._jvm.scala.Predef.genericWrapArray(found).mkString("\0"))
        return sorted(path.rpartition("/")[2] for path in paths.split("\0")) if paths else []

    def data_files(self, directory: str) -> list[tuple[str, int]]:
        """The Parquet files below a directory, in order: relative path and size in bytes."""
        system, place = self._at(directory)
        found = []
        try:
            # Not listFiles: on a local disk it starts a process per file to find the owner.
            for one in system.listStatus(place):
                name = str(one.getPath().getName())
                if one.isDirectory():
                    below = self.data_files(f"{directory}/{name}")
                    found += [(f"{name}/{path}", size) for path, size in below]
                elif name.endswith(DATA_SUFFIX):
                    found.append((name, int(one.getLen())))
        except Py4JJavaError as error:
            if not _is_missing(error):
                raise _failed("list", directory, error) from error
        return sorted(found)

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""
        system, place = self._at(path)
        return bool(system.exists(place))

    def read(self, path: str) -> str:
        """The text of a file. Raises: FileNotFoundError."""
        system, place = self._at(path)
        try:
            stream = system.open(place)
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()
        except Py4JJavaError as error:
            if _is_missing(error):
                raise FileNotFoundError(path) from None
            raise _failed("read", path, error) from error

    def rows(self, path: str) -> int:
        """The number of rows in a Parquet file, from its footer."""
        return int(self._footer(path, lambda reader: reader.getRecordCount()))

    def schema(self, path: str) -> dict[str, Any]:
        """The columns in a Parquet file that Spark wrote, as Spark writes them, from its footer."""
        text = self._footer(
            path,
            lambda reader: reader.getFileMetaData().getKeyValueMetaData().get(_SCHEMA_KEY),
        )
        if text is None:
            raise ArchiveError(f"{path} was not written by Spark: its footer has no schema")
        return dict(json.loads(text))

    def _footer(self, path: str, read: Callable[[Any], Any]) -> Any:
        parquet = self._jvm.org.apache.parquet.hadoop
        _, place = self._at(path)
        try:
            reader = parquet.ParquetFileReader.open(
                parquet.util.HadoopInputFile.fromPath(place, self._settings)
            )
            try:
                return read(reader)
            finally:
                reader.close()
        except Py4JJavaError as error:
            raise _failed("read", path, error) from error

    def write(self, path: str, text: str, aside: str | None = None) -> None:
        """Write a small file atomically. A crash may leave an incomplete file in `aside`."""
        directory, _, name = path.rpartition("/")
        # Two processes may write the same file at once: each needs its own temporary name.
        unfinished = f"{aside or directory}/_{name}.{uuid4().hex[:HEX_DIGITS]}.tmp"
        self.create(unfinished, text)
        self.sync(unfinished)
        self.rename(unfinished, path)
        self.sync_names(directory, [name])

    def create(self, path: str, text: str) -> None:
        """Create or replace a file. A crash may leave it incomplete."""
        system, place = self._at(path)
        try:
            stream = system.create(place, True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise _failed("write", path, error) from error

    def rename(self, path: str, target: str) -> None:
        """Rename a file. Raises: ArchiveError if the target exists."""
        system, place = self._at(path)
        _, there = self._at(target)
        if system.exists(there):  # a local disk would replace it, HDFS would not
            raise ArchiveError(
                f"{target} exists already: does another query or compaction use this lake?"
            )
        try:
            system.mkdirs(there.getParent())
            moved = system.rename(place, there)
        except Py4JJavaError as error:
            raise _failed("rename", path, error) from error
        if not moved:
            raise ArchiveError(f"{path} cannot be renamed to {target}: does it still exist?")

    def delete(self, path: str) -> bool:
        """Delete a file or a whole directory. Returns whether it existed. Raises: ArchiveError."""
        system, place = self._at(path)
        try:
            for _ in range(DELETIONS_MAX):
                if system.delete(place, True):
                    return True
                if not system.exists(place):
                    return False
        except Py4JJavaError as error:
            raise _failed("delete", path, error) from error
        raise ArchiveError(f"{path} cannot be deleted: the file system refuses it")

    def sync(self, path: str) -> None:
        """Sync a local file to disk. Other storage does that itself. Raises: ArchiveError."""
        if not path.startswith("file:"):
            return
        place = Path(path.removeprefix("file:"))
        sums = place.with_name(f".{place.name}.crc")  # Hadoop's checksums, needed to read the file
        try:
            for one in (place, sums) if sums.exists() else (place,):
                file = _DISK.append_to(str(one))
                try:
                    file.sync()
                finally:
                    file.close()
        except OSError as error:
            raise ArchiveError(f"cannot sync {path}: {error}") from error

    def sync_names(self, root: str, paths: Iterable[str]) -> None:
        """Sync the directories of files below a root, so that the names survive a power failure."""
        if not root.startswith("file:"):
            return
        try:
            for one in sorted({above for path in paths for above in PurePosixPath(path).parents}):
                _DISK.sync_dir(f"{root.removeprefix('file:')}/{one}")
        except OSError as error:
            raise ArchiveError(f"cannot sync {root}: {error}") from error

    def _at(self, path: str) -> tuple[Any, Any]:
        place = self._path(path)
        try:
            return place.getFileSystem(self._settings), place
        except Py4JJavaError as error:
            raise _failed("reach", path, error) from error


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


def _is_missing(error: Py4JJavaError) -> bool:
    return "FileNotFoundException" in str(error.java_exception.getClass().getName())


def _failed(what: str, path: str, error: Py4JJavaError) -> ArchiveError:
    return ArchiveError(f"cannot {what} {path}: {error.java_exception.getMessage()}")
