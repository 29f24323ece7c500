"""The replication stream of a server: effects come in, bytes go to the backlog and to the replicas.

    effects of a turn      from the log's journal, or from one of its own if there is no log
    PING, GETACK, PUBLISH  put behind the effects of the turn; the log holds none of them
    the primary's bytes    on a replica, passed on unchanged

Effects are recorded only while there is a backlog or a log. The log notes the offset behind the effects of
each batch (persist/replication_point.py), so that a restarted server knows where its data stands.

Bytes are sent when they are handed over to the log, beside its fsync. After a power cut a replica may have
more than this server; with `appendfsync always` only what no client has a reply to. A recovered server
therefore branches off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.persist.aof.commit import Commit
from penstock.persist.aof.journal import Journal
from penstock.persist.replication_point import ReplicationPoint, encode_point
from penstock.server.replication.backlog import Backlog
from penstock.server.replication.history import History
from penstock.server.replication.names_apart import NAMES_APART, names_apart
from penstock.wire.command import encode_command

if TYPE_CHECKING:
    from penstock.server.server import Server

BACKLOG_BYTES = 1 << 20


GETACK = encode_command(b"REPLCONF", b"GETACK", b"*")


class Feed:
    """The stream: begin, end, collect, say, pass_on. `send`: gives bytes to the connected replicas.

    `follows`: this server is a replica, so its own effects are not part of the stream. `has_own_changes`:
    some changes may be nowhere else (own_changes.py); the log notes it. `asks_acks`: replies wait for acks,
    so each turn asks for them. `has_names_apart`: the stream has the names of producers apart from here on.
    `effects_offset`: the end of the last effects. A client that waits for replicas waits for that: the ack
    that GETACK asks for does not cover its own bytes.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.history = History()
        self.backlog: Backlog | None = None
        self.backlog_bytes = BACKLOG_BYTES
        self.follows = False
        self.has_own_changes = True
        self.asks_acks = False
        self.has_names_apart = False
        self.effects_offset = 0
        self.send: Callable[[bytes], None] = _to_nobody
        self.on_noted: Callable[[int], None] = _nothing
        self._journal = Journal()
        self._commit: Commit | None = None
        self._said: list[bytes] = []
        self._is_urgent = False
        self._noted = 0  # the last offset that the log knows

    # --- Beginning and ending ----------------------------------------------------------------------

    def begin(self) -> None:
        """Keep a backlog from now on."""
        if self.backlog is None:
            self.backlog = Backlog(self.history.offset, self.backlog_bytes)
            self._record()
            self._note_in_log()

    def adopt(self, point: ReplicationPoint) -> None:
        """The data is now that of another server, or of a recovered log."""
        self.history.adopt(point)
        self.has_names_apart = point.names_apart
        self.effects_offset = point.offset

    def begin_again(self) -> None:
        """The data was replaced: an older backlog is worth nothing."""
        self.backlog = None
        self.begin()

    def end(self) -> None:
        """Drop the backlog: later changes are not counted, so the history ends too."""
        self.hand_over()
        self.backlog = None
        self.has_names_apart = False
        self.history.start_over()
        self._record()

    def resize(self, size: int) -> None:
        """Set the size of the backlog."""
        self.backlog_bytes = size
        if self.backlog is not None:
            self.backlog.size_max = size
            self.backlog.shrink()

    def use_log(self, commit: Commit | None) -> None:
        """Take effects from a log from now on, or None: there is no log any more."""
        self.end_turn()  # what was recorded without a log
        self._journal.forget_database()
        self._commit = commit
        self._record()
        self._note_in_log()

    def _record(self) -> None:
        """Put the sink of the effects in place."""
        is_on = self.backlog is not None
        self._server.turn.feed = self if is_on else None
        if self._commit is not None:
            self._commit.on_taken = self._on_taken if is_on else None
        else:
            self._server.engine.context.effects = self._journal if is_on else None

    # --- The stream --------------------------------------------------------------------------------

    def point_or_none(self) -> ReplicationPoint | None:
        """Where the data stands; None if changes are not counted."""
        if self.backlog is None:
            return None
        history = self.history
        return ReplicationPoint(
            history.id,
            history.offset,
            history.database,
            of_primary=self.has_own_changes,
            names_apart=self.has_names_apart,
        )

    def hand_over(self) -> None:
        """Put everything that has happened so far into the stream. Not within a transaction."""
        if self._commit is not None:
            self._commit.hand_over()
        self.end_turn()

    def end_turn(self) -> None:
        """Put the effects of the turn into the stream if there is no log, and what was said after them."""
        if self._commit is None and self._journal.size:
            database = self._journal.database
            self._take_effects(self._journal.take(), database)
        if self._said:
            said, self._said = b"".join(self._said), []
            is_urgent, self._is_urgent = self._is_urgent, False
            if self.backlog is not None and not self.follows:
                self._append(said)
                if is_urgent:
                    self._note_in_log()

    def has_effects(self) -> bool:
        """Tell whether there are effects, without a log, that are not part of the stream yet."""
        return self._journal.size > 0

    def say(self, data: bytes, is_urgent: bool = True) -> None:
        """Put a command that is no effect into the stream, behind the effects of this turn.

        `is_urgent`: the log notes the offset at once. Otherwise `note_offset` does, within a second.
        """
        if self.backlog is not None and not self.follows:
            self._said.append(data)
            self._is_urgent |= is_urgent
            self._server.turn.wake_up()

    def put_names_apart(self) -> None:
        """Send the names of producers apart from now on, and tell the replicas."""
        if not self.has_names_apart:
            self.has_names_apart = True
            self.say(NAMES_APART)

    def note_offset(self) -> None:
        """Note an offset in the log that bytes without effects have moved."""
        if self._noted != self.history.offset and not self.follows:
            self._note_in_log()

    def pass_on(self, data: bytes, database: int) -> None:
        """On a replica: the primary's bytes, which this server has applied. A database is then selected."""
        self.history.database = database
        self._append(data)

    def select_again(self) -> None:
        """Let the next effect begin with SELECT: a replica starts there."""
        self._journal.forget_database()
        if self._commit is not None:
            self._commit.journal.forget_database()

    def _append(self, data: bytes) -> None:
        assert self.backlog is not None
        if not data:
            return
        self.history.offset += len(data)
        self.backlog.append(data)
        self.send(data)

    def _on_taken(self, data: bytes) -> bytes:
        """The log takes effects: send them, and note the offset behind them."""
        assert self._commit is not None
        self._take_effects(data, self._commit.journal.database)
        return self._line()

    def _take_effects(self, data: bytes, database: int) -> None:
        if not self.follows:
            if self.has_names_apart:
                data = names_apart(data, self.history.database)
            self.history.database = max(0, database)
            self._append(data)
            self.effects_offset = self.history.offset
            if self.asks_acks:
                self._append(GETACK)

    def _line(self) -> bytes:
        self._noted = self.history.offset
        self.on_noted(self.history.offset)
        point = self.point_or_none()
        return b"" if point is None else encode_point(point)

    def _note_in_log(self) -> None:
        """Note the offset in the log: bytes without effects have moved it."""
        if self._commit is not None and self.backlog is not None:
            self._commit.hand_over(note=self._line)


def _to_nobody(data: bytes) -> None:
    """There are no replicas."""


def _nothing(offset: int) -> None:
    """Nobody follows the notes."""
