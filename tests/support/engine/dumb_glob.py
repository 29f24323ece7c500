"""Matches glob patterns like Redis 7.0, one character at a time, in the simplest way."""

from __future__ import annotations


def matches(pattern: bytes, name: bytes, ignore_case: bool = False) -> bool:
    """Whether a pattern matches a whole name. Cost: exponential in the number of stars."""
    while pattern and name:
        if pattern[:1] == b"*":
            rest = pattern.lstrip(b"*")
            if not rest:
                return True
            return any(matches(rest, name[at:], ignore_case) for at in range(len(name)))
        fits, pattern = _first(pattern, name[0], ignore_case)
        if not fits:
            return False
        name = name[1:]
        if not name:
            pattern = pattern.lstrip(b"*")
    return not pattern and not name


def _first(pattern: bytes, char: int, ignore_case: bool) -> tuple[bool, bytes]:
    """Whether the first token matches a character, and the rest of the pattern."""
    if pattern[:1] == b"?":
        return True, pattern[1:]
    if pattern[:1] == b"[":
        return _first_set(pattern[1:], char, ignore_case)
    if pattern[:1] == b"\\" and len(pattern) > 1:
        pattern = pattern[1:]
    return _same(pattern[0], char, ignore_case), pattern[1:]


def _first_set(pattern: bytes, char: int, ignore_case: bool) -> tuple[bool, bytes]:
    negated = pattern[:1] == b"^"
    pattern = pattern[negated:]
    found = False
    while pattern and pattern[:1] != b"]":
        if pattern[:1] == b"\\" and len(pattern) >= 2:
            found |= pattern[1] == char
            pattern = pattern[2:]
        elif len(pattern) >= 3 and pattern[1:2] == b"-":
            low, high = sorted((_signed(pattern[0]), _signed(pattern[2])))
            value = _signed(char)
            if ignore_case:
                low, high, value = _lower(low), _lower(high), _lower(value)
            found |= low <= value <= high
            pattern = pattern[3:]
        else:
            found |= _same(pattern[0], char, ignore_case)
            pattern = pattern[1:]
    return found != negated, pattern[1:]


def _same(left: int, right: int, ignore_case: bool) -> bool:
    return _lower(left) == _lower(right) if ignore_case else left == right


def _lower(value: int) -> int:
    return value + 32 if ord("A") <= value <= ord("Z") else value


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte
