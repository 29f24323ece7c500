"""Sets the counters of a stream, and what it remembers of its producers: XSETID, XCFGSET, XIDMPRECORD."""

from __future__ import annotations

from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.core.idempotency import (
    DURATION_S_MAX,
    SIZE_MAX,
    Idempotency,
    IdempotencySettings,
)
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID
from penstock.core.stream_node import NodeCursor
from penstock.engine import events
from penstock.engine.arguments import count_at, int_at
from penstock.engine.context import Context
from penstock.engine.table import ONE_KEY, Command, Flags
from penstock.errors import CommandError, no_such_key, syntax_error, xsetid_below
from penstock.reply import OK, Status

_NOT_GIVEN = -1


class SetIDArguments:
    """The arguments of XSETID: the last id and, if given, the counters."""

    __slots__ = ("entries_added", "last", "max_deleted")

    def __init__(self, context: Context, frame: Frame) -> None:
        """Raises: CommandError for arguments that are invalid for any stream."""
        self.last = stream_id.parse(frame.piece(2))
        self.entries_added = _NOT_GIVEN
        self.max_deleted = stream_id.SMALLEST
        at = 3
        while at < frame.count:
            if at + 1 < frame.count and frame.is_word(at, b"ENTRIESADDED"):
                self.entries_added = count_at(context, frame, at + 1)
                if self.entries_added < 0:
                    raise CommandError("entries_added must be positive")
            elif at + 1 < frame.count and frame.is_word(at, b"MAXDELETEDID"):
                self.max_deleted = stream_id.parse(frame.piece(at + 1))
                if self.last < self.max_deleted:
                    raise xsetid_below("the provided max_deleted_entry_id")
            else:
                raise syntax_error()
            at += 2

    def check(self, stream: Stream, deleted_first: bool) -> None:
        """Raises: CommandError if an id could be assigned twice, or entries_added is below the length."""
        if deleted_first:
            self._check_deleted(stream)
        if stream.length:
            if self.last < _top_id(stream):
                raise xsetid_below("the target stream top item")
            if self.entries_added != _NOT_GIVEN and self.entries_added < stream.length:
                raise CommandError(
                    "The entries_added specified in XSETID is smaller than the target stream length"
                )
        self._check_deleted(stream)

    def _check_deleted(self, stream: Stream) -> None:
        if self.last < stream.max_deleted_id:
            raise xsetid_below("current max_deleted_entry_id")


def _top_id(stream: Stream) -> StreamID:
    """The largest id in the nodes of a stream that is not empty, tombstones included."""
    tail = stream.tail_or_none()
    assert tail is not None
    master, node = tail
    entry = NodeCursor()
    entry.open(node, master.ms, master.seq)
    entry.last()
    return stream_id.make(entry.ms, entry.seq)


def xsetid(context: Context, frame: Frame) -> Status:
    """Set the last id and the counters that a group's lag depends on."""
    arguments = SetIDArguments(context, frame)
    key = frame.piece(1)
    stream = context.keyspace.stream_or_none(key)
    if stream is None:
        raise no_such_key()
    if context.replaying and arguments.last < stream.max_deleted_id:
        # Redis 7.0 allows this, and logs it. Ids must keep rising, so the larger one is used.
        arguments.last = stream.max_deleted_id
    arguments.check(stream, context.compat.xsetid_deleted_first)
    stream.set_last_id(
        arguments.last,
        stream.entries_added if arguments.entries_added == _NOT_GIVEN else arguments.entries_added,
        arguments.max_deleted
        if arguments.max_deleted > stream_id.SMALLEST
        else stream.max_deleted_id,
    )
    context.changed_metadata(key, events.STREAM, b"xsetid")
    return OK


def xcfgset(context: Context, frame: Frame) -> Status:
    """Set how long a stream remembers the messages of its producers. A change forgets all of them."""
    stream = context.keyspace.stream_at(frame, 1)
    if stream is None:
        raise no_such_key()
    before = stream.idempotency_settings
    duration_s = _NOT_GIVEN
    size_max = _NOT_GIVEN
    if frame.count == 2:
        raise CommandError("At least one parameter must be specified")
    at = 2
    while at < frame.count:
        more = at + 1 < frame.count
        if more and frame.is_word(at, b"IDMP-DURATION"):
            if duration_s != _NOT_GIVEN:
                raise CommandError("IDMP-DURATION specified multiple times")
            duration_s = int_at(frame, at + 1)
            if not 1 <= duration_s <= DURATION_S_MAX:
                raise CommandError(f"IDMP-DURATION must be between 1 and {DURATION_S_MAX} seconds")
        elif more and frame.is_word(at, b"IDMP-MAXSIZE"):
            if size_max != _NOT_GIVEN:
                raise CommandError("IDMP-MAXSIZE specified multiple times")
            size_max = int_at(frame, at + 1)
            if not 1 <= size_max <= SIZE_MAX:
                raise CommandError(f"IDMP-MAXSIZE must be between 1 and {SIZE_MAX} entries")
        else:
            raise syntax_error()
        at += 2
    duration_s = before.duration_s if duration_s == _NOT_GIVEN else duration_s
    size_max = before.size_max if size_max == _NOT_GIVEN else size_max
    if duration_s != before.duration_s or size_max != before.size_max:
        stream.idempotency_settings = IdempotencySettings(duration_s, size_max)
        if stream.idempotency is not None:
            stream.idempotency.clear()
        context.dirty += 1
    return OK


def xidmprecord(context: Context, frame: Frame) -> Status:
    """Remember that a producer has added an entry. Logs and snapshots use it, not clients.

    In a replay the entry may be gone: its name still stops duplicates.
    """
    producer, name = frame.piece(2), frame.piece(3)
    entry_id = stream_id.parse(frame.piece(4))
    if not producer:
        raise CommandError("producer ID must be non-empty")
    if not name:
        raise CommandError("idempotent ID must be non-empty")
    stream = context.keyspace.stream_at(frame, 1)
    if stream is None:
        raise no_such_key()
    if not (context.replaying or stream.contains(entry_id)):
        raise CommandError("No such message in stream")
    if stream.idempotency is None:
        stream.idempotency = Idempotency()
    settings = stream.idempotency_settings
    known = stream.idempotency.find_or_none(producer, name, settings, now_ms=0)
    if (
        known is not None and not context.replaying
    ):  # there it may have expired when this was logged
        if known != entry_id:
            raise CommandError("IID already exists for this producer with a different stream ID")
        return OK
    now_ms = 0 if context.replaying else context.now_ms()
    stream.idempotency.record(producer, name, entry_id, settings, now_ms)
    context.dirty += 1
    return OK


COMMANDS = (
    Command(
        "XSETID",
        xsetid,
        -3,
        Flags.WRITE | Flags.DENY_OOM | Flags.FAST,
        ONE_KEY,
        "Set the last id and the counters of a stream.",
        syntax="key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]",
        since="5.0.0",
        group="stream",
    ),
    Command(
        "XCFGSET",
        xcfgset,
        -2,
        Flags.WRITE | Flags.FAST,
        ONE_KEY,
        "Set how long a stream remembers the messages of its producers.",
        syntax="key [IDMP-DURATION seconds] [IDMP-MAXSIZE messages]",
        since="8.6.0",
        complexity="O(1)",
        group="stream",
    ),
    Command(
        "XIDMPRECORD",
        xidmprecord,
        5,
        Flags.WRITE | Flags.DENY_OOM | Flags.FAST,
        ONE_KEY,
        "Remember that a producer has added an entry. For logs and snapshots.",
        syntax="key producer message id",
        since="8.6.2",
        complexity="O(1)",
        group="stream",
    ),
)
