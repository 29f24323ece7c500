"""A command to bytes: what a client sends, and what a primary sends to its replicas."""

from __future__ import annotations


def encode_command(*words: bytes) -> bytes:
    """A command as it is sent."""
    pieces = [b"*%d\r\n" % len(words)]
    for word in words:
        pieces += (b"$%d\r\n" % len(word), word, b"\r\n")
    return b"".join(pieces)
