"""The connection of a replica to its primary.

    connect      the next attempt is due in a moment
    connecting   the socket is being opened
    handshake    PING, AUTH, REPLCONF, PSYNC: one at a time
    sync         the snapshot arrives, or is being loaded
    connected    the stream is applied

A link that breaks in any state is opened again, and PSYNC says where to continue. What cannot be applied ends
the link for good (`is_refused`): an operator must look at it.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from penstock.errors import ConfigError
from penstock.persist.disk import Disk, reason
from penstock.persist.rdb.format import VERSION_MAX
from penstock.persist.replication_point import ReplicationPoint
from penstock.persist.rows import DATA_ROWS
from penstock.server.log import LOG
from penstock.server.replication.applying import Applying, StreamRefused, database_of
from penstock.server.replication.sync_file import Loading, SyncFile, file_for_or_none
from penstock.wire.command import encode_command

if TYPE_CHECKING:
    from penstock.server.replication.replication import Replication

_RETRY_MS = 1000
_RETRY_MS_MAX = 60_000  # after snapshots that could not be loaded
_LINE_BYTES_MAX = 4096
_ID_BYTES = 40
_OFFSET_DIGITS_MAX = 18
_ID = re.compile(r"[0-9a-f]+")
# The primary cannot serve a sync now; it can later.
_LATER = (b"-NOMASTERLINK", b"-LOADING", b"-BUSY", b"-MASTERDOWN")

_FOREIGN_REPLICAS = b"foreign-replicas"  # this server has replicas that are not penstock
_ONLY_PENSTOCK = "REPLCONF rdb-version"  # others do not know it
_IS_PRIMARY = b"can't be sent to a master"


class PrimaryLink(asyncio.Protocol):
    """One primary: start, stop, tick. `state` is a word of ROLE."""

    def __init__(self, replication: Replication, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.state = "connect"
        self.problem = ""  # why the last attempt failed
        self.is_refused = False
        self.fails_over = False  # PSYNC asks the replica to become the primary
        self.sync_file: SyncFile | None = None
        self.io_ms = 0
        self.down_since_ms = replication.server.steady_ms()
        self._replication = replication
        self._server = replication.server
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._buffer = bytearray()
        self._steps: list[tuple[str, bytes]] = []
        self._step = ""
        self._point: ReplicationPoint | None = None
        self._loading: Loading | None = None
        self._applying: Applying | None = None
        self._next_ms = 0
        self._acked_ms = 0
        self._retry_ms = _RETRY_MS
        self._is_stopped = False
        self._was_refused = False  # perhaps by an empty primary
        self.is_of_penstock = False

    @property
    def is_up(self) -> bool:
        """Whether the stream is applied."""
        return self.state == "connected"

    # --- Connecting --------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the link for good."""
        self._is_stopped = True
        if self._task is not None:
            self._task.cancel()
        self._drop()

    def tick(self) -> None:
        """Do what is due: connect, give up a silent link, ack."""
        now_ms = self._server.steady_ms()
        if self._is_stopped or self.is_refused:
            return
        if self.state == "connect":
            if now_ms >= self._next_ms and self._loading is None:
                self._connect()
            return
        if self._loading is None and now_ms - self.io_ms > self._setting("repl-timeout") * 1000:
            self._break(f"nothing was received for {self._setting('repl-timeout')} s")
        elif now_ms - self._acked_ms >= _RETRY_MS:
            self._acked_ms = now_ms
            if self.is_up:
                self.ack()
            elif self._loading is not None:
                self._write(b"\n")

    def _setting(self, name: str) -> Any:
        return self._replication.setting(name)

    @property
    def _disk(self) -> Disk:
        assert self._server.durability is not None
        return self._server.durability.store.disk

    def _connect(self) -> None:
        self.state = "connecting"
        self.io_ms = self._server.steady_ms()
        self._task = asyncio.get_running_loop().create_task(self._open())

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            context = self._replication.tls_context_or_none()
            await loop.create_connection(lambda: self, self.host, self.port, ssl=context)
        except ConfigError as error:
            self._break(f"cannot connect by TLS: {error}")
        except (OSError, UnicodeError) as error:
            self._break(f"cannot connect: {getattr(error, 'strerror', None) or error}")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open: begin the handshake."""
        if self._is_stopped or self.state != "connecting":
            cast("asyncio.Transport", transport).abort()
            return
        self._transport = cast("asyncio.Transport", transport)
        self.state = "handshake"
        self._buffer.clear()
        self._steps = self._handshake()
        self._next_step()

    def _handshake(self) -> list[tuple[str, bytes]]:
        password = str(self._setting("masterauth"))
        user = str(self._setting("masteruser"))
        names = [_bytes(user)] if user else []
        steps = [("PING", encode_command(b"PING"))]
        if password:
            steps.append(("AUTH", encode_command(b"AUTH", *names, _bytes(password))))
        port = b"%d" % self._replication.own_port()
        steps.append(("REPLCONF", encode_command(b"REPLCONF", b"listening-port", port)))
        announced = str(self._setting("replica-announce-ip"))
        if announced:
            told = encode_command(b"REPLCONF", b"ip-address", _bytes(announced))
            steps.append(("REPLCONF", told))
        capabilities = [b"capa", b"eof", b"capa", b"psync2"]
        if self._replication.feed.has_names_apart:
            capabilities += [b"capa", _FOREIGN_REPLICAS]
        steps.append(("REPLCONF", encode_command(b"REPLCONF", *capabilities)))
        version = b"%d" % VERSION_MAX
        steps.append((_ONLY_PENSTOCK, encode_command(b"REPLCONF", b"rdb-version", version)))
        asked, wanted = self._question()
        more = (b"FAILOVER",) if self.fails_over else ()
        asking = encode_command(b"PSYNC", asked.encode(), b"%d" % wanted, *more)
        steps.append(("PSYNC", asking))
        return steps

    def _question(self) -> tuple[str, int]:
        """The id and the first missing byte. A server without data asks for everything: an empty primary
        refuses all others."""
        replication = self._replication
        is_new = replication.feed.backlog is None or self._was_refused
        if is_new and not replication.has_keys() and not self.fails_over:
            return "?", -1
        return replication.feed.history.question()

    def _next_step(self) -> None:
        self._step, command = self._steps.pop(0)
        self._write(command)

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed."""
        if self._transport is not None:
            self._transport = None
            if not self._is_stopped and not self.is_refused:
                self._break("the primary has closed the connection")

    def _break(self, why: str) -> None:
        """This attempt has failed: drop it, and try again in a moment."""
        if why != self.problem or self.is_up:
            LOG.warning("link to the primary %s:%d: %s", self.host, self.port, why)
        self.problem = why
        self._next_ms = self._server.steady_ms() + self._retry_ms
        self._drop()

    def refuse(self, why: str) -> None:
        """What the primary sends cannot be applied: end the link until somebody has looked at it."""
        LOG.error(
            "the primary %s:%d sends what cannot be applied: %s. This replica keeps its data and follows no"
            " more; REPLICAOF starts again",
            *(self.host, self.port, why),
        )
        self.is_refused = True
        self.problem = why
        self._drop()

    def _drop(self) -> None:
        if self.is_up:
            self.down_since_ms = self._server.steady_ms()
        self.state = "connect"
        if self._task is not None:
            self._task.cancel()
            self._task = None
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        if self.sync_file is not None and self._loading is None:
            self.sync_file.drop()
            self.sync_file = None
        if self._applying is not None:
            self._applying.close()
            self._applying = None
        self._buffer.clear()
        self._replication.note_link()

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
            self._server.bytes_out += len(data)

    # --- Receiving ---------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Bytes of the primary."""
        self.io_ms = self._server.steady_ms()
        self._server.bytes_in += len(data)
        try:
            self._take(data)
        except StreamRefused as error:
            self._replication.feed.history.start_over()  # a part of a transaction may be applied
            self.refuse(str(error))
        except Exception:  # noqa: BLE001  it is logged
            LOG.exception("the link to the primary failed")
            self._replication.feed.history.start_over()
            self._break("an internal error")

    def _take(self, data: bytes) -> None:
        if self._applying is not None and self._loading is None:
            self._apply(data)
        elif self.sync_file is not None and self._loading is None:
            try:
                rest = self.sync_file.take(data)
            except OSError as error:
                self._break(f"cannot keep the snapshot: {error.strerror}")
                return
            if rest is not None:
                self._buffer[:] = rest
                self._load()
        else:
            self._buffer += data
            self._take_lines()

    def _take_lines(self) -> None:
        """Take the replies of the handshake, one line each."""
        while self._loading is None and self._transport is not None:
            end = self._buffer.find(b"\n")
            if end < 0:
                if len(self._buffer) > _LINE_BYTES_MAX:
                    self._break("a reply of the handshake does not end")
                return
            line = bytes(self._buffer[:end]).rstrip(b"\r")
            del self._buffer[: end + 1]
            if not line:
                continue
            if self._point is not None and self.state == "sync":
                self._begin_transfer(line)
            elif self._step == "PSYNC":
                self._on_psync(line)
            else:
                self._on_reply(line)
            if self._applying is not None or self.sync_file is not None:
                rest = bytes(self._buffer)
                self._buffer.clear()
                if rest:
                    self._take(rest)
                return

    def _on_reply(self, line: bytes) -> None:
        is_refused = line.startswith(b"-") and not line.startswith((b"-NOAUTH", b"-NOPERM"))
        if is_refused and self._step in ("PING", "AUTH"):
            self._break(f"{self._step}: {_text(line)}")
            return
        if self._step == _ONLY_PENSTOCK:
            self.is_of_penstock = not is_refused
        self._next_step()

    def _on_psync(self, line: bytes) -> None:
        words = line.split()
        if words[:1] == [b"+CONTINUE"] and len(words) <= 2:
            self._continue(words[1].decode("ascii", "replace") if len(words) == 2 else "")
        elif words[:1] == [b"+FULLRESYNC"] and len(words) == 3 and _is_offset(words[2]):
            name = words[1].decode("ascii", "replace")
            if not self._is_id(name):
                return
            self._point = ReplicationPoint(name, int(words[2]))
            self.state = "sync"
            LOG.info("the primary %s:%d sends a snapshot", self.host, self.port)
        elif line.startswith(_LATER):
            self._was_refused = line.startswith(b"-NOMASTERLINK")
            self._break(_text(line))
        elif self.fails_over and _IS_PRIMARY in line:
            # It has taken over, and its reply was lost: follow it.
            self._break(_text(line))
            self._note_taken_over()
        elif self.fails_over:
            self._break(f"it does not take over: {_text(line)}")
            self._replication.failover.abort()
        else:
            self._break(f"PSYNC: {_text(line)}")

    def _continue(self, name: str) -> None:
        if name and not self._is_id(name):
            return
        self._replication.continue_data(name)
        LOG.info("the primary %s:%d continues", self.host, self.port)
        self._follow()

    def _is_id(self, name: str) -> bool:
        """Check an id of the primary; if it is none, the link breaks."""
        if len(name) != _ID_BYTES:
            self._break(f"an id of the wrong length: {name[:80]!r}")
            return False
        if not _ID.fullmatch(name):
            self._break(f"an id that is not hexadecimal: {name!r}")
            return False
        return True

    # --- A snapshot --------------------------------------------------------------------------------

    def _begin_transfer(self, line: bytes) -> None:
        directory = str(self._setting("dir"))
        try:
            self._open_file(directory, line)
        except OSError as error:
            self._break(f"cannot keep the snapshot: {error.strerror}")

    def _open_file(self, directory: str, line: bytes) -> None:
        self.sync_file = file_for_or_none(self._disk, directory, line)
        if self.sync_file is None:
            self._break(f"instead of a snapshot: {_text(line)}")

    def _load(self) -> None:
        """The snapshot is whole: load it beside the data in use."""
        assert self.sync_file is not None
        self.sync_file.close()
        skip = self._setting("replica-foreign-types") == "skip"
        loading = Loading(self._disk, self.sync_file.path, self._server.engine.spare(), skip)
        loading.start(self._on_loaded)
        self._loading = loading
        if self._transport is not None:
            self._transport.pause_reading()

    def _on_loaded(self) -> None:
        loading, self._loading = self._loading, None
        assert loading is not None
        assert self.sync_file is not None
        received = self.sync_file.received
        self.sync_file.drop()
        self.sync_file = None
        if self._is_stopped or self._transport is None:
            return
        if loading.failure is not None:
            if loading.is_unsupported:
                self.refuse(loading.failure)
                return
            self._retry_ms = min(2 * self._retry_ms, _RETRY_MS_MAX)
            self._break(f"the snapshot cannot be loaded: {loading.failure}")
            return
        assert self._point is not None
        point = replace(self._point, database=loading.database, names_apart=loading.names_apart)
        LOG.info("snapshot of %d bytes loaded: %d keys", received, loading.keys)
        try:
            database_of(self._server, point.database)
            self._replication.replace_data(loading.engine, point, loading.foreign_keys)
        except OSError as error:
            self._retry_ms = min(2 * self._retry_ms, _RETRY_MS_MAX)
            self._break(f"cannot keep the changes that only this server may have: {reason(error)}")
            return
        except StreamRefused as error:
            self.refuse(str(error))
            return
        self._follow()
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._transport.resume_reading()
        if rest:
            self.data_received(rest)

    # --- The stream --------------------------------------------------------------------------------

    def _follow(self) -> None:
        self._point = None
        self._was_refused = False
        self._retry_ms = _RETRY_MS
        self._applying = Applying(self._server, self._replication.feed, DATA_ROWS, self.ack)
        if self._setting("replica-foreign-types") == "skip":
            self._applying.foreign = self._replication.foreign
        self.state = "connected"
        self.problem = ""
        self._replication.note_link()
        self.ack()
        self._note_taken_over()

    def _note_taken_over(self) -> None:
        """The server that this one has asked to take over is the primary."""
        self.fails_over = False
        self._replication.failover.note_taken_over()

    def _apply(self, data: bytes) -> None:
        assert self._applying is not None
        self._applying.take(data)
        self._server.turn.note_effects()

    def ack(self, needs_names_apart: bool = False) -> None:
        """Tell the primary what is applied, and what is on disk if there is a log.

        `needs_names_apart`: tell a penstock also that this server has replicas which are not penstock. It is
        part of an ack, because a primary replies to everything else, and its replies would be in the stream.
        """
        offset = b"%d" % self._replication.feed.history.offset
        synced = self._replication.synced_offset_or_none()
        more = [] if synced is None else [b"FACK", b"%d" % synced]
        if needs_names_apart:
            more += [b"capa", _FOREIGN_REPLICAS]
        self._write(encode_command(b"REPLCONF", b"ACK", offset, *more))


def _is_offset(word: bytes) -> bool:
    return word.isdigit() and len(word) <= _OFFSET_DIGITS_MAX


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _text(line: bytes) -> str:
    return line[:200].decode("utf-8", "backslashreplace")
