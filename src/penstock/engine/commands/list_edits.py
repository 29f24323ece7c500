"""Elements of a list by index and by value: LSET, LINSERT, LPOS."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine import events
from penstock.engine.arguments import INT64_MAX, int_at, int_between
from penstock.engine.commands import lists
from penstock.engine.context import Context
from penstock.engine.table import ONE_KEY, Command, Flags
from penstock.errors import CommandError, elements_too_large, no_such_key, syntax_error
from penstock.reply import OK, Status


def lset(context: Context, frame: Frame) -> Status:
    """Replace the element with an index."""
    key = frame.piece(1)
    value = context.keyspace.list_or_none(key)
    if value is None:
        raise no_such_key()
    index = int_at(frame, 2)
    _check_size(frame, 3)
    if not value.replace(index, frame.piece(3)):
        raise CommandError("index out of range")
    context.changed(key, events.LIST, b"lset")
    return OK


def linsert(context: Context, frame: Frame) -> int:
    """Add an element before or after another; return the new length."""
    after = frame.is_word(2, b"AFTER")
    if not after and not frame.is_word(2, b"BEFORE"):
        raise syntax_error()
    _check_size(frame, 4)
    key = frame.piece(1)
    value = context.keyspace.list_or_none(key)
    if value is None:
        return 0
    if not value.insert(frame.piece(3), frame.piece(4), after):
        return -1
    context.changed(key, events.LIST, b"linsert")
    return value.length


def _check_size(frame: Frame, index: int) -> None:
    """Refuse an element that no push would accept."""
    if frame.size(index) > lists.PUSH_BYTES_MAX:
        raise elements_too_large()


def lpos(context: Context, frame: Frame) -> int | list[int] | None:
    """Return the index of the first match, or with COUNT those of several."""
    options = _Search(frame)
    value = lists.read(context, frame.piece(1))
    if value is None:
        return None if options.count is None else []
    limit = 1 if options.count is None else options.count
    found = value.positions(frame.piece(2), options.rank, limit, options.scan_max)
    if options.count is not None:
        return found
    return found[0] if found else None


class _Search:
    """The options of LPOS. As in Redis, an option may be repeated; the last one counts."""

    __slots__ = ("count", "rank", "scan_max")

    def __init__(self, frame: Frame) -> None:
        self.rank = 1
        self.count: int | None = None
        self.scan_max = 0
        at = 3
        while at < frame.count:
            if at + 1 == frame.count:
                raise syntax_error()
            if frame.is_word(at, b"RANK"):
                self.rank = _rank_at(frame, at + 1)
            elif frame.is_word(at, b"COUNT"):
                negative = CommandError("COUNT can't be negative")
                self.count = int_between(frame, at + 1, 0, INT64_MAX, negative)
            elif frame.is_word(at, b"MAXLEN"):
                negative = CommandError("MAXLEN can't be negative")
                self.scan_max = int_between(frame, at + 1, 0, INT64_MAX, negative)
            else:
                raise syntax_error()
            at += 2


def _rank_at(frame: Frame, index: int) -> int:
    rank = int_at(frame, index)
    if rank < -INT64_MAX:
        raise CommandError(
            f"value is out of range, value must between {-INT64_MAX} and {INT64_MAX}"
        )
    if rank == 0:
        raise CommandError(
            "RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
            "or use negative to start from the end of the list"
        )
    return rank


COMMANDS = (
    Command(
        "LSET",
        lset,
        4,
        Flags.WRITE | Flags.DENY_OOM,
        ONE_KEY,
        "Replace one element of a list.",
        syntax="key index element",
        complexity="O(nodes up to the element, from the nearer end)",
        group="list",
    ),
    Command(
        "LINSERT",
        linsert,
        5,
        Flags.WRITE | Flags.DENY_OOM,
        ONE_KEY,
        "Add an element before or after another one.",
        syntax="key <BEFORE | AFTER> pivot element",
        since="2.2.0",
        complexity="O(elements up to the pivot)",
        group="list",
        access=("RW insert",),
    ),
    Command(
        "LPOS",
        lpos,
        -3,
        Flags.READ,
        ONE_KEY,
        "Find elements that are equal to a value.",
        syntax="key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
        since="6.0.6",
        complexity="O(elements compared)",
        group="list",
    ),
)
