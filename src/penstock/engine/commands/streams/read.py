"""Reads streams: XRANGE, XREVRANGE, XREAD, XREADGROUP."""

from __future__ import annotations

from typing import Any

from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.core.groups.group import ClaimedEntry, Consumer, Group
from penstock.core.stream import EntryRange, Stream
from penstock.core.stream_id import StreamID
from penstock.engine.arguments import INT64_MAX, int_at, int_between, timeout_at
from penstock.engine.commands.streams.deliveries import Deliveries
from penstock.engine.commands.streams.groups import group_or_none, make_consumer
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, ONE_KEY, Command, Flags
from penstock.engine.waiters import Blocked
from penstock.errors import (
    CommandError,
    greater_only_in_group_read,
    group_gone_while_blocked,
    meaningless_in_group_read,
    no_such_group_in_read,
    only_in_group_read,
    stream_gone_while_blocked,
    syntax_error,
    unbalanced_streams,
)
from penstock.reply import NULL_ARRAY, NullArray, Served

_NEW = stream_id.LARGEST  # stands for `>`: no entry comes after the largest id
_LAST = 43
_DOLLAR = 36
_GREATER = 62
_NEVER = -1
_NO_LIMIT = 0
_RETRY_MS_MIN = 100  # between two looks for idle entries while nothing is pending
_RETRY_MS_MAX = 3_600_000


def xrange(context: Context, frame: Frame) -> EntryRange | list[Any] | NullArray:
    """Entries between two ids, oldest first."""
    return _range(context, frame, False)


def xrevrange(context: Context, frame: Frame) -> EntryRange | list[Any] | NullArray:
    """Entries between two ids, newest first."""
    return _range(context, frame, True)


def _range(context: Context, frame: Frame, reverse: bool) -> EntryRange | list[Any] | NullArray:
    start = stream_id.parse_range_start(frame.piece(3 if reverse else 2))
    end = stream_id.parse_range_end(frame.piece(2 if reverse else 3))
    count = _NEVER
    at = 4
    while at < frame.count:
        if at + 1 == frame.count or not frame.is_word(at, b"COUNT"):
            raise syntax_error()
        count = max(0, int_at(frame, at + 1))
        at += 2
    stream = context.keyspace.stream_or_none(frame.piece(1))
    if stream is None:
        return []
    if count == 0:
        return NULL_ARRAY
    return stream.range(start, end, max(0, count), reverse)


def _arguments(context: Context, frame: Frame, grouped: bool) -> ReadArguments:
    """The options of a read; bypasses `type.__call__`."""
    made = ReadArguments.__new__(ReadArguments)
    made._reset(grouped)
    made.read(context, frame)
    return made


class ReadArguments:
    """The arguments of XREAD or XREADGROUP before the keys, and the positions of keys and ids."""

    __slots__ = (
        "ack",
        "claim_idle_ms",
        "consumer",
        "count",
        "group",
        "grouped",
        "max_count",
        "max_size",
        "streams",
        "streams_at",
        "timeout_ms",
    )

    def __init__(self, grouped: bool) -> None:
        self._reset(grouped)

    def _reset(self, grouped: bool) -> None:
        self.grouped = grouped
        self.timeout_ms = _NEVER
        self.count = 0
        self.max_count = _NO_LIMIT
        self.max_size = _NO_LIMIT
        self.claim_idle_ms = _NEVER
        self.ack = True
        self.group: bytes | None = None
        self.consumer = b""
        self.streams_at = 0
        self.streams = 0

    def read(self, context: Context | None, frame: Frame) -> None:
        """Read all options up to STREAMS. Raises: CommandError.

        Without a context only the positions matter: numbers are skipped without a check.
        """
        at = 1
        while at < frame.count:
            more = frame.count - 1 - at
            if more and frame.is_word(at, b"BLOCK"):
                at += 1
                if context is not None:
                    self._read_timeout(context, frame, at)
            elif more and frame.is_word(at, b"COUNT"):
                at += 1
                if context is not None:
                    self.count = max(0, int_at(frame, at))
            elif more and frame.is_word(at, b"STREAMS"):
                self._find_streams(context, frame, at + 1)
                break
            elif more >= 2 and frame.is_word(at, b"GROUP"):
                if not self.grouped:
                    raise only_in_group_read("GROUP")
                self.group = frame.piece(at + 1)
                self.consumer = frame.piece(at + 2)
                at += 2
            elif frame.is_word(at, b"NOACK"):
                if not self.grouped:
                    raise only_in_group_read("NOACK")
                self.ack = False
            elif more and self._read_new_option(context, frame, at):
                at += 1
            else:
                raise syntax_error()
            at += 1
        if self.streams_at == 0:
            raise syntax_error()
        if self.grouped and self.group is None:
            raise CommandError("Missing GROUP option for XREADGROUP")
        if self.max_count and self.count > self.max_count:
            raise CommandError("MAXCOUNT must be greater than or equal to COUNT")

    def _read_new_option(self, context: Context | None, frame: Frame, at: int) -> bool:
        """Read an option that only newer levels have, with its value; False if the word is none."""
        if frame.is_word(at, b"CLAIM") and (context is None or context.compat.read_claims):
            if not self.grouped:
                raise only_in_group_read("CLAIM")
            if context is not None:
                error = CommandError("min-idle-time is not an integer or out of range")
                self.claim_idle_ms = int_at(frame, at + 1, error)
                if self.claim_idle_ms < 0:
                    raise CommandError("min-idle-time must be a positive integer")
            return True
        if context is not None and not context.compat.read_budgets:
            return False
        if frame.is_word(at, b"MAXCOUNT"):
            self.max_count = self._budget_at(context, frame, at, "MAXCOUNT")
            return True
        if frame.is_word(at, b"MAXSIZE"):
            self.max_size = self._budget_at(context, frame, at, "MAXSIZE")
            return True
        return False

    def _budget_at(self, context: Context | None, frame: Frame, at: int, word: str) -> int:
        """The value after a word, above zero."""
        if context is None:
            return _NO_LIMIT
        error = CommandError(f"{word} must be a positive integer")
        return int_between(frame, at + 1, 1, INT64_MAX, error)

    def _read_timeout(self, context: Context, frame: Frame, at: int) -> None:
        self.timeout_ms = timeout_at(frame, at)
        if context.compat.timeout_has_end and self.timeout_ms > INT64_MAX - context.now_ms():
            raise CommandError("timeout is out of range")

    def _find_streams(self, context: Context | None, frame: Frame, at: int) -> None:
        words = frame.count - at
        if words & 1:
            if context is None:
                raise syntax_error()
            if not context.compat.unbalanced_names_command:
                raise unbalanced_streams("XREAD", " or '$'")
            if self.grouped:
                raise unbalanced_streams("'xreadgroup'", " or '>'")
            special = ", '+', or '$'" if context.compat.xread_plus else " or '$'"
            raise unbalanced_streams("'xread'", special)
        self.streams_at = at
        self.streams = words // 2


class ReadBudget:
    """What one read may return from all its streams together: MAXCOUNT entries, about MAXSIZE bytes.

    The size is that of names and values. It is exceeded by less than one entry, so that a large entry does
    not block a reader for ever.
    """

    __slots__ = ("bytes_left", "entries_left", "limited")

    def __init__(self, arguments: ReadArguments) -> None:
        self.limited = arguments.max_count > 0 or arguments.max_size > 0
        self.entries_left = arguments.max_count or INT64_MAX
        self.bytes_left = arguments.max_size or INT64_MAX

    def is_spent(self) -> bool:
        """Tell whether nothing more may be returned."""
        return self.entries_left <= 0 or self.bytes_left <= 0

    def cap(self, count: int) -> int:
        """The number of entries that may come from the next stream; 0 for any number."""
        if not self.limited:
            return count
        return min(count, self.entries_left) if count else self.entries_left

    def spend(self, fields: list[bytes]) -> None:
        """An entry with these fields is returned."""
        self.entries_left -= 1
        self.bytes_left -= sum(map(len, fields))

    def count_within(self, stream: Stream, after: StreamID, count: int) -> int:
        """How many entries after an id are returned; counts them as returned."""
        cursor = stream.cursor(after.next())
        found = 0
        limit = self.cap(count)
        while found < limit and not self.is_spent() and cursor.advance():
            self.spend(cursor.entry.fields())
            found += 1
        return found


def xread_keys(frame: Frame) -> list[int]:
    """The positions of the keys of an XREAD. Raises: CommandError."""
    return _key_places(frame, False)


def xreadgroup_keys(frame: Frame) -> list[int]:
    """The positions of the keys of an XREADGROUP. Raises: CommandError."""
    return _key_places(frame, True)


def _key_places(frame: Frame, grouped: bool) -> list[int]:
    """Uses the same reader as the command itself: a consumer named STREAMS misleads neither."""
    arguments = ReadArguments(grouped)
    arguments.read(None, frame)
    return list(range(arguments.streams_at, arguments.streams_at + arguments.streams))


def xread(context: Context, frame: Frame) -> Any:
    """Entries after an id, from several streams; waits for them with BLOCK."""
    arguments = _arguments(context, frame, False)
    ids: list[StreamID] = []
    for index in range(arguments.streams):
        key_at = arguments.streams_at + index
        stream = _stream_to_read(context, frame.piece(key_at))
        ids.append(_read_id(context, frame, key_at + arguments.streams, stream))
    served: list[tuple[bytes, Any]] = []
    budget = ReadBudget(arguments) if arguments.max_count or arguments.max_size else None
    for index in range(arguments.streams):
        key = frame.piece(arguments.streams_at + index)
        stream = _stream_to_read(context, key)
        if stream is not None and stream.last_entry_id() > ids[index]:
            count = arguments.count
            if budget is not None:
                if budget.is_spent():
                    break
                count = budget.count_within(stream, ids[index], count)
            entries = stream.range(ids[index].next(), stream_id.LARGEST, count)
            served.append((key, entries))
    if served:
        return Served(served)
    return _block_or_nothing(context, frame, arguments, ids)


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
    position: Any = arguments.group
    retry_ms: int | None = None
    if arguments.timeout_ms == _NEVER or not context.may_block:
        return NULL_ARRAY
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
    if arguments.claim_idle_ms != _NEVER:
        position = (arguments.group, arguments.claim_idle_ms)
        retry_ms = _retry_ms(context, keys, arguments)
    return Blocked(again, keys, arguments.timeout_ms, position, retry_ms=retry_ms)


def _retry_ms(context: Context, keys: list[bytes], arguments: ReadArguments) -> int:
    """How long until an entry that is pending now, or that becomes pending, can be claimed."""
    first: int | None = None
    for key in keys:
        stream = context.keyspace.stream_or_none(key)
        group = group_or_none(stream, arguments.group or b"")
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
    arguments = _arguments(context, frame, True)
    assert arguments.group is not None
    context.recorded = True  # the deliveries are recorded, not the request
    groups: list[Group] = []
    ids: list[StreamID] = []
    for index in range(arguments.streams):
        key_at = arguments.streams_at + index
        groups.append(_group_of(context, frame.piece(key_at), arguments.group))
        ids.append(_group_read_id(context, frame, key_at + arguments.streams))
    served: list[tuple[bytes, Any]] = []
    budget = ReadBudget(arguments) if arguments.max_count or arguments.max_size else None
    for index in range(arguments.streams):
        if budget is not None and budget.is_spent():
            break
        key = frame.piece(arguments.streams_at + index)
        entries = _serve_group(context, key, groups[index], ids[index], arguments, budget)
        if entries is not None:
            served.append((key, entries))
        if not _is_new(ids[index]):
            arguments.claim_idle_ms = _NEVER  # for the streams that follow, as in Redis
    if served:
        return Served(served)
    return _block_or_nothing(context, frame, arguments, ids)


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
    budget: ReadBudget | None,
) -> Any:
    """The entries for one stream of an XREADGROUP, or None if there are none."""
    stream = context.keyspace.stream_or_none(key)
    if stream is None:
        return None
    now_ms = context.now_ms()
    count = arguments.count if budget is None else budget.cap(arguments.count)
    if not _is_new(after):
        consumer = consumer_of(context, key, group, arguments)
        history = group.redeliver(stream, consumer, after, count, now_ms)
        if budget is not None:
            for _, flat in history:
                budget.spend(flat or [])
        if context.effects is not None:
            again = [stream_id.parse(found_id) for found_id, flat in history if flat is not None]
            _deliveries(context, key, group, arguments).took(again)
        if context.compat.history_is_change:
            context.dirty += 1
        return [(found_id, NULL_ARRAY if flat is None else flat) for found_id, flat in history]
    reader = group.consumer_or_none(arguments.consumer)
    if reader is None:
        if not context.compat.consumer_activity and stream.last_entry_id() <= group.last_id:
            return None
        reader = _made_consumer(context, key, group, arguments)
    elif context.compat.consumer_activity and not context.retrying:
        reader.seen_ms = now_ms
    if arguments.claim_idle_ms != _NEVER:
        return _claim_and_deliver(context, key, group, reader, arguments, budget)
    if budget is not None:
        count = budget.count_within(stream, group.last_id, count)
    found = group.deliver(stream, reader, count, now_ms, arguments.ack)
    if found is not None:
        reader.seen_ms = now_ms
        if arguments.ack:  # as in Redis, entries that do not become pending do not count
            reader.active_ms = now_ms
        if not context.retrying or context.compat.unblock_repeats_command:
            context.dirty += 1
        if context.effects is not None:
            _record_delivery(context, key, group, arguments, found)
    return found


def _claim_and_deliver(
    context: Context,
    key: bytes,
    group: Group,
    reader: Consumer,
    arguments: ReadArguments,
    budget: ReadBudget | None,
) -> Any:
    """Idle entries, then new ones; each with its idle time and its number of deliveries before."""
    stream = context.keyspace.stream_or_none(key)
    assert stream is not None
    now_ms = context.now_ms()
    count = arguments.count if budget is None else budget.cap(arguments.count)
    claimed = _claim_within(stream, group, reader, arguments.claim_idle_ms, count, now_ms, budget)
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
            _record_delivery(context, key, group, arguments, found)
    return rows


def _claim_within(
    stream: Stream,
    group: Group,
    reader: Consumer,
    idle_ms_min: int,
    count: int,
    now_ms: int,
    budget: ReadBudget | None,
) -> list[ClaimedEntry]:
    """Claim idle entries: all at once, or one by one if their size is limited."""
    if budget is None:
        return group.claim_idle(stream, reader, idle_ms_min, count, now_ms)
    claimed: list[ClaimedEntry] = []
    while not budget.is_spent() and (count == 0 or len(claimed) < count):
        found = group.claim_idle(stream, reader, max(1, idle_ms_min), 1, now_ms)
        if not found:
            break
        budget.spend(found[0].fields)
        claimed += found
    return claimed


def consumer_of(context: Context, key: bytes, group: Group, arguments: ReadArguments) -> Consumer:
    """The consumer that reads, created if it is new; updates its seen time."""
    consumer = group.consumer_or_none(arguments.consumer)
    if consumer is None:
        return _made_consumer(context, key, group, arguments)
    consumer.seen_ms = context.now_ms()
    return consumer


def _made_consumer(
    context: Context, key: bytes, group: Group, arguments: ReadArguments
) -> Consumer:
    consumer = make_consumer(context, key, group, arguments.consumer)
    if context.effects is not None:
        _deliveries(context, key, group, arguments).made()
    return consumer


def _deliveries(context: Context, key: bytes, group: Group, arguments: ReadArguments) -> Deliveries:
    assert arguments.group is not None
    return Deliveries(context, key, group, arguments.group, arguments.consumer)


def _record_delivery(
    context: Context, key: bytes, group: Group, arguments: ReadArguments, found: EntryRange
) -> None:
    """Record new deliveries and the group's new position."""
    deliveries = _deliveries(context, key, group, arguments)
    if arguments.ack:
        ids: list[bytes] = []
        cursor = found.cursor()
        while len(ids) < found.limit and cursor.advance():
            ids.append(cursor.id.text)
        deliveries.got(ids, context.now_ms(), 1)
    deliveries.moved()


COMMANDS = (
    Command(
        "XRANGE",
        xrange,
        -4,
        Flags.READ,
        ONE_KEY,
        "Read entries between two ids, oldest first.",
        syntax="key start end [COUNT count]",
        since="5.0.0",
        complexity="O(n) for the n entries returned",
        group="stream",
    ),
    Command(
        "XREVRANGE",
        xrevrange,
        -4,
        Flags.READ,
        ONE_KEY,
        "Read entries between two ids, newest first.",
        syntax="key end start [COUNT count]",
        since="5.0.0",
        complexity="O(n) for the n entries returned",
        group="stream",
    ),
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
    ),
)
