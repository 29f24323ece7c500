"""Small files of a lake. On a local disk no Spark is needed for them, which takes seconds to start."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from uuid import uuid4


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
    return "://" not in path.removeprefix("file:")


class LocalFiles:
    """Files on a local disk. Hadoop's checksums, `.NAME.crc`, are not listed, and deleted with their file."""

    def names(self, directory: str) -> list[str]:
        """The names in a directory, in order. Empty if it does not exist."""
        try:
            found = [one.name for one in _local(directory).iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in found if not name.startswith("."))

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""
        return _local(path).exists()

    def read(self, path: str) -> str:
        """The text of a file. Raises: FileNotFoundError."""
        return _local(path).read_text()

    def write(self, path: str, text: str) -> None:
        """Write a new file atomically."""
        place = _local(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_name(f"_{place.name}.{uuid4().hex[:8]}.tmp")
        unfinished.write_text(text)
        unfinished.rename(place)

    def delete(self, path: str) -> bool:
        """Delete a file or a whole directory. Returns whether it existed."""
        place = _local(path)
        there = place.exists()
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            place.with_name(f".{place.name}.crc").unlink()
        return there


def _local(path: str) -> Path:
    return Path(path.removeprefix("file:"))
