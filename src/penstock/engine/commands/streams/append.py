"""Adds entries to a stream, trims it, counts its entries: XADD, XTRIM, XLEN."""

from __future__ import annotations

import hashlib
from typing import Any

from penstock.core import spans, stream_id
from penstock.core.frame import Frame
from penstock.core.garbage import Garbage
from penstock.core.groups.references import References
from penstock.core.idempotency import Idempotency
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID
from penstock.engine import events
from penstock.engine.arguments import int_at
from penstock.engine.commands.streams.reference_options import (
    DELETE,
    IF_ACKED,
    NO_OPTION,
    option_at,
)
from penstock.engine.context import Context
from penstock.engine.table import ONE_KEY, Command, Flags, QuickForm
from penstock.errors import (
    CommandError,
    id_not_above_zero,
    syntax_error,
    wrong_arity,
)
from penstock.reply import ReplyWriter

TRIM_NODES_DEFAULT = 100  # the most full nodes that an approximate trim without LIMIT removes
TRIM_ENTRIES_DEFAULT = 10_000  # ... or the most entries, if nodes have no limit
TRIM_ENTRIES_MAX = 1_000_000

_STAR = 42
_ZERO, _NINE = 48, 57
_TILDE = 126
_EQUALS = 61
_BY_NOTHING = 0
_BY_LENGTH = 1
_BY_MIN_ID = 2
_TRIM_NODES_DEFAULT = TRIM_NODES_DEFAULT
_TRIM_ENTRIES_DEFAULT = TRIM_ENTRIES_DEFAULT
_TRIM_ENTRIES_MAX = TRIM_ENTRIES_MAX
_NO_OPTION = NO_OPTION
_DELETE = DELETE
_IF_ACKED = IF_ACKED
_ID_HASH_BYTES = 16
_LENGTH_BYTES = 8


def _no_arguments() -> AddArguments:
    """Options before they are read; bypasses `type.__call__`."""
    made = AddArguments.__new__(AddArguments)
    made._reset()
    return made


class AddArguments:
    """The options of XADD and XTRIM, read and checked."""

    __slots__ = (
        "approximate",
        "fields_at",
        "id",
        "length_max",
        "limit",
        "limit_given",
        "message",
        "min_id",
        "no_make",
        "producer",
        "references",
        "seq_given",
        "trim_by",
    )

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.trim_by = _BY_NOTHING
        self.length_max = 0
        self.min_id: StreamID | None = None
        self.approximate = False
        self.limit = 0
        self.limit_given = False
        self.no_make = False
        self.references = _NO_OPTION
        self.producer = b""  # empty: none
        self.message = b""  # the producer's name for the message; empty: made from the fields
        self.id: StreamID | None = None  # None: the next one
        self.seq_given = True
        self.fields_at = 0

    def read(self, context: Context, frame: Frame, adding: bool) -> None:
        """Read options from the third word on; for XADD, up to its id. Raises: CommandError."""
        at = 2
        while at < frame.count:
            # Producers that trim use these words with every entry, so comparing one takes no call.
            if adding and spans.is_char(frame.buffer, frame.spans, at, _STAR):
                self.fields_at = at + 1
                break
            more = frame.count - 1 - at
            if more and spans.is_word(frame.buffer, frame.spans, at, b"MAXLEN"):
                at = self._read_trim(frame, at, _BY_LENGTH)
            elif more and spans.is_word(frame.buffer, frame.spans, at, b"MINID"):
                at = self._read_trim(frame, at, _BY_MIN_ID)
            elif more and frame.is_word(at, b"LIMIT"):
                at += 1
                self.limit = int_at(frame, at)
                if self.limit < 0:
                    raise CommandError("The LIMIT argument must be >= 0.")
                self.limit_given = True
            elif (
                self.references == _NO_OPTION
                and (context.compat.reference_options or context.replaying)
                and option_at(frame, at) != _NO_OPTION
            ):
                self.references = option_at(frame, at)
            elif adding and frame.is_word(at, b"NOMKSTREAM"):
                self.no_make = True
            elif adding and self._is_producer(context, frame, at, more):
                at = self._read_producer(frame, at)
            elif adding:
                self._read_id(frame, at)
                self.fields_at = at + 1
                break
            else:
                raise syntax_error()
            at += 1

    def _read_trim(self, frame: Frame, at: int, trim_by: int) -> int:
        """Read `MAXLEN|MINID [~|=] threshold`; return the index of the threshold."""
        if self.trim_by != _BY_NOTHING:
            raise syntax_error("MAXLEN and MINID options at the same time are not compatible")
        more = frame.count - 1 - at
        if more >= 2:
            self.approximate = spans.is_char(frame.buffer, frame.spans, at + 1, _TILDE)
            if self.approximate or spans.is_char(frame.buffer, frame.spans, at + 1, _EQUALS):
                at += 1
        at += 1
        if trim_by == _BY_LENGTH:
            self.length_max = int_at(frame, at)
            if self.length_max < 0:
                raise CommandError("The MAXLEN argument must be >= 0.")
        else:
            self.min_id = stream_id.parse(frame.piece(at))
        self.trim_by = trim_by
        return at

    def _is_producer(self, context: Context, frame: Frame, at: int, more: int) -> bool:
        if not (context.compat.idempotent_adds or context.replaying):
            return False
        return (more >= 2 and frame.is_word(at, b"IDMP")) or (
            more >= 1 and frame.is_word(at, b"IDMPAUTO")
        )

    def _read_producer(self, frame: Frame, at: int) -> int:
        """Read `IDMP producer message` or `IDMPAUTO producer`; return the index of its last word."""
        if self.producer:
            raise syntax_error("IDMP/IDMPAUTO specified multiple times")
        word = "IDMP" if frame.is_word(at, b"IDMP") else "IDMPAUTO"
        self.producer = frame.piece(at + 1)
        if not self.producer:
            raise syntax_error(f"{word} requires a non-empty producer ID")
        if word == "IDMPAUTO":
            return at + 1
        self.message = frame.piece(at + 2)
        if not self.message:
            raise syntax_error("IDMP requires a non-empty idempotent ID")
        return at + 2

    def _read_id(self, frame: Frame, at: int) -> None:
        """Read `ms`, `ms-seq` or `ms-*`."""
        text = frame.piece(at)
        if (
            len(text) <= stream_id.TEXT_BYTES_MAX
            and text.endswith(b"-*")
            and text.find(b"-") == len(text) - 2
        ):
            self.id = stream_id.parse(text[:-2])
            self.seq_given = False
        else:
            self.id = stream_id.parse(text)

    def settle(self, adding: bool, node_entries_max: int, replaying: bool) -> None:
        """Check combinations of options, and choose the limit of an approximate trim."""
        if self.producer and self.id is not None and not replaying:
            raise syntax_error("IDMP/IDMPAUTO can be used only with auto-generated IDs")
        if self.limit and self.trim_by == _BY_NOTHING:
            raise syntax_error("LIMIT cannot be used without specifying a trimming strategy")
        if not adding and self.trim_by == _BY_NOTHING:
            raise syntax_error("XTRIM must be called with a trimming strategy")
        if replaying:
            self.limit = 0  # an effect is exact; Redis logs the LIMIT too, after `=`
        elif self.limit_given:
            if not self.approximate:
                raise syntax_error("LIMIT cannot be used without the special ~ option")
        elif self.approximate:
            # 64-bit arithmetic: a huge setting must not wrap.
            limit = _TRIM_NODES_DEFAULT * min(node_entries_max, _TRIM_ENTRIES_MAX)
            self.limit = min(limit if limit > 0 else _TRIM_ENTRIES_DEFAULT, _TRIM_ENTRIES_MAX)

    def trim(self, stream: Stream, replaying: bool, garbage: Garbage) -> int:
        """Trim a stream; return how many entries were removed. `garbage` frees their memory."""
        if self.trim_by == _BY_NOTHING:
            return 0
        if self.references == _IF_ACKED:
            return References(stream).trim_unreferenced(
                self.length_max, self.min_id, self.limit, replaying
            )
        approximate = self.approximate and self.references != _DELETE  # as in Redis
        if self.min_id is None:
            removed = stream.trim_length(self.length_max, approximate, self.limit, garbage)
        else:
            removed = stream.trim_min_id(self.min_id, approximate, self.limit, garbage)
        if removed and self.references == _DELETE:
            References(stream).forget_before(stream.first_id() if stream.length else None)
        return removed

    def trim_words(self, stream: Stream) -> list[bytes]:
        """Options that repeat the trim that was just made."""
        if self.references == _IF_ACKED:
            # What it left may be older than MINID. It removed the oldest entries that were free, and a
            # replay does the same until this length is reached.
            return [b"MAXLEN", b"=", b"%d" % stream.length, b"ACKED"]
        words = [b"MAXLEN", b"=", b"%d" % stream.length]
        if self.min_id is not None:
            first = stream.first_id() if stream.length else self.min_id
            words = [b"MINID", b"=", first.text]
        return [*words, b"DELREF"] if self.references == _DELETE else words

    def name_message(self, frame: Frame) -> None:
        """If the producer left it to us, name the message after its fields, in any order."""
        if self.message:
            return
        total = 0
        for at in range(self.fields_at, frame.count, 2):
            name = frame.piece(at)
            size = len(name).to_bytes(_LENGTH_BYTES, "big")
            pair = hashlib.blake2b(size + name + frame.piece(at + 1), digest_size=_ID_HASH_BYTES)
            total += int.from_bytes(pair.digest(), "big")
        self.message = (total % 2 ** (8 * _ID_HASH_BYTES)).to_bytes(_ID_HASH_BYTES, "big")


def xadd(context: Context, frame: Frame) -> Any:
    """Add an entry."""
    added = _add(context, frame)
    if type(added) is Stream:
        return added.last_id_text()
    return added


class QuickAdd(QuickForm):
    """XADD with any arguments: only the reply is written in another way."""

    __slots__ = ()

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        added = _add(context, frame)
        if type(added) is Stream:
            stream: Stream = added
            reply.put_id(stream.last_ms_text(), stream.last_seq)
        else:
            reply.put(added)
        return True


def _add(context: Context, frame: Frame) -> Any:
    """Add an entry. Everything is checked before the key is created or changed.

    Returns the stream, whose last entry is the new one. If none was added: the id of the entry that this
    message was added as before, or None.
    """
    trimmed = 0
    fields_at = 3
    options: list[bytes] | None = None
    # XADD key * name value ...: the usual form. With a whole id: the form of effects in a log.
    if frame.count & 1 and spans.is_char(frame.buffer, frame.spans, 2, _STAR):
        found = context.keyspace.stream_at(frame, 1)
        stream = context.keyspace.new_stream() if found is None else found
        stream.append(context.instant.ms, frame, 3)
    elif frame.count & 1 and _is_whole_id(frame, 2):
        whole = _whole_id(frame, 2)
        found = context.keyspace.stream_at(frame, 1)
        stream = context.keyspace.new_stream() if found is None else found
        stream.append_at(whole.ms, whole.seq, frame, 3)
    else:
        arguments = _no_arguments()
        arguments.read(context, frame, True)
        arguments.settle(True, context.keyspace.limits.entries_max, context.replaying)
        pieces = frame.count - arguments.fields_at
        if arguments.fields_at == 0 or pieces < 2 or pieces & 1:
            raise wrong_arity("xadd")
        wanted = arguments.id
        if wanted is not None and arguments.seq_given and wanted == stream_id.SMALLEST:
            raise id_not_above_zero()
        found = context.keyspace.stream_at(frame, 1)
        if found is None and arguments.no_make:
            return None
        stream = context.keyspace.new_stream() if found is None else found
        fields_at = arguments.fields_at
        if arguments.producer:
            arguments.name_message(frame)
            known = _known_or_none(context, stream, arguments, frame)
            if known is not None:
                return known
        _append(context, stream, arguments, frame)
        if arguments.producer:
            _record_message(context, stream, arguments)
            options = [b"IDMP", arguments.producer, arguments.message]
        trimmed = arguments.trim(stream, context.replaying, context.garbage)
        if trimmed and context.effects is not None:
            options = [*(options or []), *arguments.trim_words(stream)]
    if found is None:
        _put_new(context, frame.piece(1), stream)
    if (
        context.watching
        or context.event_kinds
        or (context.waiting and context.keyspace.is_awaited_at(frame, 1))
    ):
        _report(context, frame.piece(1), trimmed)
    else:
        context.dirty += 1
    if context.effects is not None:
        context.recorded = True
        context.effects.added(context.keyspace.index, frame, fields_at, stream, options)
    return stream


def _is_whole_id(frame: Frame, at: int) -> bool:
    """Tell whether a word is an id with both halves given, not an option: it begins and ends with a digit."""
    start = frame.start(at)
    end = start + frame.size(at) - 1
    return (
        end >= start
        and _ZERO <= frame.buffer[start] <= _NINE
        and _ZERO <= frame.buffer[end] <= _NINE
    )


def _whole_id(frame: Frame, at: int) -> StreamID:
    """The id that a word is. Raises: CommandError, InvalidID."""
    found = stream_id.parse_span(frame.buffer, frame.start(at), frame.size(at), 0)
    if found.ms == 0 and found.seq == 0:
        raise id_not_above_zero()
    return found


def _put_new(context: Context, key: bytes, stream: Stream) -> None:
    """Put a new stream under its key, after its first entry: a failed command leaves no empty stream."""
    context.keyspace.put(key, stream)
    if context.event_kinds:
        context.created(context.keyspace, key)


def _known_or_none(
    context: Context, stream: Stream, arguments: AddArguments, frame: Frame
) -> bytes | None:
    """The id of the entry that this message was added as before; counts the duplicate.

    A duplicate is logged too, without an id, because it was counted. So in a replay a message without an id
    is always a duplicate, even if its name has expired by then; one with an id never is.
    """
    if context.replaying:
        if arguments.id is not None:
            return None
        _producers_of(stream).count_duplicate()
        context.dirty += 1
        return stream.last_id_text()
    if stream.idempotency is None:
        return None
    known = stream.idempotency.find_or_none(
        arguments.producer, arguments.message, stream.idempotency_settings, context.now_ms()
    )
    if known is None:
        return None
    stream.idempotency.count_duplicate()
    context.dirty += 1
    if context.effects is not None:
        # With its name: Redis would name it after its fields in another way.
        words = [b"XADD", frame.piece(1), b"IDMP", arguments.producer, arguments.message, b"*"]
        context.record(words + [frame.piece(at) for at in range(arguments.fields_at, frame.count)])
    return known.text


def _record_message(context: Context, stream: Stream, arguments: AddArguments) -> None:
    """Remember the entry that was just added under the producer's name for it."""
    now_ms = 0 if context.replaying else context.now_ms()
    _producers_of(stream).record(
        arguments.producer,
        arguments.message,
        stream.last_id,
        stream.idempotency_settings,
        now_ms,
    )


def _producers_of(stream: Stream) -> Idempotency:
    if stream.idempotency is None:
        stream.idempotency = Idempotency()
    return stream.idempotency


def _report(context: Context, key: bytes, trimmed: int) -> None:
    """Report an XADD to watchers, listeners and waiters."""
    context.changed(key, events.STREAM, b"xadd")
    if trimmed:
        context.event(events.STREAM, b"xtrim", key)
    context.touch(key)


def _append(context: Context, stream: Stream, arguments: AddArguments, frame: Frame) -> None:
    wanted = arguments.id
    if wanted is None:
        stream.append(context.instant.ms, frame, arguments.fields_at)
    elif arguments.seq_given:
        stream.append_at(wanted.ms, wanted.seq, frame, arguments.fields_at)
    else:
        stream.append_in_ms(wanted.ms, frame, arguments.fields_at)


def xtrim(context: Context, frame: Frame) -> int:
    """Remove the oldest entries."""
    arguments = _no_arguments()
    arguments.read(context, frame, False)
    arguments.settle(False, context.keyspace.limits.entries_max, context.replaying)
    stream = context.keyspace.stream_at(frame, 1)
    if stream is None:
        return 0
    trimmed = arguments.trim(stream, context.replaying, context.garbage)
    if trimmed:
        context.changed(frame.piece(1), events.STREAM, b"xtrim")
        context.dirty += trimmed - 1  # every entry is a change
        if context.effects is not None:
            context.record([b"XTRIM", frame.piece(1), *arguments.trim_words(stream)])
    return trimmed


def xlen(context: Context, frame: Frame) -> int:
    """Count the entries of a stream."""
    stream = context.keyspace.stream_at(frame, 1)
    return 0 if stream is None else stream.length


class QuickLength(QuickForm):
    """XLEN."""

    __slots__ = ()

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        reply.put_int(xlen(context, frame))
        return True


COMMANDS = (
    Command(
        "XADD",
        xadd,
        -5,
        Flags.WRITE | Flags.DENY_OOM | Flags.FAST,
        ONE_KEY,
        "Add an entry to a stream.",
        syntax="key [NOMKSTREAM] [KEEPREF | DELREF | ACKED] [IDMPAUTO producer | IDMP producer message]"
        " [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value [field value ...]",
        since="5.0.0",
        complexity="O(1); with a trim O(n) for the n entries removed",
        group="stream",
        quick=QuickAdd(),
    ),
    Command(
        "XTRIM",
        xtrim,
        -4,
        Flags.WRITE,
        ONE_KEY,
        "Remove the oldest entries of a stream.",
        syntax="key <MAXLEN | MINID> [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]",
        since="5.0.0",
        complexity="O(n) for the n nodes removed; an exact trim walks one more node",
        group="stream",
        access=("RW delete",),
    ),
    Command(
        "XLEN",
        xlen,
        2,
        Flags.READ | Flags.FAST,
        ONE_KEY,
        "Count the entries of a stream.",
        syntax="key",
        since="5.0.0",
        group="stream",
        quick=QuickLength(),
        access=("RO",),
    ),
)
