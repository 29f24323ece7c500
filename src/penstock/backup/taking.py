"""Takes a backup of a running server: asks for a snapshot as a replica does, keeps it, reads it back.

    1  PSYNC ? -1         the server forks: the snapshot is its data at that moment, with every change that
                          was acknowledged before
    2  temp-…             the snapshot arrives in a temporary file beside the target
    3                     it is synced, and read back from start to end
    4  NAME.rdb.json      the note is written, synced and named
    5  NAME.rdb           the backup gets its name: from now on it exists

If any step fails, the temporary files are removed and there is no backup. The server never waits for us: a
client that reads too slowly is disconnected by its output limit, like a replica.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import redis

from penstock.backup.note import BackupFailed, Note, ServerAway, note_path
from penstock.backup.reading import Contents, read_contents
from penstock.client.address import ServerUrl
from penstock.persist.disk import Disk, reason
from penstock.persist.rdb.format import VERSION_MAX
from penstock.persist.replication_point import ReplicationPoint
from penstock.server.replication.sync_file import SyncFile, file_for_or_none

CONNECT_SECONDS_MAX = 10.0
SILENCE_SECONDS_MAX = 60.0  # a server that prepares a snapshot sends an empty line every second
PIECE_BYTES = 1 << 18
LINE_BYTES_MAX = 4096
_ID_BYTES = 40
_OFFSET_DIGITS_MAX = 18

OnBytes = Callable[[int, int | None], None]
"""Called with the bytes that have arrived, and the number of all if the server has announced it."""


class Backup:
    """One backup: take. `path`: where it will be."""

    def __init__(self, disk: Disk, path: str) -> None:
        """Raises: BackupFailed if there is a file already, or no directory for it."""
        self._disk = disk
        self.path = path
        self._directory = str(Path(path).parent)
        for taken in (path, note_path(path)):
            if disk.exists(taken):
                raise BackupFailed(f"{taken} exists already; backups never replace a file")
        if not Path(self._directory).is_dir():
            raise BackupFailed(f"{self._directory} is not a directory")

    def take(self, server: ServerUrl, on_bytes: OnBytes, on_check: Callable[[int], None]) -> Note:
        """Take the backup. Raises: BackupFailed; then no file is left."""
        began = datetime.now(UTC)
        link = _Link(self._disk, server)
        file: SyncFile | None = None
        try:
            point, file = link.receive(self._directory, on_bytes)
            file.close()
            link.close()
            self._sync(file.path)
            contents = read_contents(self._disk, file.path, on_check)
            note = _note(began, server.name, point, contents)
            self._name(file.path, note)
        except redis.AuthenticationError as error:  # redis-py derives it from ConnectionError
            raise BackupFailed(f"no backup of {server.name}: {error}") from None
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise ServerAway(f"cannot reach {server.name}: {error}") from None
        except (OSError, redis.RedisError) as error:
            why = reason(error) if isinstance(error, OSError) else str(error)
            raise BackupFailed(f"no backup of {server.name}: {why}") from None
        finally:
            link.close()
            if file is not None:
                file.drop()
        return note

    def _sync(self, path: str) -> None:
        opened = self._disk.append_to(path)
        try:
            opened.sync()
        finally:
            opened.close()

    def _name(self, temporary: str, note: Note) -> None:
        """Steps 4 and 5. The note first: a backup always has one."""
        draft = f"{temporary}.json"
        try:
            file = self._disk.create(draft)
            try:
                file.write(note.encoded())
                file.sync()
            finally:
                file.close()
            self._disk.rename(draft, note_path(self.path))
        except OSError:
            with suppress(OSError):
                self._disk.remove(draft)
            raise
        try:
            self._disk.rename(temporary, self.path)
            self._disk.sync_dir(self._directory)
        except OSError:
            for name in (note_path(self.path), self.path):
                with suppress(OSError):
                    self._disk.remove(name)
            raise


def _note(began: datetime, source: str, point: ReplicationPoint, found: Contents) -> Note:
    return Note(
        began=began.isoformat(timespec="milliseconds"),
        ended=datetime.now(UTC).isoformat(timespec="milliseconds"),
        source=source,
        server=found.server,
        replid=point.id,
        offset=point.offset,
        size=found.size,
        sha256=found.sha256,
        keys=found.keys,
        streams=found.streams,
        entries=found.entries,
    )


class _Link:
    """A connection that asks for a snapshot. redis-py opens it: TLS, login, Sentinels."""

    def __init__(self, disk: Disk, server: ServerUrl) -> None:
        self._disk = disk
        self._client = server.connect(CONNECT_SECONDS_MAX, SILENCE_SECONDS_MAX)
        self._connection: Any = None

    def close(self) -> None:
        """Close the connection. May be called again."""
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None
        self._client.close()

    def receive(self, directory: str, on_bytes: OnBytes) -> tuple[ReplicationPoint, SyncFile]:
        """The snapshot in a temporary file. Raises: BackupFailed, OSError, redis.RedisError."""
        connection: Any = self._client.connection_pool.get_connection()
        self._connection = connection
        for words in (("capa", "eof", "capa", "psync2"), ("rdb-version", str(VERSION_MAX))):
            connection.send_command("REPLCONF", *words)
            with suppress(redis.ResponseError):  # older servers do not know all of them
                connection.read_response()
        connection.send_command("PSYNC", "?", "-1")
        # From here on the server sends bytes that are no replies.
        source: socket.socket = connection._sock
        source.settimeout(SILENCE_SECONDS_MAX)
        buffer = bytearray()
        point = _point(_line(source, buffer))
        line = _line(source, buffer)
        file = file_for_or_none(self._disk, directory, line)
        if file is None:
            raise BackupFailed(f"instead of a snapshot, the server sends {_shown(line)}")
        try:
            self._fill(file, source, bytes(buffer), on_bytes)
        except BaseException:
            file.drop()
            raise
        return point, file

    def _fill(self, file: SyncFile, source: socket.socket, data: bytes, on_bytes: OnBytes) -> None:
        while file.take(data) is None:
            on_bytes(file.received, file.size)
            data = _more(source, "in the middle of the snapshot")


def _point(line: bytes) -> ReplicationPoint:
    words = line.split()
    if len(words) != 3 or words[0] != b"+FULLRESYNC":
        raise BackupFailed(f"the server refuses a snapshot: {_shown(line)}")
    if len(words[1]) != _ID_BYTES or not words[2].isdigit() or len(words[2]) > _OFFSET_DIGITS_MAX:
        raise BackupFailed(f"the server announces a snapshot wrongly: {_shown(line)}")
    return ReplicationPoint(words[1].decode("ascii", "replace"), int(words[2]))


def _line(source: socket.socket, buffer: bytearray) -> bytes:
    """The next line that is not empty; what follows it stays in the buffer."""
    while True:
        end = buffer.find(b"\n")
        if end >= 0:
            line = bytes(buffer[:end]).rstrip(b"\r")
            del buffer[: end + 1]
            if line:
                return line
            continue
        if len(buffer) > LINE_BYTES_MAX:
            raise BackupFailed("the server sends a line without an end")
        buffer += _more(source, "before the snapshot")


def _more(source: socket.socket, when: str) -> bytes:
    try:
        data = source.recv(PIECE_BYTES)
    except TimeoutError:
        raise ServerAway(f"the server was silent for {SILENCE_SECONDS_MAX:g} s {when}") from None
    if not data:
        raise ServerAway(f"the server closed the connection {when}")
    return data


def _shown(line: bytes) -> str:
    return line[:200].decode("utf-8", "backslashreplace").removeprefix("-")
