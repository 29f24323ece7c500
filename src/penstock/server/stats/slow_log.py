"""The slow log: the last commands that took longer than a limit."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.core.frame import Frame
from penstock.engine.table import Command
from penstock.server.stats.redaction import public_words

if TYPE_CHECKING:
    from penstock.server.session.session import Session

WORDS_MAX = 32
WORD_BYTES_MAX = 128


@dataclass(frozen=True, slots=True)
class SlowCommand:
    """One command; its arguments are shortened as in Redis."""

    id: int
    at_s: int
    us: int
    words: list[bytes]
    address: str
    client_name: bytes


class SlowLog:
    """The entries, newest first; at most `limit`."""

    def __init__(self) -> None:
        self.limit = 128
        self.entries: deque[SlowCommand] = deque()
        self._next_id = 0

    def note(self, session: Session, command: Command, frame: Frame | None, us: int) -> None:
        """Log a slow command; without a frame, only its name is known."""
        words = command.name.lower().encode().split()
        if frame is not None:
            words = [_short(word) for word in public_words(frame, WORDS_MAX)]
        if frame is not None and frame.count > WORDS_MAX:
            words[-1] = b"... (%d more arguments)" % (frame.count - WORDS_MAX + 1)
        at_s = session.server.engine.context.instant.us // 1_000_000
        info = session.info
        self.entries.appendleft(
            SlowCommand(self._next_id, at_s, us, words, info.address, info.name)
        )
        self._next_id += 1
        while len(self.entries) > self.limit:
            self.entries.pop()


def _short(word: bytes) -> bytes:
    if len(word) <= WORD_BYTES_MAX:
        return word
    return word[:WORD_BYTES_MAX] + b"... (%d more bytes)" % (len(word) - WORD_BYTES_MAX)
