"""Matching names against glob patterns, as KEYS, SCAN, PSUBSCRIBE and CONFIG GET do.

    *  any run of bytes     ?  one byte     [abc]  [a-z]  [^abc]  one of a set     \\x  x itself

Linear in the name for each star at worst: a failed try goes back to the last star only, never to an earlier
one, so that a pattern made of stars cannot keep the server busy (CVE-2024-31228 was a recursion here).
"""

from __future__ import annotations

_STAR, _ANY, _OPEN, _CLOSE, _ESCAPE, _NOT, _DASH = b"*?[]\\^-"


def matches(pattern: bytes, name: bytes, ignore_case: bool = False) -> bool:
    """Tell whether a pattern covers all of a name."""
    if ignore_case:
        pattern, name = pattern.lower(), name.lower()
    at = 0  # in the pattern
    place = 0  # in the name
    star_at = -1
    star_place = 0
    while place < len(name):
        if at < len(pattern) and pattern[at] == _STAR:
            star_at, star_place = at, place
            at += 1
            continue
        step = _step(pattern, at, name[place]) if at < len(pattern) else 0
        if step:
            at += step
            place += 1
        elif star_at >= 0:
            star_place += 1
            at, place = star_at + 1, star_place
        else:
            return False
    while at < len(pattern) and pattern[at] == _STAR:
        at += 1
    return at == len(pattern)


def _step(pattern: bytes, at: int, char: int) -> int:
    """How much of the pattern this one byte uses up; 0 if it does not match."""
    token = pattern[at]
    if token == _ANY:
        return 1
    if token == _OPEN:
        return _step_set(pattern, at, char)
    if token == _ESCAPE and at + 1 < len(pattern):
        return 2 if pattern[at + 1] == char else 0
    return 1 if token == char else 0


def _step_set(pattern: bytes, at: int, char: int) -> int:
    """As _step, for a set in brackets. One that is never closed reaches to the end, as in Redis."""
    place = at + 1
    negated = place < len(pattern) and pattern[place] == _NOT
    if negated:
        place += 1
    found = False
    while place < len(pattern) and pattern[place] != _CLOSE:
        if pattern[place] == _ESCAPE and place + 1 < len(pattern):
            place += 1
            found = found or pattern[place] == char
        elif place + 2 < len(pattern) and pattern[place + 1] == _DASH:
            low, high = sorted((pattern[place], pattern[place + 2]))
            found = found or low <= char <= high
            place += 2
        else:
            found = found or pattern[place] == char
        place += 1
    if found == negated:
        return 0
    return min(place + 1, len(pattern)) - at
