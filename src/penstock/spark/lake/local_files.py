"""Files of a lake on a local disk. No Spark is needed for them, which takes seconds to start.

Hadoop writes the checksum of a file NAME into `.NAME.crc`, and compares it when it reads the file. Checksums
are not listed, and follow their file when it is renamed or deleted.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Protocol
from uuid import uuid4

from penstock.persist.disk import SystemDisk
from penstock.spark.lake.manifest import DATA_SUFFIX, ArchiveError

LOCAL = "file:"
HEX_DIGITS = 8  # of the random part of file names, which tells attempts apart
DELETIONS_MAX = 3  # an executor of a killed driver may still write into a directory that is deleted
_CHECKSUM = re.compile(r"\..+\.crc")
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:/")
_DISK = SystemDisk()


class TextFiles(Protocol):
    """The operations that LakeFiles and LocalFiles share."""

    def names(self, directory: str) -> list[str]:
        """The names in a directory, in order. Empty if it does not exist."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""

    def read(self, path: str) -> str:
        """The text of a file. Raises: FileNotFoundError."""

    def write(self, path: str, text: str) -> None:
        """Write a new file atomically."""

    def delete(self, path: str) -> bool:
        """Delete a file or a whole directory. Returns whether it existed."""


class ChangingFiles(Protocol):
    """The operations of `write_atomically`."""

    def create(self, path: str, text: str) -> None:
        """Create a file. A crash may leave it incomplete."""

    def rename(self, path: str, target: str) -> None:
        """Rename a file."""

    def sync(self, path: str) -> None:
        """Sync a file."""

    def sync_names(self, root: str, paths: Iterable[str]) -> None:
        """Sync the directories of files below a root."""


def has_scheme(path: str) -> bool:
    """Whether a path is a URL, as in `hdfs://host/lake` or `file:/lake`."""
    return _SCHEME.match(path) is not None


def is_local(path: str, default: str = LOCAL) -> bool:
    """Whether a path is on this machine. `default` is the file system of paths without a scheme."""
    scheme = _SCHEME.match(path)
    return (default if scheme is None else scheme[0]).startswith(LOCAL)


def write_atomically(files: ChangingFiles, path: str, text: str, aside: str | None = None) -> None:
    """Write a small file. A crash may leave an incomplete file in `aside`."""
    directory, _, name = path.rpartition("/")
    # Two processes may write the same file at once: each needs its own temporary name.
    unfinished = f"{aside or directory}/_{name}.{uuid4().hex[:HEX_DIGITS]}.tmp"
    files.create(unfinished, text)
    files.sync(unfinished)
    files.rename(unfinished, path)
    files.sync_names(directory, [name])


class LocalFiles:
    """Operations on local files. Raises: ArchiveError, if the disk refuses one."""

    def names(self, directory: str) -> list[str]:
        """The names in a directory, in order. Empty if it does not exist."""
        try:
            found = [one.name for one in local_path(directory).iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise failed("list", directory, error) from error
        return sorted(name for name in found if not _CHECKSUM.fullmatch(name))

    def data_files(self, directory: str) -> list[tuple[str, int]]:
        """The Parquet files below a directory, in order: relative path and size in bytes."""
        root = local_path(directory)
        found = []
        try:
            for above, _, names in os.walk(root, onerror=_raise_unless_missing):
                for one in (Path(above, name) for name in names if name.endswith(DATA_SUFFIX)):
                    with suppress(FileNotFoundError):  # deleted since it was listed
                        found.append((one.relative_to(root).as_posix(), one.stat().st_size))
        except OSError as error:
            raise failed("list", directory, error) from error
        return sorted(found)

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""
        try:
            local_path(path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise failed("reach", path, error) from error
        return True

    def read(self, path: str) -> str:
        """The text of a file. Raises: FileNotFoundError."""
        try:
            return local_path(path).read_bytes().decode()
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(path) from None
        except (OSError, UnicodeDecodeError) as error:
            raise failed("read", path, error) from error

    def write(self, path: str, text: str) -> None:
        """Write a new file atomically."""
        write_atomically(self, path, text)

    def create(self, path: str, text: str) -> None:
        """Create or replace a file. A crash may leave it incomplete."""
        place = local_path(path)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            _checksum_of(place).unlink(missing_ok=True)
            place.write_bytes(text.encode())
        except OSError as error:
            raise failed("write", path, error) from error

    def rename(self, path: str, target: str) -> None:
        """Rename a file. A file with the name of the target is replaced."""
        place, there = local_path(path), local_path(target)
        try:
            there.parent.mkdir(parents=True, exist_ok=True)
            place.rename(there)
            _checksum_of(there).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                _checksum_of(place).rename(_checksum_of(there))
        except FileNotFoundError:
            text = f"{path} cannot be renamed to {target}: does it still exist?"
            raise ArchiveError(text) from None
        except OSError as error:
            raise failed("rename", path, error) from error

    def delete(self, path: str) -> bool:
        """Delete a file or a whole directory. Returns whether it existed.

        If two processes delete the same file, only one gets True.
        """
        place = local_path(path)
        try:
            there = _delete_tree(place) if place.is_dir() else _delete_file(place)
            _checksum_of(place).unlink(missing_ok=True)
        except OSError as error:
            raise failed("delete", path, error) from error
        return there

    def sync(self, path: str) -> None:
        """Sync a file to disk."""
        place = local_path(path)
        sums = _checksum_of(place)  # Hadoop needs it to read the file
        try:
            for one in (place, sums) if sums.exists() else (place,):
                file = _DISK.append_to(str(one))
                try:
                    file.sync()
                finally:
                    file.close()
        except OSError as error:
            raise failed("sync", path, error) from error

    def sync_names(self, root: str, paths: Iterable[str]) -> None:
        """Sync the directories of files below a root, so that the names survive a power failure."""
        try:
            for one in sorted({above for path in paths for above in PurePosixPath(path).parents}):
                _DISK.sync_dir(f"{local_path(root)}/{one}")
        except OSError as error:
            raise failed("sync", root, error) from error


def _delete_file(place: Path) -> bool:
    try:
        place.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _delete_tree(place: Path) -> bool:
    refused = 0
    while True:
        try:
            shutil.rmtree(place)
        except FileNotFoundError:  # another process deletes it too
            if not place.exists():
                return False
        except OSError as error:
            refused += 1
            if error.errno != errno.ENOTEMPTY or refused == DELETIONS_MAX:
                raise
        else:
            return True


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def local_path(path: str) -> Path:
    """The path of a local file."""
    return Path(path.removeprefix(LOCAL))


def _checksum_of(place: Path) -> Path:
    return place.with_name(f".{place.name}.crc")


def failed(what: str, path: str, error: Exception) -> ArchiveError:
    """The error for an operation that the disk has refused."""
    text = getattr(error, "strerror", None) or str(error)
    return ArchiveError(f"cannot {what} {path}: {text}")
