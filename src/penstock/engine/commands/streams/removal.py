"""Removes entries of a stream by id: XDEL, XDELEX, XACKDEL."""

from __future__ import annotations

from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.core.groups.references import References
from penstock.core.stream_id import StreamID
from penstock.engine import events
from penstock.engine.arguments import INT64_MAX, ids_from, int_between
from penstock.engine.commands.streams.groups import group_or_none
from penstock.engine.commands.streams.reference_options import (
    DELETE,
    IF_ACKED,
    NO_OPTION,
    option_at,
)
from penstock.engine.context import Context
from penstock.engine.table import ONE_KEY, Command, Flags, QuickForm
from penstock.errors import CommandError, syntax_error
from penstock.reply import ReplyWriter

# The replies for one id.
_NOT_FOUND = -1
_REMOVED = 1
_STILL_REFERENCED = 2


def xdel(context: Context, frame: Frame) -> int:
    """Remove entries by id; all ids are parsed before the first is removed."""
    stream = context.keyspace.stream_at(frame, 1)
    if stream is None:
        return 0
    ids = ids_from(frame, 2)
    removed = 0
    for entry_id in ids:
        if stream.delete(entry_id):
            removed += 1
    if removed:
        context.changed(frame.piece(1), events.STREAM, b"xdel")
        context.dirty += removed - 1  # every entry is a change
    return removed


class QuickDelete(QuickForm):
    """XDEL with any arguments."""

    __slots__ = ()

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        reply.put_int(xdel(context, frame))
        return True


class RemovalArguments:
    """`[KEEPREF | DELREF | ACKED] IDS numids id [id ...]`: what to do with references, where the ids are."""

    __slots__ = ("count", "first", "references")

    def __init__(self, frame: Frame, at: int) -> None:
        """Read the options from a word on. Raises: CommandError."""
        self.references = NO_OPTION
        self.first = 0
        self.count = 0
        while at < frame.count:
            option = option_at(frame, at) if self.references == NO_OPTION else NO_OPTION
            if option != NO_OPTION:
                self.references = option
                at += 1
            elif frame.is_word(at, b"IDS") and at + 1 < frame.count:
                error = CommandError("Number of IDs must be a positive integer")
                self.count = int_between(frame, at + 1, 1, INT64_MAX, error)
                self.first = at + 2
                if self.count > frame.count - self.first:
                    raise CommandError("The `numids` parameter must match the number of arguments")
                at = self.first + self.count
            else:
                raise syntax_error()
        if self.first == 0:
            raise CommandError("IDS option is required")

    def ids(self, frame: Frame) -> list[StreamID]:
        """The ids. Raises: InvalidID."""
        return [stream_id.parse(frame.piece(self.first + index)) for index in range(self.count)]


def xdelex(context: Context, frame: Frame) -> list[int]:
    """Remove entries by id; says for each what was done."""
    stream = context.keyspace.stream_at(frame, 1)
    arguments = RemovalArguments(frame, 2)
    if stream is None:
        return [_NOT_FOUND] * arguments.count
    ids = arguments.ids(frame)
    references = References(stream)
    outcomes: list[int] = []
    removed = 0
    forgotten = 0
    for entry_id in ids:
        if arguments.references == IF_ACKED and references.holds(entry_id.ms, entry_id.seq):
            outcomes.append(_STILL_REFERENCED)
            continue
        if arguments.references == DELETE and references.forget(entry_id):
            forgotten += 1
        if stream.delete(entry_id):
            removed += 1
            outcomes.append(_REMOVED)
        else:
            outcomes.append(_NOT_FOUND)
    _report(context, frame, removed)
    if not removed:
        context.dirty += forgotten  # the records of entries that were gone already
    return outcomes


def xackdel(context: Context, frame: Frame) -> list[int]:
    """Acknowledge entries and remove them; says for each what was done."""
    stream = context.keyspace.stream_at(frame, 1)
    arguments = RemovalArguments(frame, 3)
    group = group_or_none(stream, frame.piece(2))
    if stream is None or group is None:
        return [_NOT_FOUND] * arguments.count
    ids = arguments.ids(frame)
    references = References(stream)
    outcomes: list[int] = []
    removed = 0
    acknowledged = 0
    for entry_id in ids:
        if not group.acknowledge(entry_id):
            outcomes.append(_NOT_FOUND)
            continue
        acknowledged += 1
        if arguments.references == IF_ACKED and references.holds(entry_id.ms, entry_id.seq):
            outcomes.append(_STILL_REFERENCED)
            continue
        if arguments.references == DELETE:
            references.forget(entry_id)
        removed += stream.delete(entry_id)
        outcomes.append(_REMOVED)
    _report(context, frame, removed)
    context.dirty += acknowledged - removed
    return outcomes


def _report(context: Context, frame: Frame, removed: int) -> None:
    """Publish that entries were removed; every entry counts as a change."""
    if removed:
        context.changed(frame.piece(1), events.STREAM, b"xdel")
        context.dirty += removed - 1


_SYNTAX = "[KEEPREF | DELREF | ACKED] IDS numids id [id ...]"

COMMANDS = (
    Command(
        "XDEL",
        xdel,
        -3,
        Flags.WRITE | Flags.FAST,
        ONE_KEY,
        "Remove entries from a stream by id.",
        syntax="key id [id ...]",
        since="5.0.0",
        complexity="O(1) for each id",
        group="stream",
        quick=QuickDelete(),
        access=("RW delete",),
    ),
    Command(
        "XDELEX",
        xdelex,
        -5,
        Flags.WRITE | Flags.FAST,
        ONE_KEY,
        "Remove entries from a stream by id, with regard to the groups that need them.",
        syntax=f"key {_SYNTAX}",
        since="8.2.0",
        complexity="O(1) for each id",
        group="stream",
        access=("RW delete",),
    ),
    Command(
        "XACKDEL",
        xackdel,
        -6,
        Flags.WRITE | Flags.FAST,
        ONE_KEY,
        "Acknowledge entries and remove them from the stream.",
        syntax=f"key group {_SYNTAX}",
        since="8.2.0",
        complexity="O(1) for each id",
        group="stream",
        access=("RW update delete",),
        group_at=2,
    ),
)
