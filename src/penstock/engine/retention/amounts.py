"""Sizes, counts and times as users write them in settings."""

from __future__ import annotations

import re

_UNITS = {
    "": 1,
    "b": 1,
    "k": 1000,
    "kb": 1 << 10,
    "m": 1000**2,
    "mb": 1 << 20,
    "g": 1000**3,
    "gb": 1 << 30,
}
_MS = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_ULONG_MAX = 2**64 - 1
DIGITS_MAX = 21  # exceed every limit already, and Python refuses to parse more than 4300


def amount_or_none(text: str) -> int | None:
    """A number with an optional unit, as in redis.conf: 1k is 1000, 1kb is 1024. At most 2^64 - 1."""
    found = re.fullmatch(r"(\d+)([a-z]*)", text.lower(), re.ASCII)
    if found is None or found[2] not in _UNITS:
        return None
    return min(_digits(found[1]) * _UNITS[found[2]], _ULONG_MAX)


def ms_or_none(text: str) -> int | None:
    """A time in milliseconds, written with a unit: 500ms, 30s, 5m, 2h, 7d, 4w. At most 2^64 - 1."""
    found = re.fullmatch(r"(\d+)([a-z]+)", text.lower(), re.ASCII)
    if found is None or found[2] not in _MS:
        return None
    return min(_digits(found[1]) * _MS[found[2]], _ULONG_MAX)


def ms_text(ms: int) -> str:
    """A time as ms_or_none reads it, in the largest unit without a fraction."""
    for unit, size in reversed(_MS.items()):
        if ms and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"


def _digits(text: str) -> int:
    return int(text.lstrip("0")[:DIGITS_MAX] or "0")
