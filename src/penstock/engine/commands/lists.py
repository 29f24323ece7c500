"""Lists, at their ends and by index: LPUSH, LPOP, LLEN, LRANGE, LINDEX, LREM, LTRIM and variants.

A list is never empty: removing the last element removes the key. Events, counts of changes and their order
are Redis's, because consumers of job queues rely on them: a push publishes `rpush` once for all its elements,
and a command that empties a list publishes `del` after its own event.
"""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.core.list_value import ListValue
from penstock.engine import events
from penstock.engine.arguments import INT64_MAX, INT64_MIN, int_at, int_between
from penstock.engine.context import Context
from penstock.engine.table import ONE_KEY, Command, Flags, QuickForm
from penstock.errors import CommandError, elements_too_large, wrong_arity
from penstock.reply import NULL_ARRAY, OK, NullArray, ReplyWriter, Status

# The size of all elements of a push: well below that of a listpack, so that none is refused midway.
PUSH_BYTES_MAX = 1 << 31

_LIST = events.LIST
_POP_WORDS = 2  # in a pop without a count


# --- Pushing --------------------------------------------------------------------------------------


def lpush(context: Context, frame: Frame) -> int:
    """Add elements before the first, one by one."""
    return _push(context, frame, True)


def rpush(context: Context, frame: Frame) -> int:
    """Add elements after the last."""
    return _push(context, frame, False)


class QuickPush(QuickForm):
    """LPUSH and RPUSH."""

    __slots__ = ("left",)

    def __init__(self, left: bool) -> None:
        self.left = left

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        reply.put_int(_push(context, frame, self.left))
        return True


def lpushx(context: Context, frame: Frame) -> int:
    """As lpush, if the list exists."""
    found = context.keyspace.list_or_none(frame.piece(1))
    return 0 if found is None else _push(context, frame, True)


def rpushx(context: Context, frame: Frame) -> int:
    """As rpush, if the list exists."""
    found = context.keyspace.list_or_none(frame.piece(1))
    return 0 if found is None else _push(context, frame, False)


def _push(context: Context, frame: Frame, left: bool) -> int:
    key = frame.piece(1)
    found = context.keyspace.list_or_none(key)
    if frame.bytes_from(2) > PUSH_BYTES_MAX:
        raise elements_too_large()
    value = context.keyspace.new_list() if found is None else found
    for at in range(2, frame.count):
        value.push_piece(frame.buffer, frame.start(at), frame.size(at), left)
    if found is None:
        put_new(context, key, value)
    context.changed(key, _LIST, push_event(left))
    context.dirty += frame.count - 3
    return value.length


def put_new(context: Context, key: bytes, value: ListValue) -> None:
    """Create the key of a new list and touch it: only a missing list can have waiters."""
    context.keyspace.put(key, value)
    context.created(context.keyspace, key)
    context.touch(key)


def push_event(left: bool) -> bytes:
    """The event of a push."""
    return b"lpush" if left else b"rpush"


# --- Popping --------------------------------------------------------------------------------------


def lpop(context: Context, frame: Frame) -> bytes | list[bytes] | NullArray | None:
    """Remove and return the first element, or several."""
    return _pop(context, frame, True)


def rpop(context: Context, frame: Frame) -> bytes | list[bytes] | NullArray | None:
    """Remove and return the last element, or several, the last one first."""
    return _pop(context, frame, False)


class QuickPop(QuickForm):
    """LPOP and RPOP without a count."""

    __slots__ = ("left",)

    def __init__(self, left: bool) -> None:
        self.left = left

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        if frame.count != _POP_WORDS:
            return False
        key = frame.piece(1)
        value = context.keyspace.list_or_none(key)
        element = None if value is None else pop_one(context, key, value, self.left)
        if element is None:
            reply.put(None)
        else:
            reply.put_bulk(element)
        return True


def _pop(context: Context, frame: Frame, left: bool) -> bytes | list[bytes] | NullArray | None:
    if frame.count > 3:
        raise wrong_arity("lpop" if left else "rpop")
    key = frame.piece(1)
    if frame.count == _POP_WORDS:
        value = context.keyspace.list_or_none(key)
        return None if value is None else pop_one(context, key, value, left)
    error = CommandError("value is out of range, must be positive")
    wanted = int_between(frame, 2, 0, INT64_MAX, error)
    value = context.keyspace.list_or_none(key)
    if value is None:
        return NULL_ARRAY
    return pop_many(context, key, value, left, wanted) if wanted else []


def pop_many(context: Context, key: bytes, value: ListValue, left: bool, most: int) -> list[bytes]:
    """Remove and return up to `most` elements, at least one, and publish it."""
    count = min(most, value.length)
    last = value.length - 1
    if left:
        taken = value.range(0, count - 1)
        value.trim(count, last)
    else:
        taken = value.range(last - count + 1, last)
        taken.reverse()
        value.trim(0, last - count)
    popped(context, key, value, left, count)
    return taken


def pop_one(context: Context, key: bytes, value: ListValue, left: bool) -> bytes | None:
    """Remove and return one element, and publish it."""
    element = value.pop_left_or_none() if left else value.pop_right_or_none()
    popped(context, key, value, left, 1)
    return element


def popped(context: Context, key: bytes, value: ListValue, left: bool, count: int) -> None:
    """Publish that elements were popped, and remove the key if the list is empty."""
    context.changed(key, _LIST, b"lpop" if left else b"rpop")
    context.dirty += count - 1
    _remove_if_empty(context, key, value)


def _remove_if_empty(context: Context, key: bytes, value: ListValue) -> None:
    """Remove the key of an empty list. The change itself is already counted."""
    if value.length == 0:
        context.keyspace.remove(key)
        context.event(events.GENERIC, b"del", key)


# --- Reading --------------------------------------------------------------------------------------


def read(context: Context, key: bytes) -> ListValue | None:
    """The list to read; publishes a missing key."""
    value = context.keyspace.list_or_none(key)
    if value is None:
        context.missed(key)
    return value


def llen(context: Context, frame: Frame) -> int:
    """Count the elements."""
    value = read(context, frame.piece(1))
    return 0 if value is None else value.length


def lindex(context: Context, frame: Frame) -> bytes | None:
    """Return one element."""
    value = read(context, frame.piece(1))
    return None if value is None else value.get_or_none(int_at(frame, 2))


def lrange(context: Context, frame: Frame) -> list[bytes]:
    """Return the elements from one index to another."""
    first, last = int_at(frame, 2), int_at(frame, 3)
    value = read(context, frame.piece(1))
    if value is None:
        return []
    start, end = _resolved(first, last, value.length)
    return value.range(start, end)


def _resolved(first: int, last: int, length: int) -> tuple[int, int]:
    """Two indexes clipped to a list, negative ones from the end; first > last if the range is empty."""
    start = max(0, first + length if first < 0 else first)
    end = min(length - 1, last + length if last < 0 else last)
    return start, end


# --- Removing -------------------------------------------------------------------------------------


def lrem(context: Context, frame: Frame) -> int:
    """Remove elements that are equal to a value."""
    count = int_at(frame, 2)
    if count == INT64_MIN and context.compat.lrem_count_has_limit:
        raise CommandError(
            f"value is out of range, value must between {-INT64_MAX} and {INT64_MAX}"
        )
    key = frame.piece(1)
    value = context.keyspace.list_or_none(key)
    if value is None:
        return 0
    removed = value.remove(frame.piece(3), count)
    if removed:
        context.changed(key, events.LIST, b"lrem")
        context.dirty += removed - 1
        _remove_if_empty(context, key, value)
    return removed


def ltrim(context: Context, frame: Frame) -> Status:
    """Keep only the elements from one index to another."""
    first, last = int_at(frame, 2), int_at(frame, 3)
    key = frame.piece(1)
    value = context.keyspace.list_or_none(key)
    if value is None:
        return OK
    before = value.length
    start, end = _resolved(first, last, before)
    value.trim(start, end)
    # Published, and breaks watches, even if nothing is removed, as in Redis.
    context.changed(key, events.LIST, b"ltrim")
    context.dirty += before - value.length - 1
    _remove_if_empty(context, key, value)
    return OK


_PUSHES = Flags.WRITE | Flags.DENY_OOM | Flags.FAST
_POPS = Flags.WRITE | Flags.FAST

COMMANDS = (
    Command(
        "LPUSH",
        lpush,
        -3,
        _PUSHES,
        ONE_KEY,
        "Add elements at the left end of a list.",
        syntax="key element [element ...]",
        complexity="O(elements)",
        group="list",
        quick=QuickPush(left=True),
        access=("RW insert",),
    ),
    Command(
        "RPUSH",
        rpush,
        -3,
        _PUSHES,
        ONE_KEY,
        "Add elements at the right end of a list.",
        syntax="key element [element ...]",
        complexity="O(elements)",
        group="list",
        quick=QuickPush(left=False),
        access=("RW insert",),
    ),
    Command(
        "LPUSHX",
        lpushx,
        -3,
        _PUSHES,
        ONE_KEY,
        "Add elements at the left end of an existing list.",
        syntax="key element [element ...]",
        since="2.2.0",
        complexity="O(elements)",
        group="list",
        access=("RW insert",),
    ),
    Command(
        "RPUSHX",
        rpushx,
        -3,
        _PUSHES,
        ONE_KEY,
        "Add elements at the right end of an existing list.",
        syntax="key element [element ...]",
        since="2.2.0",
        complexity="O(elements)",
        group="list",
        access=("RW insert",),
    ),
    Command(
        "LPOP",
        lpop,
        -2,
        _POPS,
        ONE_KEY,
        "Remove and return elements from the left end of a list.",
        syntax="key [count]",
        complexity="O(elements removed)",
        group="list",
        quick=QuickPop(left=True),
        access=("RW access delete",),
    ),
    Command(
        "RPOP",
        rpop,
        -2,
        _POPS,
        ONE_KEY,
        "Remove and return elements from the right end of a list.",
        syntax="key [count]",
        complexity="O(elements removed)",
        group="list",
        quick=QuickPop(left=False),
        access=("RW access delete",),
    ),
    Command(
        "LLEN",
        llen,
        2,
        Flags.READ | Flags.FAST,
        ONE_KEY,
        "Count the elements of a list.",
        syntax="key",
        group="list",
        access=("RO",),
    ),
    Command(
        "LINDEX",
        lindex,
        3,
        Flags.READ,
        ONE_KEY,
        "Read one element of a list.",
        syntax="key index",
        complexity="O(nodes up to the element, from the nearer end)",
        group="list",
    ),
    Command(
        "LRANGE",
        lrange,
        4,
        Flags.READ,
        ONE_KEY,
        "Read the elements of a list from one index to another.",
        syntax="key start stop",
        complexity="O(nodes up to the first, from the nearer end, and elements read)",
        group="list",
    ),
    Command(
        "LREM",
        lrem,
        4,
        Flags.WRITE,
        ONE_KEY,
        "Remove elements that are equal to a value.",
        syntax="key count element",
        complexity="O(elements up to the last one removed)",
        group="list",
        access=("RW delete",),
    ),
    Command(
        "LTRIM",
        ltrim,
        4,
        Flags.WRITE,
        ONE_KEY,
        "Keep only the elements of a list from one index to another.",
        syntax="key start stop",
        complexity="O(nodes removed)",
        group="list",
        access=("RW delete",),
    ),
)
