"""The few file operations that a lake needs, through Hadoop's FileSystem: file, hdfs:// and s3a:// alike.

A rename is the commit: on a disk and on HDFS it is atomic; on S3 it is a copy and a deletion, and the copy
appears whole or not at all. Nothing is changed in place, and no name is ever used twice for other bytes.

The methods that change something are `create`, `rename` and `delete`; the crash tests stop at each of them.
`sync` is for a disk of this machine, where a power cut may otherwise take what was renamed already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from penstock.persist.disk import SystemDisk
from penstock.spark.lake.manifest import DATA_SUFFIX, ArchiveError

_DISK = SystemDisk()

HEX_DIGITS = 8  # of what tells attempts apart, in names of files

# Two who delete a directory at once may each find it half gone, and are told that it was not deleted.
DELETIONS_MAX = 3

# Spark's default, INT96, is an old custom that other readers take for a time without a zone.
_TIMESTAMPS = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")


class LakeFiles:
    """Files by their qualified paths (`qualify`)."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._path = jvm.org.apache.hadoop.fs.Path  # kept: each point is a call to Java
        self._settings: Any = spark._jsparkSession.sessionState().newHadoopConf()

    def qualify(self, path: str) -> str:
        """The path with its scheme, and without a slash at its end."""
        system, place = self._at(path)
        return str(system.makeQualified(place).toString()).rstrip("/")

    def names(self, directory: str) -> list[str]:
        """What a directory holds, in order; nothing if there is none."""
        system, place = self._at(directory)
        try:
            found = self._jvm.org.apache.hadoop.fs.FileUtil.stat2Paths(system.listStatus(place))
        except Py4JJavaError as error:
            if _is_missing(error):
                return []
            raise _failed("list", directory, error) from error
        # As one text, for each name by itself would be several calls to Java. No name holds a NUL.
        paths = str(self._jvm.scala.Predef.genericWrapArray(found).mkString("\0"))
        return sorted(path.rpartition("/")[2] for path in paths.split("\0")) if paths else []

    def data_files(self, directory: str) -> list[tuple[str, int]]:
        """Every Parquet file below a directory: its path from there, and its bytes; in order."""
        system, place = self._at(directory)
        found = []
        try:
            # Not listFiles, which on a disk starts a process for each file, to learn whose it is.
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
        """Whether there is something."""
        system, place = self._at(path)
        return bool(system.exists(place))

    def read(self, path: str) -> str:
        """A whole file, as text. Raises: FileNotFoundError."""
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
        """How many rows a Parquet file has, by its footer."""
        parquet = self._jvm.org.apache.parquet.hadoop
        _, place = self._at(path)
        try:
            reader = parquet.ParquetFileReader.open(
                parquet.util.HadoopInputFile.fromPath(place, self._settings)
            )
            try:
                return int(reader.getRecordCount())
            finally:
                reader.close()
        except Py4JJavaError as error:
            raise _failed("read", path, error) from error

    def write(self, path: str, text: str, aside: str | None = None) -> None:
        """A small file that is there whole or not at all; a crash may leave a part of it in `aside`."""
        directory, _, name = path.rpartition("/")
        # Two may write the same file at once, and neither may rename what the other has half written.
        unfinished = f"{aside or directory}/_{name}.{uuid4().hex[:HEX_DIGITS]}.tmp"
        self.create(unfinished, text)
        self.sync(unfinished)
        self.rename(unfinished, path)
        self.sync_names(directory, [name])

    def create(self, path: str, text: str) -> None:
        """A file, in place of one that was there; a crash may leave half of it."""
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
        """Move a file to a name that is free. Raises: ArchiveError."""
        system, place = self._at(path)
        _, there = self._at(target)
        if system.exists(there):  # a disk would put one over the other, HDFS would not
            raise ArchiveError(
                f"{target} is there already: does another query or compaction use this lake?"
            )
        try:
            system.mkdirs(there.getParent())
            moved = system.rename(place, there)
        except Py4JJavaError as error:
            raise _failed("rename", path, error) from error
        if not moved:
            raise ArchiveError(f"{path} cannot be renamed to {target}: is it gone?")

    def delete(self, path: str) -> bool:
        """A file, or a directory with all that is in it; whether it was there. Raises: ArchiveError."""
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
        """A file outlasts a power cut; storage elsewhere sees to that itself. Raises: ArchiveError."""
        if not path.startswith("file:"):
            return
        place = Path(path.removeprefix("file:"))
        sums = place.with_name(f".{place.name}.crc")  # Hadoop's, which it reads the file by
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
        """So do the names of files below a root, and those of the directories that they lie in."""
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
    """Let Spark write a frame into a directory of its own."""
    settings = frame.sparkSession.conf
    key, wanted = _TIMESTAMPS
    before = settings.get(key)
    settings.set(key, wanted)
    try:
        frame.write.mode("error").partitionBy(*partition_by).parquet(directory)
    finally:
        settings.set(key, str(before))


def literal(path: str) -> str:
    """A path as Spark must be given it, which takes what it reads for patterns."""
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", path)


def temporary_of(root: str) -> str:
    """Where a lake's unfinished Parquet lies: beside it, since readers' globs look everywhere inside."""
    scheme, _, path = root.partition(":")
    parent, _, name = root.rpartition("/")
    if not parent or parent.endswith(":/"):
        raise ArchiveError(
            f"{root}: use a directory below it, for temporary files lie beside the lake"
        )
    if scheme == "file" and Path(path).is_mount():
        raise ArchiveError(
            f"{root} is a mount point: use a directory below it, for temporary files lie beside the"
            " lake and must be renamed into it"
        )
    return f"{parent}/_{name}.tmp"


def _is_missing(error: Py4JJavaError) -> bool:
    return "FileNotFoundException" in str(error.java_exception.getClass().getName())


def _failed(what: str, path: str, error: Py4JJavaError) -> ArchiveError:
    return ArchiveError(f"cannot {what} {path}: {error.java_exception.getMessage()}")
