"""Creates, moves and removes groups and consumers, and acknowledges entries: XGROUP, XACK."""

from __future__ import annotations

from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import ENTRIES_READ_UNKNOWN, Group
from penstock.core.groups.references import add_group, remove_group
from penstock.core.stream import Stream
from penstock.engine import events
from penstock.engine.arguments import count_at
from penstock.engine.commands.help import help_of
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, ONE_KEY, SUBCOMMAND_KEY, Command, Flags, QuickForm
from penstock.errors import (
    CommandError,
    group_exists,
    group_needs_key,
    no_group_for_key,
    unknown_subcommand,
)
from penstock.reply import OK, ReplyWriter, Status

_DOLLAR = b"$"
_CREATE_WORDS_MAX = 8  # room for each option once; which options they are is not checked
_SETID_WORDS_MAX = 7
_WORDS_OF_ONE_ACK = 4


def group_or_none(stream: Stream | None, name: bytes) -> Group | None:
    """A group of a stream; both may be missing."""
    if stream is None or stream.groups is None:
        return None
    group: Group | None = stream.groups.find(name)
    return group


def make_consumer(context: Context, key: bytes, group: Group, name: bytes) -> Consumer:
    """Add a new consumer and publish it; used by all commands that create one."""
    consumer = group.create_consumer(name, context.now_ms())
    context.changed_metadata(key, events.STREAM, b"xgroup-createconsumer")
    return consumer


def _stream_and_group(context: Context, frame: Frame) -> tuple[Stream, Group]:
    """The stream and the group of a subcommand. Raises: CommandError if one is missing."""
    key, name = frame.piece(2), frame.piece(3)
    stream = context.keyspace.stream_or_none(key)
    if stream is None:
        raise group_needs_key()
    group = group_or_none(stream, name)
    if group is None:
        raise no_group_for_key(key, name)
    return stream, group


def _read_options(context: Context, frame: Frame, creating: bool) -> tuple[bool, int]:
    """Read `[MKSTREAM] [ENTRIESREAD n]` from the sixth word on."""
    make = False
    entries_read = ENTRIES_READ_UNKNOWN
    at = 5
    while at < frame.count:
        if creating and frame.is_word(at, b"MKSTREAM"):
            make = True
        elif at + 1 < frame.count and frame.is_word(at, b"ENTRIESREAD"):
            at += 1
            entries_read = count_at(context, frame, at)
            if entries_read < 0 and entries_read != ENTRIES_READ_UNKNOWN:
                raise CommandError("value for ENTRIESREAD must be positive or -1")
        else:
            raise unknown_subcommand("XGROUP", frame.piece(1))
        at += 1
    return make, entries_read


def _bounded(context: Context, frame: Frame, stream: Stream, entries_read: int) -> int:
    """ENTRIESREAD, since 8.2 at most the number of entries that were ever added.

    A replay takes numbers as they are: after XSETID has lowered entries_added, a group may have counted more.
    """
    added = stream.entries_added
    if not context.compat.entries_read_bounded or context.replaying or entries_read <= added:
        return entries_read
    if context.effects is not None:
        words = [frame.piece(at) for at in range(5)]
        made = [b"MKSTREAM"] if frame.is_word(1, b"CREATE") else []
        context.record([*words, *made, b"ENTRIESREAD", b"%d" % added])
    return added


def xgroup_create(context: Context, frame: Frame) -> Status:
    """Create a group that reads the entries after an id."""
    make, entries_read = _read_options(context, frame, True)
    key, name, text = frame.piece(2), frame.piece(3), frame.piece(4)
    stream = context.keyspace.stream_or_none(key)
    if stream is None and not make:
        raise group_needs_key()
    if frame.count > _CREATE_WORDS_MAX:
        raise unknown_subcommand("XGROUP", frame.piece(1))
    if text == _DOLLAR:
        last = stream_id.SMALLEST if stream is None else stream.last_id
    else:
        last = stream_id.parse(text)
    if group_or_none(stream, name) is not None:
        raise group_exists()
    made = stream is None
    if stream is None:
        stream = context.keyspace.new_stream()
        context.keyspace.put(key, stream)
    add_group(stream, name, Group(last, _bounded(context, frame, stream, entries_read)))
    if made:
        context.created(context.keyspace, key)
        context.changed(key, events.STREAM, b"xgroup-create")
    else:
        context.changed_metadata(key, events.STREAM, b"xgroup-create")
    return OK


def xgroup_setid(context: Context, frame: Frame) -> Status:
    """Move a group to another id. Readers that wait for new entries keep waiting, as in Redis."""
    _, entries_read = _read_options(context, frame, False)
    stream, group = _stream_and_group(context, frame)
    if frame.count > _SETID_WORDS_MAX:
        raise unknown_subcommand("XGROUP", frame.piece(1))
    text = frame.piece(4)
    last = stream.last_id if text == _DOLLAR else stream_id.parse_edge(text, 0)
    group.set_position(last, _bounded(context, frame, stream, entries_read))
    context.changed_metadata(frame.piece(2), events.STREAM, b"xgroup-setid")
    return OK


def xgroup_destroy(context: Context, frame: Frame) -> int:
    """Remove a group with its pending entries; its blocked readers get an error."""
    key, name = frame.piece(2), frame.piece(3)
    stream = context.keyspace.stream_or_none(key)
    if stream is None:
        raise group_needs_key()
    if not remove_group(stream, name, context.garbage):
        return 0
    context.changed_metadata(key, events.STREAM, b"xgroup-destroy")
    context.touch(key)
    return 1


def xgroup_createconsumer(context: Context, frame: Frame) -> int:
    """Create a consumer; 0 if it exists."""
    _, group = _stream_and_group(context, frame)
    name = frame.piece(4)
    if group.consumer_or_none(name) is not None:
        return 0
    make_consumer(context, frame.piece(2), group, name)
    return 1


def xgroup_delconsumer(context: Context, frame: Frame) -> int:
    """Remove a consumer and its pending entries; return their number."""
    _, group = _stream_and_group(context, frame)
    consumer = group.consumer_or_none(frame.piece(4))
    if consumer is None:
        return 0
    context.changed_metadata(frame.piece(2), events.STREAM, b"xgroup-delconsumer")
    return group.delete_consumer(consumer, context.garbage)


def xgroup_help(_context: Context, _frame: Frame) -> list[Status]:
    """The subcommands of XGROUP."""
    return help_of("XGROUP", _HELP)


def xack(context: Context, frame: Frame) -> int:
    """Acknowledge entries; all ids are parsed before the first is acknowledged."""
    stream = context.keyspace.stream_at(frame, 1)
    if stream is None or stream.groups is None:
        return 0
    group: Group | None = stream.group_found.find_at(stream.groups, frame, 2)
    if group is None:
        return 0
    acknowledged = 0
    if frame.count == _WORDS_OF_ONE_ACK:
        acknowledged += group.acknowledge_key(_id_key_at(frame, 3))
    else:
        for key in [_id_key_at(frame, at) for at in range(3, frame.count)]:
            acknowledged += group.acknowledge_key(key)
    context.dirty += acknowledged
    return acknowledged


def _id_key_at(frame: Frame, index: int) -> bytes:
    return stream_id.parse_key(frame.buffer, frame.start(index), frame.size(index))


class QuickAck(QuickForm):
    """XACK with any arguments."""

    __slots__ = ()

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        reply.put_int(xack(context, frame))
        return True


_HELP = [
    "CREATE <key> <groupname> <id|$> [option]",
    "    Create a group that reads the entries after an id. Options are:",
    "    * MKSTREAM",
    "      Create the stream if it does not exist.",
    "    * ENTRIESREAD entries_read",
    "      The number of entries read up to that id, for the group's lag.",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Create a consumer of a group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove a consumer and its pending entries.",
    "DESTROY <key> <groupname>",
    "    Remove a group and its pending entries.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Let a group continue after another id.",
]

_MAKES = Flags.WRITE | Flags.DENY_OOM

COMMANDS = (
    Command(
        "XGROUP CREATE",
        xgroup_create,
        -5,
        _MAKES,
        SUBCOMMAND_KEY,
        "Create a consumer group.",
        syntax="key group <id | $> [MKSTREAM] [ENTRIESREAD entries-read]",
        since="5.0.0",
        group="stream",
        access=("RW insert",),
        group_at=3,
    ),
    Command(
        "XGROUP SETID",
        xgroup_setid,
        -5,
        Flags.WRITE,
        SUBCOMMAND_KEY,
        "Move a group to another id.",
        syntax="key group <id | $> [ENTRIESREAD entries-read]",
        since="5.0.0",
        group="stream",
        group_at=3,
    ),
    Command(
        "XGROUP DESTROY",
        xgroup_destroy,
        4,
        Flags.WRITE,
        SUBCOMMAND_KEY,
        "Remove a group.",
        syntax="key group",
        since="5.0.0",
        complexity="O(n) for n pending entries",
        group="stream",
        access=("RW delete",),
        group_at=3,
    ),
    Command(
        "XGROUP CREATECONSUMER",
        xgroup_createconsumer,
        5,
        _MAKES,
        SUBCOMMAND_KEY,
        "Create a consumer.",
        syntax="key group consumer",
        since="6.2.0",
        group="stream",
        access=("RW insert",),
        group_at=3,
    ),
    Command(
        "XGROUP DELCONSUMER",
        xgroup_delconsumer,
        5,
        Flags.WRITE,
        SUBCOMMAND_KEY,
        "Remove a consumer.",
        syntax="key group consumer",
        since="5.0.0",
        complexity="O(n) for n pending entries",
        group="stream",
        access=("RW delete",),
        group_at=3,
    ),
    Command(
        "XGROUP HELP",
        xgroup_help,
        2,
        Flags.LOADING | Flags.STALE,
        NO_KEYS,
        "Show the subcommands of XGROUP.",
        since="5.0.0",
        group="stream",
    ),
    Command(
        "XACK",
        xack,
        -4,
        Flags.WRITE | Flags.FAST,
        ONE_KEY,
        "Acknowledge entries.",
        syntax="key group id [id ...]",
        since="5.0.0",
        complexity="O(1) for each id",
        group="stream",
        quick=QuickAck(),
        group_at=2,
    ),
)
