"""Finds the line of each key in a TOML text, which tomllib does not report.

The text has been parsed before, so a simple scan is enough. A statement starts at a header or a key and ends
with the first line that makes it parse. That handles strings and arrays over several lines.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

KeyPath = tuple[str | int, ...]

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_KEYS})\s*\]\]?\s*(?:#.*)?$")
_STATEMENT = re.compile(rf"\s*({_KEYS})\s*=")


class KeyLines:
    """The line of each key. Keys are paths: ("source", "url"), ("aggregate", 0, "window")."""

    def __init__(self, text: str = "") -> None:
        self._lines: dict[KeyPath, int] = {}
        self._counts: dict[KeyPath, int] = {}
        self._scan(text.split("\n"))

    def of(self, path: KeyPath) -> int:
        """The line of a key, or of the nearest enclosing key in the text."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def _scan(self, lines: list[str]) -> None:
        table: KeyPath = ()
        at = 0
        while at < len(lines):
            header = _HEADER.match(lines[at])
            if header:
                table = self._table(_parts(header[2]), is_array=header[1] == "[[")
                self._lines.setdefault(table, at + 1)
            elif _STATEMENT.match(lines[at]):
                end = at + 1
                while (found := _parsed_or_none("\n".join(lines[at:end]))) is None:
                    end += 1
                self._note(table, found, at + 1)
                at = end - 1
            at += 1

    def _table(self, parts: KeyPath, is_array: bool) -> KeyPath:
        """The path of a header. An array of tables adds the index of its last element."""
        path: KeyPath = ()
        for part in parts:
            path = (*path, part)
            if is_array and len([one for one in path if isinstance(one, str)]) == len(parts):
                self._counts[path] = self._counts.get(path, -1) + 1
            if path in self._counts:
                path = (*path, self._counts[path])
        return path

    def _note(self, path: KeyPath, found: dict[str, Any], line: int) -> None:
        for name, value in found.items():
            self._lines.setdefault((*path, name), line)
            if isinstance(value, dict):
                self._note((*path, name), value, line)


def _parsed_or_none(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _parts(keys: str) -> KeyPath:
    """The parts of a dotted key. tomllib decodes quotes and escapes."""
    found: Any = tomllib.loads(f"{keys} = 0")
    path: KeyPath = ()
    while isinstance(found, dict):
        ((name, found),) = found.items()
        path = (*path, name)
    return path
