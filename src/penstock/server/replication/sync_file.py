"""Receives the snapshot of a primary into a file, and loads it in a thread.

The data that the server has stays in use until the new data is whole. The file is removed afterwards.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress

from penstock.engine.execute import Engine
from penstock.errors import CorruptData, PenstockError
from penstock.persist.disk import Disk, File
from penstock.persist.rdb.reader import RdbReader, load_databases
from penstock.persist.rdb.value import ValueLimits
from penstock.persist.replication_point import database_of_aux, names_apart_in_aux

TEMP_PREFIX = "temp-from-primary-"
_EOF = b"$EOF:"
_MARK_BYTES = 40


class SyncFile:
    """A snapshot that arrives: take. `size`: how long it is, or None if it ends with a mark."""

    def __init__(self, disk: Disk, directory: str, size: int | None, mark: bytes) -> None:
        """Raises: OSError."""
        self.path = f"{directory}/{TEMP_PREFIX}{secrets.token_hex(4)}.rdb"
        self.size = size
        self.received = 0
        self._disk = disk
        self._mark = mark
        self._end = b""  # the last bytes, as many as the mark has: written when more follow
        self._file: File | None = disk.create(self.path)

    def take(self, data: bytes) -> bytes | None:
        """Take bytes; None if more follow, otherwise the bytes behind the snapshot. Raises: OSError."""
        assert self._file is not None
        if self.size is not None:
            missing = self.size - self.received
            self._file.write(data[:missing])
            self.received += min(len(data), missing)
            return data[missing:] if self.received == self.size else None
        # A primary sends nothing behind the mark before it has the first ack.
        known = self._end + data
        self._end = known[-len(self._mark) :]
        self._file.write(known[: -len(self._mark)])
        self.received += len(data)
        return b"" if self._end == self._mark else None

    def close(self) -> None:
        """No more bytes follow."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def drop(self) -> None:
        """Remove the file."""
        self.close()
        with suppress(OSError):
            self._disk.remove(self.path)


def file_for_or_none(disk: Disk, directory: str, line: bytes) -> SyncFile | None:
    """The file for the snapshot that a line announces: `$123` or `$EOF:mark`; None for any other line.

    Raises: OSError.
    """
    if line.startswith(_EOF) and len(line) == len(_EOF) + _MARK_BYTES:
        return SyncFile(disk, directory, None, line[len(_EOF) :])
    if line.startswith(b"$") and line[1:].isdigit() and len(line) <= 19:
        return SyncFile(disk, directory, int(line[1:]), b"")
    return None


def remove_leftovers(disk: Disk, directory: str) -> None:
    """Remove the files of a process that was killed."""
    with suppress(OSError):
        for name in disk.names(directory):
            if name.startswith(TEMP_PREFIX) and name.endswith(".rdb"):
                disk.remove(f"{directory}/{name}")


class Loading:
    """Loads a file into a spare engine, in a thread: start. Then `failure` is None, or says why it failed.

    `is_unsupported`: it failed, and would fail again. `foreign_keys`: the skipped keys of types that
    penstock does not hold, with their databases.
    """

    def __init__(self, disk: Disk, path: str, spare: Engine, skip_foreign: bool) -> None:
        self.engine = spare
        self.failure: str | None = None
        self.is_unsupported = False
        self.database = 0  # selected in the stream after the snapshot
        self.names_apart = False  # in that stream
        self.foreign_keys: set[tuple[int, bytes]] = set()
        self.keys = 0
        self._disk = disk
        self._path = path
        self._skip_foreign = skip_foreign

    def start(self, on_end: Callable[[], None]) -> None:
        """Load; then call a function on the event loop."""
        loop = asyncio.get_running_loop()

        def run() -> None:
            try:
                self._load()
            except (PenstockError, OSError) as error:
                self.failure = str(error)
            except Exception as error:  # noqa: BLE001  the link reports it
                self.failure = f"{type(error).__name__}: {error}"
            with suppress(RuntimeError):  # the loop is closed: the server has stopped
                loop.call_soon_threadsafe(on_end)

        threading.Thread(target=run, name="penstock-sync", daemon=True).start()

    def _load(self) -> None:
        source = self._disk.read(self._path)
        try:
            limits = ValueLimits(self.engine.limits, self.engine.list_limits)
            reader = RdbReader(source, "snapshot", limits, skip_foreign=self._skip_foreign)
            try:
                self.keys = load_databases(reader, self.engine.context.databases)
            except CorruptData:
                self.is_unsupported = reader.is_unsupported
                raise
            self.foreign_keys = reader.foreign_keys
            self.database = database_of_aux(reader.aux)
            self.names_apart = names_apart_in_aux(reader.aux)
        finally:
            source.close()
