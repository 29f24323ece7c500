"""Files of a lake on a local disk. No Spark is needed for them, which takes seconds to start.

Hadoop writes the checksum of a file NAME into `.NAME.crc`, and compares it when it reads the file. Checksums
are not listed, and follow their file when it is renamed or deleted.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from penstock.spark.lake.manifest import DATA_SUFFIX, ArchiveError

LOCAL = "file:"
_CHECKSUM = re.compile(r"\..+\.crc")


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


def is_local(path: str) -> bool:
    """Whether a path of a lake is on this machine."""
    return "://" not in path.removeprefix(LOCAL)


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
        found = (one for one in root.rglob(f"*{DATA_SUFFIX}") if one.is_file())
        return sorted((one.relative_to(root).as_posix(), one.stat().st_size) for one in found)

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""
        return local_path(path).exists()

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
        directory, _, name = path.rpartition("/")
        unfinished = f"{directory}/_{name}.{uuid4().hex[:8]}.tmp"
        self.create(unfinished, text)
        self.rename(unfinished, path)

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


def _delete_file(place: Path) -> bool:
    try:
        place.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _delete_tree(place: Path) -> bool:
    while True:
        try:
            shutil.rmtree(place)
        except FileNotFoundError:  # another process deletes it too
            if not place.exists():
                return False
        else:
            return True


def local_path(path: str) -> Path:
    """The path of a local file."""
    return Path(path.removeprefix(LOCAL))


def _checksum_of(place: Path) -> Path:
    return place.with_name(f".{place.name}.crc")


def failed(what: str, path: str, error: Exception) -> ArchiveError:
    """The error for an operation that the disk has refused."""
    text = getattr(error, "strerror", None) or str(error)
    return ArchiveError(f"cannot {what} {path}: {text}")
