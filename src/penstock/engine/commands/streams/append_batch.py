"""PENSTOCK APPENDBATCH: appends a whole batch exactly once. The last step of an exactly-once sink.

Writers first stage their rows under list keys, as blobs (core/row_blob.py). This command moves all of them to
the stream and stores the batch's number in a string key, the record. If it is sent again for the same batch,
it only deletes the staging keys. So a client that does not know whether a batch was appended sends it again.

    1  check the words, the types of all keys, every byte of the staging, the ids left: changes nothing
    2  append, trim, record, delete: nothing can be refused any more

For the journal these are ordinary commands in one unit: XADD ..., XTRIM, SET, DEL.
"""

from __future__ import annotations

from penstock.core import listpack, memory, stream_id
from penstock.core.frame import Frame
from penstock.core.list_value import ListValue
from penstock.core.row_blob import RowBlob
from penstock.core.stream import ENTRY_BYTES_MAX, Stream
from penstock.engine import events
from penstock.engine.arguments import INT64_MAX, int_between, int_of
from penstock.engine.commands.expiry import remove_now
from penstock.engine.commands.streams.append import AddArguments
from penstock.engine.commands.strings import put_string
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import (
    CommandError,
    elements_too_large,
    ids_exhausted,
    shown,
    syntax_error,
    wrong_type,
)

_BATCH_AT = 2
_COUNT_AT = 3
_KEYS_AT = 4
_KEYS_MIN = 3  # record, stream and one staging key
_FIELDS_AT = 2  # in a row's frame, after the word XADD and the key
_MAX64 = stream_id.MAX64


class BatchArguments:
    """The arguments of the command, checked."""

    __slots__ = ("batch_id", "record", "staging", "stream", "trim")

    def __init__(self, context: Context, frame: Frame) -> None:
        self.batch_id = int_between(
            frame, _BATCH_AT, 0, INT64_MAX, CommandError("batch id must be a number from 0")
        )
        keys = [frame.piece(at) for at in batch_keys(frame)]
        if len(set(keys)) < len(keys):
            raise CommandError("record, stream and staging must be different keys")
        self.record, self.stream, *self.staging = keys
        self.trim = _trim_or_none(context, frame, _KEYS_AT + len(keys))


def batch_keys(frame: Frame) -> list[int]:
    """The positions of the keys. Raises: CommandError."""
    wrong = CommandError(f"numkeys must count record, stream and staging: {_KEYS_MIN} or more")
    count = int_between(frame, _COUNT_AT, _KEYS_MIN, INT64_MAX, wrong)
    if count > frame.count - _KEYS_AT:
        raise syntax_error()
    return list(range(_KEYS_AT, _KEYS_AT + count))


def _trim_or_none(context: Context, frame: Frame, first: int) -> AddArguments | None:
    """The options of XTRIM, if given. Raises: CommandError."""
    if first == frame.count:
        return None
    words = Frame()
    words.add(b"XTRIM")
    words.add(b"")
    has_limit = False
    for at in range(first, frame.count):
        words.add(frame.piece(at))
        has_limit = has_limit or frame.is_word(at, b"LIMIT")
    if not has_limit and words.count > 3 and words.is_word(3, b"~"):
        # XTRIM's default limit is meant for one call per entry; a batch may remove as many as it adds.
        words.add(b"LIMIT")
        words.add(b"0")
    arguments = AddArguments()
    arguments.read(context, words, False)
    arguments.settle(False, context.keyspace.limits.entries_max, context.replaying)
    return arguments


def penstock_appendbatch(context: Context, frame: Frame) -> int:
    """Append the staged rows, unless the record shows that they were; return the number of entries added."""
    arguments = BatchArguments(context, frame)
    keyspace = context.keyspace
    stream = keyspace.stream_or_none(arguments.stream)
    is_done = _last_batch(context, arguments.record) >= arguments.batch_id
    staged = [keyspace.list_or_none(key) for key in arguments.staging]
    rows = 0
    if not is_done:
        for key, rows_of_key in zip(arguments.staging, staged, strict=True):
            rows += _count_rows(key, rows_of_key)
        if stream is not None and stream.last_ms == _MAX64 and rows > _MAX64 - stream.last_seq:
            raise ids_exhausted()
        if rows:
            _append_all(context, arguments, stream, staged)
        put_string(context, arguments.record, b"%d" % arguments.batch_id)
        keyspace.clear_expiry(arguments.record)
        context.changed(arguments.record, events.STRING, b"set")
        context.touch(arguments.record)
        if context.effects is not None:
            context.record([b"SET", arguments.record, b"%d" % arguments.batch_id])
    gone = [key for key, value in zip(arguments.staging, staged, strict=True) if value is not None]
    for key in gone:
        remove_now(context, key)
    if gone and context.effects is not None:
        context.record([b"DEL", *gone])
    return rows


def _last_batch(context: Context, key: bytes) -> int:
    """The number in the record, -1 if there is none. Raises: CommandError for another value."""
    value = context.keyspace.find(key)
    if value is None:
        return -1
    if not isinstance(value, bytes):
        raise wrong_type()
    return int_of(value)


def _count_rows(key: bytes, staged: ListValue | None) -> int:
    """Check and count the rows of a staging key. Raises: CommandError."""
    if staged is None:
        raise CommandError(
            f"no such staging key: '{shown(key)}'; it has expired, or the batch was given up"
        )
    blob = RowBlob()
    rows = 0
    for node in staged.nodes():
        at = listpack.first(node)
        while at:
            if listpack.is_int(node, at):
                raise CommandError(f"staging key '{shown(key)}' holds a number instead of rows")
            size = listpack.string_size(node, at)
            if size > ENTRY_BYTES_MAX:
                raise elements_too_large()
            try:
                blob.open(node, listpack.string_at(node, at), size)
                while blob.skip():
                    rows += 1
            except ValueError as error:
                raise CommandError(f"staging key '{shown(key)}' holds no rows: {error}") from None
            at = listpack.next_at(node, at)
    return rows


def _append_all(
    context: Context,
    arguments: BatchArguments,
    found: Stream | None,
    staged: list[ListValue | None],
) -> None:
    """Append the counted rows, then trim."""
    key = arguments.stream
    stream = context.keyspace.new_stream() if found is None else found
    before = stream.length
    if found is None:
        context.keyspace.put(key, stream)
        context.created(context.keyspace, key)
    for rows in staged:
        if rows is not None:
            for node in rows.nodes():
                _append_node(context, key, stream, node)
    for _ in range(stream.length - before):
        context.changed(key, events.STREAM, b"xadd")
    if arguments.trim is not None:
        trimmed = arguments.trim.trim(stream, context.replaying, context.garbage)
        if trimmed:
            context.changed(key, events.STREAM, b"xtrim")
            context.dirty += trimmed - 1  # every entry is a change
            if context.effects is not None:
                context.record([b"XTRIM", key, *arguments.trim.trim_words(stream)])
    context.touch(key)


def _append_node(context: Context, key: bytes, stream: Stream, node: bytearray) -> None:
    """Append the rows of the blobs in one node of a list."""
    blob = RowBlob()
    row = Frame()
    prefix = len(key)
    at = listpack.first(node)
    while at:
        # An effect is written from a frame that also has the stream's key: it precedes the blob.
        size = listpack.string_size(node, at)
        buffer = bytearray(prefix + size)
        memory.put(buffer, 0, key)
        memory.copy(buffer, prefix, node, listpack.string_at(node, at), size)
        blob.open(buffer, prefix, size)
        while True:
            row.over(buffer)
            row.add_span(0, 0)
            row.add_span(0, prefix)
            if not blob.next(row):
                break
            stream.append(context.instant.ms, row, _FIELDS_AT)
            if context.effects is not None:
                context.recorded = True
                context.effects.added(context.keyspace.index, row, _FIELDS_AT, stream, None)
        at = listpack.next_at(node, at)


COMMANDS = (
    Command(
        "PENSTOCK APPENDBATCH",
        penstock_appendbatch,
        -7,
        Flags.WRITE | Flags.DENY_OOM,
        NO_KEYS,
        "Append staged rows to a stream, once per batch.",
        syntax="batch-id numkeys record stream staging [staging ...]"
        " [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]]",
        since="0.1.0",
        complexity="O(n) for the n rows",
        group="penstock",
        find_keys=batch_keys,
        access=("RW access update", "RW update", "RW access delete"),
    ),
)
