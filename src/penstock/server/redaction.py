"""What others may see of a command: all but users and passwords."""

from __future__ import annotations

from penstock.core.frame import Frame

REDACTED = b"(redacted)"


def public_words(frame: Frame, most: int | None = None) -> list[bytes]:
    """The words of a command, up to so many, for MONITOR and the slow log."""
    count = frame.count if most is None else min(most, frame.count)
    words = [frame.piece(index) for index in range(count)]
    if frame.is_word(0, b"AUTH"):
        words[1:] = [REDACTED] * (count - 1)
    elif frame.is_word(0, b"HELLO"):
        for index in range(2, count):
            if frame.is_word(index, b"AUTH"):
                words[index + 1 : index + 3] = [REDACTED] * len(words[index + 1 : index + 3])
    return words
