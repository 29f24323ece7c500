"""Shows pending entries, claims them and returns them: XPENDING, XCLAIM, XAUTOCLAIM, XNACK."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.core.groups.group import Group
from penstock.core.groups.records import NEVER_MS, ClaimOptions
from penstock.core.groups.results import PendingRow
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID
from penstock.engine import events
from penstock.engine.arguments import INT64_MAX, count_at, int_at, int_between
from penstock.engine.commands.streams.deliveries import Deliveries
from penstock.engine.commands.streams.groups import group_or_none
from penstock.engine.context import Context
from penstock.engine.table import ONE_KEY, Command, Flags
from penstock.errors import CommandError, InvalidID, no_such_group, shown, syntax_error
from penstock.reply import NULL_ARRAY

AUTOCLAIM_COUNT_DEFAULT = 100
AUTOCLAIM_COUNT_MAX = INT64_MAX // 16
AUTOCLAIM_COUNT_IN_MEMORY = (
    1 << 47
) // 16  # Redis allocates this many ids; no machine has more memory

_NOT_GIVEN = -1
_PENDING_WORDS = (3, 6, 7, 8, 9)


def _stream_and_group(context: Context, frame: Frame) -> tuple[Stream, Group]:
    """Raises: CommandError (NOGROUP, WRONGTYPE) unless both exist."""
    key, name = frame.piece(1), frame.piece(2)
    stream = context.keyspace.stream_or_none(key)
    group = group_or_none(stream, name)
    if stream is None or group is None:
        raise no_such_group(key, name)
    return stream, group


def xpending(context: Context, frame: Frame) -> list[Any]:
    """A summary of a group's pending entries, or its rows in a range of ids."""
    if frame.count not in _PENDING_WORDS:
        raise syntax_error()
    if frame.count == 3:
        return _pending_summary(_stream_and_group(context, frame)[1])
    idle_ms_min = 0
    at = 3
    if frame.is_word(3, b"IDLE"):
        idle_ms_min = int_at(frame, 4)
        if frame.count < 8:
            raise syntax_error()
        at = 5
    count = max(0, int_at(frame, at + 2))
    start = stream_id.parse_range_start(frame.piece(at))
    end = stream_id.parse_range_end(frame.piece(at + 1))
    _, group = _stream_and_group(context, frame)
    consumer = None
    if at + 3 < frame.count:
        consumer = group.consumer_or_none(frame.piece(at + 3))
        if consumer is None:
            return []
    now_ms = context.now_ms()
    idle_since_ms = now_ms - idle_ms_min if idle_ms_min else None
    return [
        [row.id.text, row.consumer, _idle_ms(row, now_ms), row.delivery_count]
        for row in group.pending_rows(start, end, count, consumer, idle_since_ms)
    ]


def _idle_ms(row: PendingRow, now_ms: int) -> int:
    """How long an entry has been idle; -1 if it was returned."""
    return max(0, now_ms - row.delivery_ms) if row.owned else NEVER_MS


def _pending_summary(group: Group) -> list[Any]:
    first = group.pending_edge_or_none(last=False)
    last = group.pending_edge_or_none(last=True)
    if first is None or last is None:
        return [0, None, None, NULL_ARRAY]
    consumers = [[name, b"%d" % count] for name, count in group.consumer_counts()]
    return [group.pending.count, first.text, last.text, consumers]


class _Claimant:
    """The consumer that claims entries.

    Since 7.2 any request creates the consumer and updates its times. Before, only a successful one did.
    """

    def __init__(self, context: Context, frame: Frame, group: Group) -> None:
        self._context = context
        self._key = frame.piece(1)
        self._group = group
        name = frame.piece(3)
        self._is_new = group.consumer_or_none(name) is None
        self.deliveries = Deliveries(context, self._key, group, frame.piece(2), name)
        context.recorded = True  # the claimed entries are recorded, not the request
        self.consumer = group.consumer_or_none(name) or group.create_consumer(
            name, context.now_ms()
        )

    def settle(self, got: list[StreamID], gone: list[StreamID], when_ms: int) -> None:
        """Update the consumer, now that the result is known."""
        # A claim's time is in the past; during a replay it is the only time known.
        now_ms = max(self._context.now_ms(), when_ms)
        if got:
            self.consumer.active_ms = now_ms
        stays = bool(got) or self._context.compat.consumer_activity
        if self._context.effects is not None:
            if stays and self._is_new:
                self.deliveries.made()
            self.deliveries.took(got)
            self.deliveries.dropped(gone)
        if stays:
            self.consumer.seen_ms = now_ms
            if self._is_new:
                self._context.changed_metadata(self._key, events.STREAM, b"xgroup-createconsumer")
        elif self._is_new:
            self._group.delete_consumer(self.consumer)


def xclaim(context: Context, frame: Frame) -> list[Any]:
    """Give pending entries to a consumer, by id."""
    stream, group = _stream_and_group(context, frame)
    idle_ms_min = max(
        0, int_at(frame, 4, CommandError("Invalid min-idle-time argument for XCLAIM"))
    )
    ids: list[StreamID] = []
    at = 5
    while at < frame.count:
        try:
            ids.append(stream_id.parse(frame.piece(at)))
        except InvalidID:
            break  # the options start at the first word that is not an id
        at += 1
    options, last = _claim_options(context, frame, at, idle_ms_min)
    moved = last > group.last_id
    if moved:
        group.set_position(last, group.entries_read)
    claimant = _Claimant(context, frame, group)
    now_ms = context.now_ms()
    claimed: list[StreamID] = []
    gone: list[StreamID] = []
    for entry_id in ids:
        pending = group.pending.count
        if group.claim(stream, entry_id, claimant.consumer, options, now_ms):
            claimed.append(entry_id)
        elif group.pending.count < pending:
            gone.append(entry_id)  # no longer in the stream; its record is removed too
    # A claim also records the new position. It needs an effect of its own only if there is no other.
    context.dirty += len(claimed) + len(gone) or moved
    if moved and not claimed and context.effects is not None:
        claimant.deliveries.moved()
    claimant.settle(claimed, gone, options.delivery_ms)
    return _claimed_entries(stream, claimed, options.just_id)


def _claim_options(
    context: Context, frame: Frame, at: int, idle_ms_min: int
) -> tuple[ClaimOptions, StreamID]:
    """Read `[IDLE ms] [TIME ms] [RETRYCOUNT n] [FORCE] [JUSTID] [LASTID id]`, in any order."""
    now_ms = context.now_ms()
    options = ClaimOptions(idle_ms_min, now_ms)
    last = stream_id.SMALLEST
    delivery_ms = _NOT_GIVEN
    while at < frame.count:
        more = at + 1 < frame.count
        if frame.is_word(at, b"FORCE"):
            options.force = True
        elif frame.is_word(at, b"JUSTID"):
            options.just_id = True
        elif more and frame.is_word(at, b"IDLE"):
            at += 1
            delivery_ms = now_ms - int_at(frame, at, _invalid_option("IDLE"))
        elif more and frame.is_word(at, b"TIME"):
            at += 1
            delivery_ms = int_at(frame, at, _invalid_option("TIME"))
        elif more and frame.is_word(at, b"RETRYCOUNT"):
            at += 1
            count = count_at(context, frame, at, _invalid_option("RETRYCOUNT"))
            options.delivery_count = max(-1, count)
        elif more and frame.is_word(at, b"LASTID"):
            at += 1
            last = stream_id.parse(frame.piece(at))
        else:
            raise CommandError(f"Unrecognized XCLAIM option '{shown(frame.piece(at))}'")
        at += 1
    if delivery_ms >= 0 and (delivery_ms <= now_ms or context.replaying):
        options.delivery_ms = delivery_ms
    return options, last


def _invalid_option(name: str) -> CommandError:
    return CommandError(f"Invalid {name} option argument for XCLAIM")


def _claimed_entries(stream: Stream, ids: list[StreamID], just_id: bool) -> list[Any]:
    if just_id:
        return [entry_id.text for entry_id in ids]
    return [stream.range(entry_id, entry_id, 1).entries()[0] for entry_id in ids]


def xautoclaim(context: Context, frame: Frame) -> list[Any]:
    """Give idle pending entries to a consumer, scanning from an id on."""
    idle_ms_min = max(
        0, int_at(frame, 4, CommandError("Invalid min-idle-time argument for XAUTOCLAIM"))
    )
    start = stream_id.parse_range_start(frame.piece(5))
    count = AUTOCLAIM_COUNT_DEFAULT
    just_id = False
    at = 6
    while at < frame.count:
        if at + 1 < frame.count and frame.is_word(at, b"COUNT"):
            at += 1
            count = int_between(
                frame, at, 1, AUTOCLAIM_COUNT_MAX, CommandError("COUNT must be > 0")
            )
        elif frame.is_word(at, b"JUSTID"):
            just_id = True
        else:
            raise syntax_error()
        at += 1
    stream, group = _stream_and_group(context, frame)
    if count > AUTOCLAIM_COUNT_IN_MEMORY:
        raise CommandError(
            "Insufficient memory, failed allocating transient memory, COUNT too high."
        )
    claimant = _Claimant(context, frame, group)
    options = ClaimOptions(idle_ms_min, context.now_ms(), just_id=just_id)
    found = group.autoclaim(stream, start, count, claimant.consumer, options)
    context.dirty += len(found.claimed) + len(found.deleted)
    claimant.settle(found.claimed, found.deleted, options.delivery_ms)
    return [
        found.cursor.text,
        _claimed_entries(stream, found.claimed, just_id),
        [entry_id.text for entry_id in found.deleted],
    ]


class ReturnArguments:
    """`SILENT | FAIL | FATAL IDS numids id [id ...] [RETRYCOUNT count] [FORCE]`, read and checked."""

    __slots__ = ("_mode", "_retry_count", "force", "ids")

    def __init__(self, context: Context, frame: Frame) -> None:
        """Raises: CommandError, InvalidID."""
        self._mode = frame.piece(3).upper()
        if self._mode not in (b"SILENT", b"FAIL", b"FATAL"):
            raise CommandError("mode must be SILENT, FAIL, or FATAL")
        if not frame.is_word(4, b"IDS"):
            raise syntax_error("expected IDS keyword")
        error = CommandError("numids must be a positive integer")
        count = int_between(frame, 5, 1, INT64_MAX, error)
        if count > frame.count - 6:
            raise CommandError("number of IDs doesn't match numids")
        self.ids = [stream_id.parse(frame.piece(6 + index)) for index in range(count)]
        self._retry_count = _NOT_GIVEN
        self.force = False
        at = 6 + count
        while at < frame.count:
            if frame.is_word(at, b"FORCE"):
                self.force = True
            elif at + 1 < frame.count and frame.is_word(at, b"RETRYCOUNT"):
                at += 1
                error = CommandError("Invalid RETRYCOUNT value, must be >= 0")
                self._retry_count = count_at(context, frame, at, error)
                if self._retry_count < 0:
                    raise error
            else:
                raise CommandError(f"Unrecognized XNACK option '{shown(frame.piece(at))}'")
            at += 1

    def count_after(self, count: int) -> int:
        """The number of deliveries that an entry has afterwards."""
        if self._retry_count != _NOT_GIVEN:
            return self._retry_count
        if self._mode == b"FATAL":
            return INT64_MAX
        return max(0, count - 1) if self._mode == b"SILENT" else count


def xnack(context: Context, frame: Frame) -> int:
    """Return pending entries to their group: the next read that claims entries gets them first."""
    stream, group = _stream_and_group(context, frame)
    arguments = ReturnArguments(context, frame)
    returned: list[tuple[StreamID, int]] = []
    for entry_id in arguments.ids:
        record = group.pending.find(entry_id.key)
        if record is not None:
            count = arguments.count_after(record.delivery_count)
            group.give_back(entry_id, count)
        elif arguments.force and (context.replaying or stream.contains(entry_id)):
            count = arguments.count_after(0)
            group.add_returned(entry_id, count)
        else:
            continue
        returned.append((entry_id, count))
    if returned:
        context.dirty += len(returned)
        context.touch(frame.piece(1))
        if context.effects is not None:
            for words in returned_words(frame.piece(1), frame.piece(2), returned):
                context.record(words)
    return len(returned)


def returned_words(
    key: bytes, group: bytes, returned: list[tuple[StreamID, int]]
) -> Iterator[list[bytes]]:
    """Commands that return entries in this order, each with its number of deliveries."""
    for count, run in groupby(returned, key=itemgetter(1)):
        ids = [entry_id.text for entry_id, _ in run]
        words = [b"XNACK", key, group, b"FAIL", b"IDS", b"%d" % len(ids), *ids]
        yield [*words, b"RETRYCOUNT", b"%d" % count, b"FORCE"]


COMMANDS = (
    Command(
        "XPENDING",
        xpending,
        -3,
        Flags.READ,
        ONE_KEY,
        "Show the pending entries of a group.",
        syntax="key group [[IDLE min-idle-time] start end count [consumer]]",
        since="5.0.0",
        complexity="O(n) for n rows examined; the summary O(n) for n consumers",
        group="stream",
        group_at=2,
    ),
    Command(
        "XCLAIM",
        xclaim,
        -6,
        Flags.WRITE | Flags.FAST,
        ONE_KEY,
        "Claim pending entries by id.",
        syntax="key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds]"
        " [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
        since="5.0.0",
        complexity="O(log n) per id, with n pending entries",
        group="stream",
        group_at=2,
    ),
    Command(
        "XAUTOCLAIM",
        xautoclaim,
        -6,
        Flags.WRITE | Flags.FAST,
        ONE_KEY,
        "Claim idle pending entries.",
        syntax="key group consumer min-idle-time start [COUNT count] [JUSTID]",
        since="6.2.0",
        complexity="O(n) for n rows examined, at most ten times COUNT",
        group="stream",
        access=("RW delete",),
        group_at=2,
    ),
    Command(
        "XNACK",
        xnack,
        -7,
        Flags.WRITE | Flags.FAST,
        ONE_KEY,
        "Return pending entries to their group.",
        syntax="key group <SILENT | FAIL | FATAL> IDS numids id [id ...] [RETRYCOUNT count] [FORCE]",
        since="8.8.0",
        complexity="O(1) for each id",
        group="stream",
        group_at=2,
    ),
)
