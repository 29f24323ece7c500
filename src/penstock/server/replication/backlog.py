"""The last bytes of the replication stream, for replicas that were away for a moment.

Pieces are kept as they were sent, so that appending copies nothing. The oldest piece is dropped when the
others still fill the backlog.
"""

from __future__ import annotations

from collections import deque

BACKLOG_BYTES_MIN = 16 * 1024


class Backlog:
    """Bytes from number `first` on. `size`: how many there are; `size_max`: how many are kept at least."""

    __slots__ = ("_pieces", "first", "size", "size_max")

    def __init__(self, offset: int, size_max: int) -> None:
        """`offset`: the number of the last byte before the backlog."""
        self._pieces: deque[bytes] = deque()
        self.first = offset + 1
        self.size = 0
        self.size_max = size_max

    def append(self, data: bytes) -> None:
        """Add bytes of the stream."""
        self._pieces.append(data)
        self.size += len(data)
        self.shrink()

    def shrink(self) -> None:
        """Drop the oldest pieces that are not needed."""
        while self._pieces and self.size - len(self._pieces[0]) >= self.size_max:
            dropped = len(self._pieces.popleft())
            self.size -= dropped
            self.first += dropped

    def covers(self, wanted: int) -> bool:
        """Tell whether the backlog has every byte from `wanted` on."""
        return self.first <= wanted <= self.first + self.size

    def since(self, wanted: int) -> bytes:
        """The bytes from number `wanted` on."""
        skipped = wanted - self.first
        found: list[bytes] = []
        for piece in self._pieces:
            if skipped < len(piece):
                found.append(piece[max(0, skipped) :])
            skipped -= len(piece)
        return b"".join(found)
