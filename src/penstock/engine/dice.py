"""Dice for an engine whose owner has brought none: always the same throws, so that a test can be repeated."""

from __future__ import annotations

_MASK = 2**64 - 1


class Dice:
    """Call it with n for a number below n (an xorshift; nothing secret may depend on it)."""

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
