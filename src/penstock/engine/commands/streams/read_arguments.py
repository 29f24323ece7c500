"""The arguments of XREAD and XREADGROUP."""

from __future__ import annotations

from penstock.core import spans
from penstock.core.frame import Frame
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID
from penstock.engine.arguments import INT64_MAX, int_at, int_between, timeout_at
from penstock.engine.context import Context
from penstock.errors import CommandError, only_in_group_read, syntax_error, unbalanced_streams

NEVER = -1  # no BLOCK, no CLAIM

_NEVER = NEVER
_NO_LIMIT = 0
_BLOCK = spans.word(b"BLOCK")
_COUNT = spans.word(b"COUNT")
_STREAMS = spans.word(b"STREAMS")
_GROUP = spans.word(b"GROUP")
_NOACK = spans.word(b"NOACK")


def read_arguments(context: Context, frame: Frame, grouped: bool) -> ReadArguments:
    """The options of a read; bypasses `type.__call__`."""
    made = ReadArguments.__new__(ReadArguments)
    made._reset(grouped)
    made.read(context, frame)
    return made


class ReadArguments:
    """The arguments of XREAD or XREADGROUP before the keys, and the positions of keys and ids."""

    __slots__ = (
        "ack",
        "budget",
        "claim_idle_ms",
        "count",
        "frame",
        "group_at",
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
        self.budget: ReadBudget | None = None
        self.claim_idle_ms = _NEVER
        self.ack = True
        self.group_at = 0  # the position of the group's name; the consumer's follows
        self.streams_at = 0
        self.streams = 0

    def read(self, context: Context | None, frame: Frame) -> None:
        """Read all options up to STREAMS. Raises: CommandError.

        Without a context only the positions matter: numbers are skipped without a check.
        """
        self.frame = frame
        at = 1
        while at < frame.count:
            more = frame.count - 1 - at
            word = spans.word_at(frame.buffer, frame.spans, at)
            if more and word == _BLOCK:
                at += 1
                if context is not None:
                    self._read_timeout(context, frame, at)
            elif more and word == _COUNT:
                at += 1
                if context is not None:
                    self.count = max(0, int_at(frame, at))
            elif more and word == _STREAMS:
                self._find_streams(context, frame, at + 1)
                break
            elif more >= 2 and word == _GROUP:
                if not self.grouped:
                    raise only_in_group_read("GROUP")
                self.group_at = at + 1
                at += 2
            elif word == _NOACK:
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
        if self.grouped and self.group_at == 0:
            raise CommandError("Missing GROUP option for XREADGROUP")
        if self.max_count and self.count > self.max_count:
            raise CommandError("MAXCOUNT must be greater than or equal to COUNT")
        if self.max_count or self.max_size:
            self.budget = ReadBudget(self.max_count, self.max_size)

    def group_name(self) -> bytes:
        """The group of a group read."""
        return self.frame.piece(self.group_at)

    def consumer_name(self) -> bytes:
        """The consumer of a group read."""
        return self.frame.piece(self.group_at + 1)

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

    __slots__ = ("bytes_left", "entries_left")

    def __init__(self, max_count: int, max_size: int) -> None:
        self.entries_left = max_count or INT64_MAX
        self.bytes_left = max_size or INT64_MAX

    def is_spent(self) -> bool:
        """Tell whether nothing more may be returned."""
        return self.entries_left <= 0 or self.bytes_left <= 0

    def cap(self, count: int) -> int:
        """How many entries may come from the next stream, if the command allows `count` (0: any number)."""
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


def xreadgroup_group(frame: Frame) -> int:
    """The position of the group of an XREADGROUP. Raises: CommandError."""
    return _places(frame, True).group_at


def _places(frame: Frame, grouped: bool) -> ReadArguments:
    """Uses the same reader as the command itself: a consumer named STREAMS misleads neither."""
    arguments = ReadArguments(grouped)
    arguments.read(None, frame)
    return arguments


def _key_places(frame: Frame, grouped: bool) -> list[int]:
    arguments = _places(frame, grouped)
    return list(range(arguments.streams_at, arguments.streams_at + arguments.streams))
