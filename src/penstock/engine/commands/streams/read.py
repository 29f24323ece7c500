"""Reads streams after an id: XREAD, XREADGROUP."""

from __future__ import annotations

from typing import Any

from penstock.core import memory, stream_id
from penstock.core.frame import Frame
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import Group
from penstock.core.groups.results import ClaimedEntry
from penstock.core.stream import Stream
from penstock.core.stream_cursor import EntryRange
from penstock.core.stream_id import StreamID
from penstock.engine.commands.streams.deliveries import Deliveries
from penstock.engine.commands.streams.groups import group_or_none, make_consumer
from penstock.engine.commands.streams.read_arguments import (
    NEVER,
    ReadArguments,
    read_arguments,
    xread_keys,
    xreadgroup_group,
    xreadgroup_keys,
)
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, Command, Flags, QuickForm
from penstock.engine.waiters import ALIKE, ALIKE_IN_ERRORS, STILL_BLOCKED, Blocked
from penstock.errors import (
    greater_only_in_group_read,
    group_gone_while_blocked,
    meaningless_in_group_read,
    no_such_group_in_read,
    stream_gone_while_blocked,
)
from penstock.reply import NULL_ARRAY, ReplyWriter, Served

_NEW = stream_id.LARGEST  # stands for `>`: no entry comes after the largest id
_LAST = 43
_DOLLAR = 36
_GREATER = 62
_NEVER = NEVER
_RETRY_MS_MIN = 100  # between two looks for idle entries while nothing is pending
_RETRY_MS_MAX = 3_600_000


def xread(context: Context, frame: Frame) -> Any:
    """Entries after an id, from several streams; waits for them with BLOCK."""
    arguments = read_arguments(context, frame, False)
    ids = _read_ids(context, frame, arguments)
    served = _served_after(context, frame, arguments, ids)
    if served:
        return Served(served)
    return _block_or_nothing(context, frame, arguments, ids)


class QuickRead(QuickForm):
    """XREAD that finds something, or that does not wait for it."""

    __slots__ = ()

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        arguments = read_arguments(context, frame, False)
        ids = _read_ids(context, frame, arguments)
        served = _served_after(context, frame, arguments, ids)
        if len(served) == 1:
            key, entries = served[0]
            reply.put_served(key, entries)
        elif served:
            reply.put(Served(served))
        elif arguments.timeout_ms == _NEVER or not context.may_block:
            reply.put(NULL_ARRAY)
        else:
            return False
        return True


def _read_ids(context: Context, frame: Frame, arguments: ReadArguments) -> list[StreamID]:
    """The ids after which an XREAD starts, one for each stream. Raises: CommandError."""
    ids: list[StreamID] = []
    for index in range(arguments.streams):
        key_at = arguments.streams_at + index
        stream = _stream_to_read(context, frame.piece(key_at))
        ids.append(_read_id(context, frame, key_at + arguments.streams, stream))
    return ids


def _served_after(
    context: Context, frame: Frame, arguments: ReadArguments, ids: list[StreamID]
) -> list[tuple[bytes, Any]]:
    """The streams in which an XREAD finds something, with their entries."""
    served: list[tuple[bytes, Any]] = []
    budget = arguments.budget
    for index in range(arguments.streams):
        key = frame.piece(arguments.streams_at + index)
        stream = _stream_to_read(context, key)
        after = ids[index]
        if stream is not None and stream.last_entry_id() > after:
            count = arguments.count
            if budget is not None:
                if budget.is_spent():
                    break
                count = budget.count_within(stream, after, count)
            entries = stream.range(after.next(), stream_id.LARGEST, count)
            served.append((key, entries))
    return served


def _stream_to_read(context: Context, key: bytes) -> Stream | None:
    """The stream of a key in an XREAD. For a command that already waits, another type counts as empty."""
    if not context.retrying:
        return context.keyspace.stream_or_none(key)
    value = context.keyspace.find(key)
    return value if isinstance(value, Stream) else None


def _read_id(context: Context, frame: Frame, at: int, stream: Stream | None) -> StreamID:
    """The id after which an XREAD starts."""
    if frame.is_char(at, _DOLLAR):
        return stream_id.SMALLEST if stream is None else stream.last_id
    if frame.is_char(at, _GREATER):
        raise greater_only_in_group_read()
    if frame.is_char(at, _LAST) and context.compat.xread_plus:
        # The last entry itself: start after the id before it.
        if stream is None or stream.length == 0:
            return stream_id.SMALLEST if stream is None else stream.last_id
        return stream.last_entry_id().previous()
    return stream_id.parse(frame.piece(at))


def _block_or_nothing(
    context: Context, frame: Frame, arguments: ReadArguments, ids: list[StreamID]
) -> Any:
    """There is nothing to read: wait, with ids that no longer depend on the time of the call, or return."""
    if arguments.timeout_ms == _NEVER or not context.may_block:
        return NULL_ARRAY
    if context.retrying and arguments.claim_idle_ms == _NEVER:
        return STILL_BLOCKED
    again = Frame()
    keys: list[bytes] = []
    for at in range(arguments.streams_at + arguments.streams):
        again.add(frame.piece(at))
        if at >= arguments.streams_at:
            keys.append(frame.piece(at))
    for index in range(arguments.streams):
        at = arguments.streams_at + arguments.streams + index
        if arguments.grouped or frame.is_char(at, _LAST):
            again.add(frame.piece(at))  # `>` and `+` are resolved when there is something to read
        else:
            again.add(ids[index].text)
    blocked = Blocked(again, keys, arguments.timeout_ms)
    if arguments.grouped:
        blocked.alike = ALIKE_IN_ERRORS
        blocked.position = (arguments.group_name(), arguments.claim_idle_ms)
    elif arguments.budget is None:
        blocked.alike = ALIKE
        words = [again.piece(at) for at in range(arguments.streams_at, again.count)]
        blocked.position = (arguments.count, *words)
    if arguments.claim_idle_ms != _NEVER:
        blocked.retry_ms = _retry_ms(context, keys, arguments)
    return blocked


def _retry_ms(context: Context, keys: list[bytes], arguments: ReadArguments) -> int:
    """How long until an entry that is pending now, or that becomes pending, can be claimed."""
    first: int | None = None
    for key in keys:
        stream = context.keyspace.stream_or_none(key)
        group = group_or_none(stream, arguments.group_name())
        if stream is not None and group is not None:
            due_ms = group.next_claim_ms_or_none(stream, arguments.claim_idle_ms)
            if due_ms is not None and (first is None or due_ms < first):
                first = due_ms
    wait_ms = max(_RETRY_MS_MIN, arguments.claim_idle_ms)
    if first is not None:
        wait_ms = max(1, min(wait_ms, first - context.now_ms()))
    return min(wait_ms, _RETRY_MS_MAX)


def xreadgroup(context: Context, frame: Frame) -> Any:
    """New entries for a consumer of a group, or its pending entries."""
    arguments = read_arguments(context, frame, True)
    group_name = arguments.group_name()
    context.recorded = True  # the deliveries are recorded, not the request
    groups: list[Group] = []
    ids: list[StreamID] = []
    for index in range(arguments.streams):
        key_at = arguments.streams_at + index
        groups.append(_group_of(context, frame.piece(key_at), group_name))
        ids.append(_group_read_id(context, frame, key_at + arguments.streams))
    served: list[tuple[bytes, Any]] = []
    budget = arguments.budget
    for index in range(arguments.streams):
        if budget is not None and budget.is_spent():
            break
        key = frame.piece(arguments.streams_at + index)
        entries = _serve_group(context, key, groups[index], ids[index], arguments)
        if entries is not None:
            served.append((key, entries))
        if not _is_new(ids[index]):
            arguments.claim_idle_ms = _NEVER  # for the streams that follow, as in Redis
    if served:
        return Served(served)
    return _block_or_nothing(context, frame, arguments, ids)


class QuickReadGroup(QuickForm):
    """New entries of one stream; what would block is left to the full form."""

    __slots__ = ()

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        arguments = read_arguments(context, frame, True)
        at = arguments.streams_at
        if (
            arguments.streams != 1
            or arguments.claim_idle_ms != _NEVER
            or arguments.budget is not None
            or not frame.is_char(at + 1, _GREATER)
        ):
            return False
        stream = context.keyspace.stream_at(frame, at)
        if stream is None or stream.groups is None:
            return False
        group: Group | None = stream.group_found.find_at(stream.groups, frame, arguments.group_at)
        if group is None:
            return False
        key = frame.piece(at)
        reader: Consumer | None = group.consumer_found.find_at(
            group.consumers, frame, arguments.group_at + 1
        )
        if reader is None:
            if stream.last_entry_id() <= group.last_id:
                return False
            reader = _made_consumer(context, key, group, arguments)
        now_ms = context.instant.ms
        ids: list[bytes] | None = None if context.effects is None else []
        if not group.deliver_to(
            stream, reader, arguments.count, now_ms, arguments.ack, key, reply, ids
        ):
            if arguments.timeout_ms != _NEVER and context.may_block:
                return False
            if context.compat.consumer_activity:
                reader.seen_ms = now_ms
            reply.put(NULL_ARRAY)
            return True
        context.recorded = True
        _note_delivery(context, reader, arguments)
        if ids is not None:
            _record_delivery(context, key, group, arguments, ids)
        return True


def _group_of(context: Context, key: bytes, name: bytes) -> Group:
    """The group to read from. Raises: CommandError (NOGROUP) if it is missing."""
    own_words = context.retrying and not context.compat.unblock_repeats_command
    if own_words and not isinstance(context.keyspace.find(key), Stream):
        raise stream_gone_while_blocked()
    group = group_or_none(context.keyspace.stream_or_none(key), name)
    if group is None:
        raise group_gone_while_blocked() if own_words else no_such_group_in_read(key, name)
    return group


def _group_read_id(context: Context, frame: Frame, at: int) -> StreamID:
    if frame.is_char(at, _GREATER):
        return _NEW
    if frame.is_char(at, _DOLLAR):
        raise meaningless_in_group_read("$")
    if frame.is_char(at, _LAST) and context.compat.xread_plus:
        raise meaningless_in_group_read("+")
    return stream_id.parse(frame.piece(at))


def _is_new(after: StreamID) -> bool:
    """Tell whether an id stands for `>`; compares the halves, which are C numbers."""
    return after.ms == _NEW.ms and after.seq == _NEW.seq


def _serve_group(
    context: Context,
    key: bytes,
    group: Group,
    after: StreamID,
    arguments: ReadArguments,
) -> Any:
    """The entries for one stream of an XREADGROUP, or None if there are none."""
    stream = context.keyspace.stream_or_none(key)
    if stream is None:
        return None
    now_ms = context.now_ms()
    budget = arguments.budget
    count = arguments.count if budget is None else budget.cap(arguments.count)
    if not _is_new(after):
        consumer = _consumer_of(context, key, group, arguments)
        history: list[tuple[bytes, list[bytes] | None]] = []
        if budget is None:
            history = group.redeliver(stream, consumer, after, count, now_ms)
        while budget is not None and len(history) < count and not budget.is_spent():
            again_after = stream_id.parse(history[-1][0]) if history else after
            more = group.redeliver(stream, consumer, again_after, 1, now_ms)
            if not more:
                break
            budget.spend(more[0][1] or [])
            history += more
        if context.effects is not None:
            again = [stream_id.parse(found_id) for found_id, flat in history if flat is not None]
            _deliveries(context, key, group, arguments).took(again)
        if context.compat.history_is_change:
            context.dirty += 1
        return [(found_id, NULL_ARRAY if flat is None else flat) for found_id, flat in history]
    reader = group.consumer_or_none(arguments.consumer_name())
    if reader is None:
        if not context.compat.consumer_activity and stream.last_entry_id() <= group.last_id:
            return None
        reader = _made_consumer(context, key, group, arguments)
    elif context.compat.consumer_activity and not context.retrying:
        reader.seen_ms = now_ms
    if arguments.claim_idle_ms != _NEVER:
        return _claim_and_deliver(context, key, group, reader, arguments)
    if budget is not None:
        count = budget.count_within(stream, group.last_id, count)
    found = group.deliver(stream, reader, count, now_ms, arguments.ack)
    if found is not None:
        _note_delivery(context, reader, arguments)
        if context.effects is not None:
            _record_delivery(context, key, group, arguments, _ids_of(found))
    return found


def _note_delivery(context: Context, reader: Consumer, arguments: ReadArguments) -> None:
    """A consumer has got new entries."""
    reader.seen_ms = context.instant.ms
    if arguments.ack:  # as in Redis, entries that do not become pending do not count
        reader.active_ms = context.instant.ms
    if not context.retrying or context.compat.unblock_repeats_command:
        context.dirty += 1


def _claim_and_deliver(
    context: Context,
    key: bytes,
    group: Group,
    reader: Consumer,
    arguments: ReadArguments,
) -> Any:
    """Idle entries, then new ones; each with its idle time and its number of deliveries before."""
    stream = context.keyspace.stream_or_none(key)
    assert stream is not None
    now_ms = context.now_ms()
    budget = arguments.budget
    count = arguments.count if budget is None else budget.cap(arguments.count)
    claimed = _claim_idle(stream, group, reader, arguments, now_ms)
    rows: list[Any] = [
        [entry.id.text, entry.fields, entry.idle_ms, entry.delivery_count] for entry in claimed
    ]
    found: EntryRange | None = None
    if (count == 0 or len(rows) < count) and (budget is None or not budget.is_spent()):
        left = count - len(rows) if count else 0
        if budget is not None:
            left = budget.count_within(stream, group.last_id, left)
        found = group.deliver(stream, reader, left, now_ms, arguments.ack)
    if found is not None:
        rows += [[entry_id, fields, 0, 0] for entry_id, fields in found.entries()]
    if not rows:
        return None
    reader.seen_ms = now_ms
    if claimed or arguments.ack:
        reader.active_ms = now_ms
    context.dirty += 1
    if context.effects is not None:
        _deliveries(context, key, group, arguments).took([entry.id for entry in claimed])
        if found is not None:
            _record_delivery(context, key, group, arguments, _ids_of(found))
    return rows


def _claim_idle(
    stream: Stream, group: Group, reader: Consumer, arguments: ReadArguments, now_ms: int
) -> list[ClaimedEntry]:
    """Claim idle entries: all at once, or one by one if their size is limited."""
    idle_ms_min, budget = arguments.claim_idle_ms, arguments.budget
    if budget is None:
        return group.claim_idle(stream, reader, idle_ms_min, arguments.count, now_ms)
    claimed: list[ClaimedEntry] = []
    left = budget.cap(arguments.count)
    while left > 0 and not budget.is_spent():
        # An entry that was claimed a moment ago is not idle: each is found once.
        found = group.claim_idle(stream, reader, max(1, idle_ms_min), 1, now_ms)
        if not found:
            break
        budget.spend(found[0].fields)
        claimed += found
        left -= 1
    return claimed


def _consumer_of(context: Context, key: bytes, group: Group, arguments: ReadArguments) -> Consumer:
    """The consumer that reads, created if it is new; updates its seen time."""
    consumer = group.consumer_or_none(arguments.consumer_name())
    if consumer is None:
        return _made_consumer(context, key, group, arguments)
    consumer.seen_ms = context.now_ms()
    return consumer


def _made_consumer(
    context: Context, key: bytes, group: Group, arguments: ReadArguments
) -> Consumer:
    consumer = make_consumer(context, key, group, arguments.consumer_name())
    if context.effects is not None:
        _deliveries(context, key, group, arguments).made()
    return consumer


def _deliveries(context: Context, key: bytes, group: Group, arguments: ReadArguments) -> Deliveries:
    return Deliveries(context, key, group, arguments.group_name(), arguments.consumer_name())


def _record_delivery(
    context: Context,
    key: bytes,
    group: Group,
    arguments: ReadArguments,
    ids: list[bytes],
) -> None:
    """Record new deliveries and the group's new position."""
    deliveries = _deliveries(context, key, group, arguments)
    if arguments.ack:
        deliveries.got_new(ids, context.now_ms())
    else:
        deliveries.moved()


def _ids_of(found: EntryRange) -> list[bytes]:
    """The ids of delivered entries."""
    ids: list[bytes] = []
    cursor = found.cursor()
    while len(ids) < found.limit and cursor.advance():
        ids.append(memory.format_pair(cursor.entry.ms, cursor.entry.seq))
    return ids


COMMANDS = (
    Command(
        "XREAD",
        xread,
        -4,
        Flags.READ | Flags.BLOCKING,
        NO_KEYS,
        "Read the entries after an id, from several streams.",
        syntax="[COUNT count] [MAXCOUNT entries] [MAXSIZE bytes] [BLOCK milliseconds]"
        " STREAMS key [key ...] id [id ...]",
        since="5.0.0",
        complexity="O(n) for the n entries returned",
        group="stream",
        find_keys=xread_keys,
        quick=QuickRead(),
    ),
    Command(
        "XREADGROUP",
        xreadgroup,
        -7,
        Flags.WRITE | Flags.BLOCKING,
        NO_KEYS,
        "Read as a consumer of a group.",
        syntax="GROUP group consumer [COUNT count] [MAXCOUNT entries] [MAXSIZE bytes]"
        " [BLOCK milliseconds] [CLAIM min-idle-time] [NOACK] STREAMS key [key ...] id [id ...]",
        since="5.0.0",
        complexity="O(n) for the n entries returned",
        group="stream",
        find_keys=xreadgroup_keys,
        quick=QuickReadGroup(),
        access=("RO access",),
        find_group=xreadgroup_group,
    ),
)
