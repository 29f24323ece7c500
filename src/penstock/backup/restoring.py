"""Makes a data directory of a backup. The server that is started there finds it as its snapshot.

The backup is checked twice: its note, and every byte of the copy, which is read back before it gets its name.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from penstock.backup.note import BackupFailed, read_note_or_none
from penstock.backup.reading import Contents, read_contents
from penstock.persist.disk import Disk, reason
from penstock.persist.layout import Layout
from penstock.persist.reading import PIECE_BYTES, read_into

TEMP_NAME = "temp-restore.rdb"


def restore(disk: Disk, source: str, directory: str, on_bytes: Callable[[int], None]) -> Contents:
    """Write a new data directory. Raises: BackupFailed; then the directory holds no data."""
    note = read_note_or_none(source)
    place = Path(directory)
    try:
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise BackupFailed(
                f"{directory} is not an empty directory; restore never replaces data"
            )
        if not disk.exists(source):
            raise BackupFailed(f"{source}: No such file or directory")
        disk.make_dir(directory)
        temporary = f"{directory}/{TEMP_NAME}"
        try:
            _copy(disk, source, temporary, on_bytes)
            found = read_contents(disk, temporary, on_bytes)
            if note is not None and (note.sha256, note.size) != (found.sha256, found.size):
                raise BackupFailed(
                    f"{source} is not the file that its note describes: it was changed"
                )
            disk.rename(temporary, Layout(directory).snapshot)
        except (OSError, BackupFailed):
            with suppress(OSError):
                disk.remove(temporary)
            raise
        disk.sync_dir(directory)
    except OSError as error:
        raise BackupFailed(reason(error)) from None
    return found


def _copy(disk: Disk, source: str, target: str, on_bytes: Callable[[int], None]) -> None:
    buffer = bytearray(PIECE_BYTES)
    opened = disk.read(source)
    try:
        made = disk.create(target)
        try:
            while count := read_into(opened, memoryview(buffer)):
                made.write(bytes(buffer[:count]))
                on_bytes(count)
            made.sync()
        finally:
            made.close()
    finally:
        opened.close()
