"""Quotes words as Redis does. `parser.split_words` reads them back."""

from __future__ import annotations

_ESCAPES = {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    ord("\a"): "\\a",
    ord("\b"): "\\b",
}


def quoted(word: bytes) -> str:
    """A word in double quotes, with everything unprintable escaped."""
    return '"' + "".join(map(_shown, word)) + '"'


def _shown(char: int) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return chr(char) if 32 <= char < 127 else f"\\x{char:02x}"
