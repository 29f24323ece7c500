"""The arguments of the work commands: `numkeys key [key ...]`, then arguments, read from left to right."""

from __future__ import annotations

from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.engine.arguments import INT64_MAX, int_at, int_between
from penstock.errors import CommandError, syntax_error

_COUNT_AT = 2
_KEYS_AT = 3


def work_keys(frame: Frame) -> list[int]:
    """The positions of the keys. Raises: CommandError."""
    wrong = CommandError("numkeys must be a number from 1")
    count = int_between(frame, _COUNT_AT, 1, INT64_MAX, wrong)
    if count > frame.count - _KEYS_AT:
        raise syntax_error()
    return list(range(_KEYS_AT, _KEYS_AT + count))


def work_group(frame: Frame) -> int:
    """The position of the group: behind the keys. Raises: CommandError."""
    return work_keys(frame)[-1] + 1


class WorkArguments:
    """The keys of a command, and its other arguments one after the other."""

    __slots__ = ("_at", "_frame", "keys")

    def __init__(self, frame: Frame, keys_min: int, keys_max: int = 0) -> None:
        places = work_keys(frame)
        if not keys_min <= len(places) <= (keys_max or keys_min):
            raise CommandError("wrong number of keys")
        self.keys = [frame.piece(at) for at in places]
        self._frame = frame
        self._at = places[-1] + 1

    def more(self) -> bool:
        """Tell whether there is another argument."""
        return self._at < self._frame.count

    def word(self) -> bytes:
        """The next argument. Raises: CommandError if there is none."""
        if not self.more():
            raise syntax_error()
        self._at += 1
        return self._frame.piece(self._at - 1)

    def option(self, name: bytes) -> bool:
        """Tell whether the next argument is this word, in any case, and pass it."""
        given = self.more() and self._frame.is_word(self._at, name)
        self._at += given
        return given

    def number(self, low: int = 0, high: int = INT64_MAX) -> int:
        """The next argument, a number in a range. Raises: CommandError."""
        if not self.more():
            raise syntax_error()
        value = int_at(self._frame, self._at)
        if not low <= value <= high:
            raise CommandError(f"{value} is not between {low} and {high}")
        self._at += 1
        return value

    def id(self) -> bytes:
        """The next argument, the id of an entry. Raises: CommandError, InvalidID."""
        return stream_id.parse(self.word()).text

    def key(self) -> bytes | None:
        """The key that the next argument names by its position from 1; 0 for none. Raises: CommandError."""
        index = self.number(0, len(self.keys))
        return self.keys[index - 1] if index else None

    def fields(self, count: int) -> list[bytes]:
        """The next `count` arguments: names and values. Raises: CommandError."""
        if count < 2 or count % 2:
            raise CommandError("fields are pairs of a name and a value")
        return [self.word() for _ in range(count)]

    def rest(self) -> list[bytes]:
        """All arguments that are left."""
        return [self.word() for _ in range(self._frame.count - self._at)]

    def end(self) -> None:
        """Raises: CommandError if an argument is left."""
        if self.more():
            raise syntax_error()
