"""Applies the stream of a primary: whole commands, and transactions when their EXEC has arrived.

The offset counts every byte of the stream, also of PING, SELECT and transactions. It moves by whole commands,
and in a transaction when EXEC has run. Sub-replicas get the same bytes.

Nothing expires while effects are applied: a key lives until the primary sends its DEL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.core.frame import Frame
from penstock.engine.keyspace import Keyspace
from penstock.engine.lookup import Lookup
from penstock.engine.table import Command
from penstock.errors import CommandError, ProtocolError, no_such_key, shown, wrong_type
from penstock.persist.aof.effect_runner import BadOrder, EffectRunner
from penstock.wire.parser import Parser, WireLimits

if TYPE_CHECKING:
    from penstock.server.replication.feed import Feed
    from penstock.server.server import Server

_STAR = 42
_NEWLINE = 10
_SHOWN_WORDS = 4
_SHOWN_BYTES = 100
_ANY_BYTES = 2**62
_NO_STREAM = (str(no_such_key()), str(wrong_type()))


@dataclass(slots=True)
class Foreign:
    """What a replica has skipped: keys with their databases, and commands."""

    keys: set[tuple[int, bytes]] = field(default_factory=set)
    commands: int = 0

    @property
    def is_any(self) -> bool:
        """Whether something is missing here: then this server must not be promoted."""
        return bool(self.keys or self.commands)


class StreamRefused(Exception):
    """The stream cannot be applied. The text says why."""


class Applying:
    """The stream of one link: take. `on_getack`: the primary asks for an ack.

    `foreign`: what was skipped, because penstock does not hold its type; None: nothing may be.
    """

    def __init__(
        self,
        server: Server,
        feed: Feed,
        rows: Iterable[Command],
        on_getack: Callable[[], None],
    ) -> None:
        """Raises: StreamRefused."""
        rows = list(rows)
        limits = WireLimits()
        limits.bulk_bytes_max = _ANY_BYTES
        self._server = server
        self._feed = feed
        self._on_getack = on_getack
        self._buffer = bytearray()
        self._parser = Parser(limits)
        self._frame = Frame()
        self._raw = bytearray()  # of commands that ran or are queued, but do not count yet
        self._runner = EffectRunner(server.engine, rows)
        self._runner.on_refused = self._on_refused
        self._runner.start()
        self._lookup = Lookup(rows)
        self._keyspace = database_of(server, feed.history.database)
        self._database = self._keyspace.index  # selected by what is counted
        self.foreign: Foreign | None = None

    def take(self, data: bytes) -> None:
        """Apply bytes of the stream; an incomplete command waits for the rest. Raises: StreamRefused."""
        engine = self._server.engine
        context = engine.context
        self._buffer += data
        engine.unfinished = True
        context.replaying = True
        context.instant.rewind()
        selected, context.keyspace = context.keyspace, self._keyspace
        try:
            self._run_all()
        except (BadOrder, ProtocolError) as error:
            raise StreamRefused(str(error)) from error
        finally:
            self._keyspace, context.keyspace = context.keyspace, selected
            context.replaying = False
            context.instant.advance()
            engine.serve_waiters()
            engine.unfinished = False
        self._count()
        self._drop_used()

    def close(self) -> None:
        """The link is gone. The runner refers to this object, and no garbage collector runs in a server."""
        self._runner.on_refused = None

    def _run_all(self) -> None:
        parser, buffer = self._parser, self._buffer
        end = len(buffer)
        while True:
            start = parser.start
            if parser.left == 0 and start < end:
                if buffer[start] == _NEWLINE:
                    parser.rest_moved(-1)
                    self._raw.append(_NEWLINE)
                    continue
                if buffer[start] != _STAR:
                    raise StreamRefused(f"byte {buffer[start]:#04x} where a command should begin")
            if not parser.next(self._frame, buffer, end):
                return
            self._run(start, parser.start)

    def _run(self, start: int, end: int) -> None:
        frame = self._frame
        if frame.is_word(0, b"REPLCONF"):
            if frame.count == 3 and frame.is_word(1, b"GETACK"):
                self._count()  # its own bytes are not part of the answer
                self._on_getack()
        elif frame.is_word(0, b"PUBLISH") and frame.count == 3:
            self._server.engine.context.channels.publish(frame.piece(1), frame.piece(2))
        elif frame.is_word(0, b"SPUBLISH") and frame.count == 3:
            self._server.engine.context.channels.publish_in_shard(frame.piece(1), frame.piece(2))
        elif frame.is_word(0, b"PING"):
            if frame.count == 2 and frame.is_word(1, b"NAMES-APART"):
                self._feed.has_names_apart = True
        else:
            if frame.is_word(0, b"MULTI"):
                self._count()  # the transaction may end in another piece, or never
            if self.foreign is not None and self._note_foreign(self.foreign, frame):
                self._on_refused(frame, CommandError("it copies a key that was skipped"))
            else:
                self._runner.run(frame)
        self._raw += self._buffer[start:end]
        if not self._runner.in_transaction:
            self._database = self._server.engine.context.keyspace.index

    def _count(self) -> None:
        """Let the bytes of everything that is applied count."""
        if self._raw and not self._runner.in_transaction:
            raw, self._raw = bytes(self._raw), bytearray()
            self._feed.pass_on(raw, self._database)

    def _drop_used(self) -> None:
        start = self._parser.start
        if start:
            rest = self._buffer[start:]
            if self._parser.left:
                self._frame.move_to(rest, start)
            self._parser.rest_moved(start)
            self._buffer = rest

    def _on_refused(self, frame: Frame, error: CommandError) -> None:
        if frame.is_word(0, b"XIDMPRECORD") and str(error) in _NO_STREAM:
            return  # behind a transaction that has removed the stream too (names_apart.py)
        if self.foreign is not None and self._is_foreign(self.foreign, frame, error):
            self.foreign.commands += 1
            return
        words = b" ".join(frame.piece(at) for at in range(min(frame.count, _SHOWN_WORDS)))
        raise StreamRefused(f"{shown(words[:_SHOWN_BYTES])}: {error}")

    def _is_foreign(self, foreign: Foreign, frame: Frame, error: CommandError) -> bool:
        """Tell whether a command works on keys of types that were skipped. If so, remember its keys.

        A key that is held here is never skipped: it would have an old value from now on.
        """
        keyspace = self._server.engine.context.keyspace
        is_unknown = str(error).startswith("unknown command")
        keys = self._keys(frame)
        if is_unknown and frame.count > 1:
            keys = [frame.piece(1)]  # most commands have their key there
        named = {(keyspace.index, key) for key in keys}
        if any(key in keyspace.values for key in keys):
            return False
        if not is_unknown and not named & foreign.keys:
            return False
        foreign.keys |= named
        return True

    def _keys(self, frame: Frame) -> list[bytes]:
        """The keys of a command; values are none."""
        try:
            return [frame.piece(at) for at in self._lookup.find(frame).key_places(frame)]
        except CommandError:
            return []

    def _note_foreign(self, foreign: Foreign, frame: Frame) -> bool:
        """Before a command runs: forget deleted keys; True if it copies a key that was skipped."""
        if not foreign.keys:
            return False
        if frame.is_word(0, b"DEL") or frame.is_word(0, b"UNLINK"):
            index = self._server.engine.context.keyspace.index
            foreign.keys -= {(index, frame.piece(at)) for at in range(1, frame.count)}
        elif frame.is_word(0, b"COPY") and frame.count > 2:
            keyspace = self._server.engine.context.keyspace
            source = frame.piece(1)
            return (keyspace.index, source) in foreign.keys and source not in keyspace.values
        return False


def database_of(server: Server, number: int) -> Keyspace:
    """The database that is selected in a stream. Raises: StreamRefused if there is none."""
    databases = server.engine.context.databases
    if number >= len(databases):
        raise StreamRefused(
            f"the stream uses database {number}, and there are {len(databases)} (see the setting `databases`)"
        )
    return databases[number]
