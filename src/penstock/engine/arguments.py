"""Reading a command's arguments out of its frame, with Redis's errors when they are wrong."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.errors import CommandError, not_an_integer

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1


def int_at(frame: Frame, index: int, error: CommandError | None = None) -> int:
    """A 64-bit integer, written the one way Redis takes: no plus, no blank, no leading zero.

    Raises: CommandError, the given one or "value is not an integer or out of range".
    """
    text = frame.piece(index)
    digits = text[1:] if text[:1] == b"-" else text
    if 0 < len(digits) <= 19 and digits.isdigit() and (digits[:1] != b"0" or text == b"0"):
        value = int(text)
        if INT64_MIN <= value <= INT64_MAX:
            return value
    raise not_an_integer() if error is None else error


def int_between(frame: Frame, index: int, low: int, high: int, error: CommandError) -> int:
    """An integer in a range. Raises: the given error."""
    value = int_at(frame, index, error)
    if not low <= value <= high:
        raise error
    return value


def timeout_at(frame: Frame, index: int) -> int:
    """A time to wait in milliseconds, 0 for ever."""
    value = int_at(frame, index, CommandError("timeout is not an integer or out of range"))
    if value < 0:
        raise CommandError("timeout is negative")
    return value
