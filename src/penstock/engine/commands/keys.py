"""Commands on keys of any type: DEL, EXISTS, TYPE, RENAME, OBJECT."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.engine import events
from penstock.engine.arguments import INT32_MAX, int_of
from penstock.engine.commands.expiry import remove_now
from penstock.engine.context import Context
from penstock.engine.table import (
    ALL_KEYS,
    NO_KEYS,
    ONE_KEY,
    SUBCOMMAND_KEY,
    TWO_KEYS,
    Command,
    Flags,
)
from penstock.errors import CommandError, no_such_key
from penstock.reply import OK, Status

_EMBEDDED_BYTES_MAX = 44  # Redis stores shorter strings next to their header
_INTEGER_BYTES_MAX = 20
_SHARED_INTEGERS = 10_000  # Redis shares one object for each of these

_HELP = (
    "OBJECT <subcommand> [<arg> ...]. Subcommands are:",
    "ENCODING <key>",
    "    How Redis would store the value.",
    "FREQ <key>",
    "    How often the value is used; not tracked.",
    "IDLETIME <key>",
    "    How long the value has not been used; not tracked.",
    "REFCOUNT <key>",
    "    How many references to the value Redis would count.",
    "HELP",
    "    Show these lines.",
)


def type_name(value: object) -> str:
    """The name that TYPE returns."""
    if isinstance(value, Stream):
        return "stream"
    return "string" if isinstance(value, bytes) else "list"


def del_(context: Context, frame: Frame) -> int:
    """Remove keys; return how many existed."""
    removed = 0
    for at in range(1, frame.count):
        key = frame.piece(at)
        if context.keyspace.find(key) is not None:
            remove_now(context, key)
            removed += 1
    return removed


def exists(context: Context, frame: Frame) -> int:
    """Count the keys that exist; one named twice counts twice."""
    found = 0
    for at in range(1, frame.count):
        key = frame.piece(at)
        if context.keyspace.find(key) is None:
            context.missed(key)
        else:
            found += 1
    return found


def type_(context: Context, frame: Frame) -> Status:
    """The type of a key's value."""
    key = frame.piece(1)
    value = context.keyspace.find(key)
    if value is None:
        context.missed(key)
        return Status("none")
    return Status(type_name(value))


def rename(context: Context, frame: Frame) -> Status:
    """Move a value to another key, replacing that key's value."""
    _rename(context, frame, True)
    return OK


def renamenx(context: Context, frame: Frame) -> int:
    """Move a value to another key, unless that key exists."""
    return 1 if _rename(context, frame, False) else 0


def _rename(context: Context, frame: Frame, replace: bool) -> bool:
    keyspace = context.keyspace
    source, target = frame.piece(1), frame.piece(2)
    value = keyspace.find(source)
    if value is None:
        raise no_such_key()
    if source == target or (keyspace.find(target) is not None and not replace):
        return False
    when_ms = keyspace.expiry_or_none(source)
    keyspace.discard(target)
    keyspace.remove(source)
    keyspace.put(target, value)
    if when_ms is not None:
        keyspace.set_expiry(target, when_ms)
    context.created(keyspace, target)
    context.changed_in(keyspace, source, events.GENERIC, b"rename_from")
    context.changed_in(keyspace, target, events.GENERIC, b"rename_to")
    context.dirty += 1
    return True


def object_encoding(context: Context, frame: Frame) -> bytes | None:
    """How Redis would store a value.

    Only the bytes of a string are kept. Redis remembers how they were made (APPEND and SETRANGE leave `raw`,
    INCRBYFLOAT never `int`); the reply here is that for a SET of the same bytes.
    """
    value = context.keyspace.find(frame.piece(2))
    if value is None:
        return None
    if isinstance(value, Stream):
        return b"stream"
    if isinstance(value, ListValue):
        small = context.compat.small_lists_are_listpacks and _is_small(value)
        return b"listpack" if small else b"quicklist"
    assert isinstance(value, bytes)
    if _is_integer(value):
        return b"int"
    return b"embstr" if len(value) <= _EMBEDDED_BYTES_MAX else b"raw"


def _is_small(value: ListValue) -> bool:
    """Tell whether a list is one node within the limits; a huge element has a node of its own."""
    nodes, first = value.inside()
    return len(nodes) - first == 1 and len(next(value.nodes())) <= value.limits.bytes_max


def _is_integer(value: bytes) -> bool:
    if len(value) > _INTEGER_BYTES_MAX:
        return False
    try:
        int_of(value)
    except CommandError:
        return False
    return True


def object_refcount(context: Context, frame: Frame) -> int | None:
    """The reference count in Redis: one; before 8.2 the largest number for a small integer."""
    value = context.keyspace.find(frame.piece(2))
    if value is None:
        return None
    if not context.compat.integers_are_shared:
        return 1
    shared = isinstance(value, bytes) and _is_integer(value) and 0 <= int(value) < _SHARED_INTEGERS
    return INT32_MAX if shared else 1


def object_idletime(context: Context, frame: Frame) -> None:
    """Refused: penstock evicts nothing, so it does not track when a key was last used."""
    if context.keyspace.find(frame.piece(2)) is not None:
        raise CommandError("idle time not tracked: penstock evicts no keys")


def object_freq(context: Context, frame: Frame) -> None:
    """Refused with Redis's text for a policy without LFU."""
    if context.keyspace.find(frame.piece(2)) is not None:
        raise CommandError(
            "An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when"
            " switching between policies at runtime LRU and LFU data will take some time to adjust."
        )


def object_help(_context: Context, _frame: Frame) -> list[Status]:
    """The subcommands of OBJECT."""
    return [Status(line) for line in _HELP]


_TELLS = Flags.READ | Flags.FAST | Flags.KEYSPACE
_OBJECT = Flags.READ | Flags.KEYSPACE

COMMANDS = (
    Command(
        "DEL",
        del_,
        -2,
        Flags.WRITE | Flags.KEYSPACE,
        ALL_KEYS,
        "Remove keys.",
        syntax="key [key ...]",
        complexity="O(keys), plus the values' memory",
        group="generic",
        access=("RM delete",),
    ),
    Command(
        "UNLINK",
        del_,
        -2,
        Flags.WRITE | Flags.FAST | Flags.KEYSPACE,
        ALL_KEYS,
        "Remove keys; the same as DEL.",
        syntax="key [key ...]",
        since="4.0.0",
        complexity="O(keys), plus the values' memory",
        group="generic",
        access=("RM delete",),
    ),
    Command(
        "EXISTS",
        exists,
        -2,
        _TELLS,
        ALL_KEYS,
        "Count the keys that exist.",
        syntax="key [key ...]",
        complexity="O(keys)",
        group="generic",
        access=("RO",),
    ),
    Command(
        "TOUCH",
        exists,
        -2,
        _TELLS,
        ALL_KEYS,
        "Count the keys that exist; the same as EXISTS, because access times are not tracked.",
        syntax="key [key ...]",
        since="3.2.1",
        complexity="O(keys)",
        group="generic",
        access=("RO",),
    ),
    Command(
        "TYPE",
        type_,
        2,
        _TELLS,
        ONE_KEY,
        "Tell the type of a key's value.",
        syntax="key",
        group="generic",
        access=("RO",),
    ),
    Command(
        "RENAME",
        rename,
        3,
        Flags.WRITE | Flags.KEYSPACE,
        TWO_KEYS,
        "Rename a key, replacing the other if it exists.",
        syntax="key newkey",
        group="generic",
        access=("RW access delete", "OW update"),
    ),
    Command(
        "RENAMENX",
        renamenx,
        3,
        Flags.WRITE | Flags.FAST | Flags.KEYSPACE,
        TWO_KEYS,
        "Rename a key, unless the other exists.",
        syntax="key newkey",
        group="generic",
        access=("RW access delete", "OW insert"),
    ),
    Command(
        "OBJECT ENCODING",
        object_encoding,
        3,
        _OBJECT,
        SUBCOMMAND_KEY,
        "Tell how Redis would store a value.",
        syntax="key",
        since="2.2.3",
        group="generic",
        access=("RO",),
    ),
    Command(
        "OBJECT REFCOUNT",
        object_refcount,
        3,
        _OBJECT,
        SUBCOMMAND_KEY,
        "Tell the reference count that Redis would show.",
        syntax="key",
        since="2.2.3",
        group="generic",
        access=("RO",),
    ),
    Command(
        "OBJECT IDLETIME",
        object_idletime,
        3,
        _OBJECT,
        SUBCOMMAND_KEY,
        "Tell how long a value has not been used: not tracked.",
        syntax="key",
        since="2.2.3",
        group="generic",
        access=("RO",),
    ),
    Command(
        "OBJECT FREQ",
        object_freq,
        3,
        _OBJECT,
        SUBCOMMAND_KEY,
        "Tell how often a value is used: not tracked.",
        syntax="key",
        since="4.0.0",
        group="generic",
        access=("RO",),
    ),
    Command(
        "OBJECT HELP",
        object_help,
        2,
        Flags.LOADING | Flags.STALE | Flags.KEYSPACE,
        NO_KEYS,
        "Show the subcommands of OBJECT.",
        since="6.2.0",
        group="generic",
    ),
)
