"""Hides users and passwords in commands and settings that are shown to others.

Used by SLOWLOG, MONITOR, the log, and errors about a configuration file or the command line. CLIENT LIST
shows only the names of commands.

    AUTH user password                 AUTH (redacted) (redacted)
    CONFIG SET requirepass secret      CONFIG SET requirepass (redacted)
    requirepass secret                 requirepass (redacted)               in a file

A malformed command is redacted as well: it may still contain a password.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from penstock.core.frame import Frame

REDACTED = b"(redacted)"

# Directives whose values are never shown, including directives of Redis. `user` contains a password.
SECRET_DIRECTIVES = frozenset(
    {
        "masterauth",
        "masteruser",
        "primaryauth",
        "primaryuser",
        "requirepass",
        "tls-client-key-file-pass",
        "tls-key-file-pass",
        "user",
    }
)
_SECRET_PARTS = ("pass", "pwd", "secret")
_NEAR = 0.75  # `requirpas` is near requirepass, `port` is near nothing
_SECRET_NAMES = frozenset(name.encode() for name in SECRET_DIRECTIVES)


def public_words(frame: Frame, most: int | None = None) -> list[bytes]:
    """The arguments of a command without secrets, at most `most`, for MONITOR and the slow log."""
    count = frame.count if most is None else min(most, frame.count)
    words = [frame.piece(index) for index in range(count)]
    if frame.is_word(0, b"AUTH"):
        _redact(words, 1, count)
    elif frame.is_word(0, b"HELLO"):
        _redact_behind(words, {b"AUTH": 2})
    elif frame.is_word(0, b"MIGRATE"):
        _redact_behind(words, {b"AUTH": 1, b"AUTH2": 2})
    elif frame.is_word(0, b"ACL") and count > 1 and frame.is_word(1, b"SETUSER"):
        _redact(words, 2, count)
    elif frame.is_word(0, b"CONFIG") and count > 1 and frame.is_word(1, b"SET"):
        _redact_settings(words, is_in_pairs=frame.count % 2 == 0)
    return words


def public_setting(name: str, words: Sequence[str]) -> str:
    """A directive of a file or the command line, without secrets."""
    if _may_be_secret(name.lower()):
        words = [REDACTED.decode()] if words else []
    return " ".join((name, *(word or '""' for word in words)))


def _may_be_secret(name: str) -> bool:
    """Tell whether a name is that of a secret directive, or a likely misspelling."""
    if name in SECRET_DIRECTIVES or any(part in name for part in _SECRET_PARTS):
        return True
    if name.endswith("-file"):  # a path: tls-key-file is no misspelling of tls-key-file-pass
        return False
    return bool(difflib.get_close_matches(name, SECRET_DIRECTIVES, n=1, cutoff=_NEAR))


def _redact_behind(words: list[bytes], secrets: dict[bytes, int]) -> None:
    """Redact the arguments after each option; the mapping has their number."""
    for index, word in enumerate(list(words)):
        _redact(words, index + 1, index + 1 + secrets.get(word.upper(), 0))


def _redact_settings(words: list[bytes], is_in_pairs: bool) -> None:
    """Redact the secret values of CONFIG SET."""
    for index, word in enumerate(list(words)):
        if index > 1 and word.lower() in _SECRET_NAMES:
            # If names and values do not pair up, any of the following arguments may be the password.
            _redact(words, index + 1, index + 2 if is_in_pairs else len(words))


def _redact(words: list[bytes], start: int, until: int) -> None:
    until = min(until, len(words))
    words[start:until] = [REDACTED] * max(0, until - start)
