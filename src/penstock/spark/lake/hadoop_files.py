"""File operations through Hadoop's FileSystem: hdfs://, s3a:// and any other that Hadoop knows.

A rename is the commit. It is atomic on HDFS. On S3 it is a copy and a deletion, and the copy appears
completely or not at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.spark.lake.local_files import DELETIONS_MAX
from penstock.spark.lake.manifest import DATA_SUFFIX, ArchiveError

LOCAL_URL = "^file:/+"  # Hadoop writes one slash or three

SCHEMA_KEY = "org.apache.spark.sql.parquet.row.metadata"


class HadoopFiles:
    """File operations through Java. Paths are qualified, except that of `qualify`."""

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
        try:
            return bool(system.exists(place))
        except Py4JJavaError as error:
            raise _failed("reach", path, error) from error

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
            lambda reader: reader.getFileMetaData().getKeyValueMetaData().get(SCHEMA_KEY),
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
        """Rename a file. The target does not exist."""
        system, place = self._at(path)
        _, there = self._at(target)
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
            # If two processes delete a directory at once, Hadoop may tell both that it was not deleted.
            for _ in range(DELETIONS_MAX):
                if system.delete(place, True):
                    return True
                if not system.exists(place):
                    return False
        except Py4JJavaError as error:
            raise _failed("delete", path, error) from error
        raise ArchiveError(f"{path} cannot be deleted: the file system refuses it")

    def _at(self, path: str) -> tuple[Any, Any]:
        place = self._path(path)
        try:
            return place.getFileSystem(self._settings), place
        except Py4JJavaError as error:
            raise _failed("reach", path, error) from error


def _is_missing(error: Py4JJavaError) -> bool:
    return "FileNotFoundException" in str(error.java_exception.getClass().getName())


def _failed(what: str, path: str, error: Py4JJavaError) -> ArchiveError:
    return ArchiveError(f"cannot {what} {path}: {error.java_exception.getMessage()}")
