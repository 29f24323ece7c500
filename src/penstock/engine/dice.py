"""Random numbers for an engine whose owner sets none: always the same, so that tests are repeatable."""

from __future__ import annotations

_MASK = 2**64 - 1


class Dice:
    """Returns a number below n when called with n (an xorshift: not for secrets)."""

    __slots__ = ("_state",)

    def __init__(self, seed: int = 0x9E3779B97F4A7C15) -> None:
        self._state = seed

    def __call__(self, stop: int) -> int:
        state = self._state
        state ^= state << 13 & _MASK
        state ^= state >> 7
        state ^= state << 17 & _MASK
        self._state = state
        return (state >> 11) % stop
