"""Matching names against glob patterns, as KEYS, SCAN, PSUBSCRIBE and CONFIG GET do.

    *  any run of bytes     ?  one byte     [abc]  [a-z]  [^abc]  one of a set     \\x  x itself

A pattern is parsed once. Its stars split it into stretches. Every token of a stretch takes exactly one byte:

    ord?rs:*[a-c]x*:eu      head  o r d ? r s :      at the start of the name
                            inner [abc] x            between head and tail, each after the previous one
                            tail  : e u              at the end

The first position where an inner stretch fits is always right: a later one only leaves less for the
stretches after it. So matching never backtracks. The remaining task is to find a stretch in linear time:

    plain bytes             bytes.find, which is linear (CPython 3.10 and newer: two-way)
    up to 16 tokens         compare at each position: 16 steps per byte
    up to 64 positions      the same
    other                   all positions at once: bit i of a number is set if the last i + 1 bytes fit the
                            first i + 1 tokens (the shift-and algorithm)

Semantics are those of Redis 7.0 on x86-64, including its odd cases: an unclosed set ends with the pattern; a
reversed range is swapped; ranges compare signed bytes; an escaped member of a set keeps its case; only an
empty pattern matches an empty name (KEYS and SCAN handle a lone star themselves); a pattern with more than
1000 stars that are followed by something matches nothing (Redis's fix for CVE-2024-31228).

Cost: parsing is O(pattern). Matching is O(name * (1 + w / 64)), where w is the number of tokens of the
longest inner stretch with a set or a `?`, or 0. In a stretch of more than 65,536 tokens the rest is compared
position by position, O(name * w). A table takes 34 bytes per token, for up to 65,536 tokens, while a name is
matched. No recursion.
"""

from __future__ import annotations

STARS_MAX = 1000
SEARCHED_TOKENS_MAX = 65536

_SHORT_TOKENS = 16
_FEW_PLACES = 64

_STAR, _ANY, _OPEN, _CLOSE, _ESCAPE, _NOT, _DASH = b"*?[]\\^-"
_PLAIN, _EVERY, _SET = range(3)

# Sets are numbers of 256 bits. Compiled, `1 << byte` would shift a C number.
_ONLY = [1 << byte for byte in range(256)]
_ALL_BYTES = (1 << 256) - 1
_HALF = (1 << 128) - 1
_UPPER = sum(_ONLY[ord("A") : ord("Z") + 1])
_LOWER = sum(_ONLY[ord("a") : ord("z") + 1])
_CASE_SHIFT = ord("a") - ord("A")


class Stretch:
    """Tokens between two stars: each is a byte of `tokens` with its kind, or the index of a set."""

    __slots__ = ("is_plain", "kinds", "sets", "size", "tokens")

    def __init__(self) -> None:
        self.tokens = bytearray()
        self.kinds = bytearray()
        self.sets: dict[int, int] = {}
        self.size = 0
        self.is_plain = True

    def add(self, kind: int, token: int) -> None:
        """Append a plain byte, or a token that matches any byte."""
        self.tokens.append(token)
        self.kinds.append(kind)
        self.is_plain = self.is_plain and kind == _PLAIN
        self.size += 1

    def add_set(self, members: int) -> None:
        """Append a set, given as a number: bit 97 is set if it contains b"a"."""
        self.sets[self.size] = members
        self.add(_SET, 0)

    def fits(self, name: bytes, place: int, first: int) -> bool:
        """Tell whether the tokens from `first` on fit at a position. The name must be long enough."""
        for index in range(first, self.size):
            kind = self.kinds[index]
            if kind == _PLAIN:
                if self.tokens[index] != name[place + index]:
                    return False
            elif kind == _SET and not self.sets[index] >> name[place + index] & 1:
                return False
        return True

    def find(self, name: bytes, start: int, until: int) -> int:
        """The first position in start <= position <= until - size where it fits, or -1."""
        if self.is_plain:
            return name.find(self.tokens, start, until)
        if self.size > _SHORT_TOKENS and until - self.size - start >= _FEW_PLACES:
            return self._find_in_parallel(name, start, until)
        last = until - self.size
        while start <= last:
            if self.fits(name, start, 0):
                return start
            start += 1
        return -1

    def _find_in_parallel(self, name: bytes, start: int, until: int) -> int:
        searched = min(self.size, SEARCHED_TOKENS_MAX)
        table = self._table(searched)
        state = 0
        found = _ONLY[0] << (searched - 1)
        last = until - self.size
        for place in range(start, last + searched):
            state = (state << 1 | 1) & table[name[place]]
            # All tokens that were searched for end here; the others must fit after them.
            if state & found and self.fits(name, place - searched + 1, searched):
                return place - searched + 1
        return -1

    def _table(self, searched: int) -> list[int]:
        """For each byte a number whose bit i is set if token i matches it."""
        width = (searched + 7) // 8
        every = bytearray(width)
        rows: dict[int, bytearray] = {}
        for index in range(searched):
            place, bit = index >> 3, 1 << (index & 7)
            kind = self.kinds[index]
            if kind == _EVERY:
                every[place] |= bit
            elif kind == _PLAIN:
                rows.setdefault(self.tokens[index], bytearray(width))[place] |= bit
            else:
                for byte in _bytes_of(self.sets[index]):
                    rows.setdefault(byte, bytearray(width))[place] |= bit
        always = int.from_bytes(every, "little")
        table = [always] * 256
        for byte, row in rows.items():
            table[byte] = always | int.from_bytes(row, "little")
        return table


class Glob:
    """A parsed pattern. Create one per command, then call `matches` for every name."""

    __slots__ = ("_head", "_inner", "_size_min", "_tail", "pattern")

    def __init__(self, pattern: bytes, ignore_case: bool = False) -> None:
        self.pattern = pattern
        stretches = _parse(pattern, ignore_case)
        self._size_min = sum(stretch.size for stretch in stretches)
        self._head = stretches[0]
        self._tail = stretches[-1] if len(stretches) > 1 else None
        self._inner = stretches[1:-1]

    def matches(self, name: bytes) -> bool:
        """Tell whether the pattern matches a whole name."""
        size = len(name)
        if not size:
            return not self.pattern
        head, tail = self._head, self._tail
        if size < self._size_min or (tail is None and size != head.size):
            return False
        if not head.fits(name, 0, 0):
            return False
        if tail is None:
            return True
        until = size - tail.size
        return tail.fits(name, until, 0) and self._inner_fit(name, head.size, until)

    def _inner_fit(self, name: bytes, place: int, until: int) -> bool:
        if len(self._inner) + (self._tail is not None and self._tail.size > 0) > STARS_MAX:
            return False
        for stretch in self._inner:
            place = stretch.find(name, place, until)
            if place < 0:
                return False
            place += stretch.size
        return True


def matches(pattern: bytes, name: bytes, ignore_case: bool = False) -> bool:
    """Tell whether a pattern matches a whole name. For many names, make a Glob once."""
    return Glob(pattern, ignore_case).matches(name)


def _parse(pattern: bytes, ignore_case: bool) -> list[Stretch]:
    """The stretches between the stars; only the first and the last may be empty.

    Stops at the number of stars beyond which a pattern matches nothing.
    """
    stretches = [Stretch()]
    at = 0
    while at < len(pattern) and len(stretches) <= STARS_MAX + 2:
        token = pattern[at]
        stretch = stretches[-1]
        if token == _STAR:
            if stretch.size or len(stretches) == 1:
                stretches.append(Stretch())
        elif token == _ANY:
            stretch.add(_EVERY, 0)
        elif token == _OPEN:
            at = _parse_set(pattern, at + 1, ignore_case, stretch)
            continue
        else:
            if token == _ESCAPE and at + 1 < len(pattern):
                at += 1
                token = pattern[at]
            if ignore_case and _both_cases(token) != _ONLY[token]:
                stretch.add_set(_both_cases(token))
            else:
                stretch.add(_PLAIN, token)
        at += 1
    return stretches


def _parse_set(pattern: bytes, at: int, ignore_case: bool, stretch: Stretch) -> int:
    """Add the set that starts after its bracket; return the position after it."""
    size = len(pattern)
    negated = at < size and pattern[at] == _NOT
    if negated:
        at += 1
    members = 0
    while at < size and pattern[at] != _CLOSE:
        if pattern[at] == _ESCAPE and at + 1 < size:
            at += 1
            members |= _ONLY[pattern[at]]
        elif at + 2 < size and pattern[at + 1] == _DASH:
            members |= _range(pattern[at], pattern[at + 2], ignore_case)
            at += 2
        else:
            members |= _both_cases(pattern[at]) if ignore_case else _ONLY[pattern[at]]
        at += 1
    stretch.add_set(_ALL_BYTES ^ members if negated else members)
    return min(at + 1, size)


def _both_cases(byte: int) -> int:
    """The set of a byte, with its other case if it is a letter."""
    one = _ONLY[byte]
    return one | (one & _UPPER) << _CASE_SHIFT | (one & _LOWER) >> _CASE_SHIFT


def _range(first: int, last: int, ignore_case: bool) -> int:
    """The set of all bytes in a range, compared as signed chars."""
    low, high = sorted((first ^ 0x80, last ^ 0x80))
    if ignore_case:  # Redis puts the ends in order first, so that [Z-a] is empty
        low, high = _lower(low ^ 0x80) ^ 0x80, _lower(high ^ 0x80) ^ 0x80
    if low > high:
        return 0
    signed = (1 << (high + 1)) - (1 << low)
    members = signed >> 128 | (signed & _HALF) << 128
    if ignore_case:
        members = members & ~_UPPER | (members & _LOWER) >> _CASE_SHIFT
    return members


def _lower(byte: int) -> int:
    return byte + _CASE_SHIFT if _ONLY[byte] & _UPPER else byte


def _bytes_of(members: int) -> list[int]:
    return [byte for byte in range(256) if members >> byte & 1]
