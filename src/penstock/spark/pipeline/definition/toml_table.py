"""Reads the values of one table of a pipeline file, and reports those of a wrong type."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from penstock.spark.pipeline.definition.toml_lines import KeyLines, KeyPath

DURATION_FORM = 'a duration like "30 seconds", "1 minute", "2 hours", "1 day"'

_NO_TABLE: dict[str, Any] = {}
_UNITS_MS = {
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_DURATION = re.compile(rf"(\d{{1,6}})\s*({'|'.join(_UNITS_MS)})s?")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A mistake in a file, with its line."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class Problems:
    """The problems of one file, in the order they are found."""

    def __init__(self, file: str, lines: KeyLines) -> None:
        self.lines = lines
        self.found: list[Problem] = []
        self._file = file

    def add(self, path: KeyPath, text: str) -> None:
        """Add a problem with the key at a path."""
        self.found.append(Problem(self._file, self.lines.of(path), text))


class Table:
    """The values of one table. A missing value, or one of a wrong type, is the default."""

    def __init__(
        self, problems: Problems, path: KeyPath, values: Any, allowed: Sequence[str] | None = None
    ) -> None:
        self.path = path
        self._problems = problems
        if not isinstance(values, dict):
            problems.add(path, f"{path[-1]} must be a table: [{path[-1]}]")
            values = _NO_TABLE
        self.values: dict[str, Any] = values
        if allowed is not None:
            self.only(*allowed)

    def only(self, *allowed: str) -> None:
        """Report all other keys."""
        for name in self.values:
            if name not in allowed:
                near = get_close_matches(name.lower(), [one.lower() for one in allowed], 1)
                meant = [one for one in allowed if [one.lower()] == near]
                hint = f" (did you mean {meant[0]}?)" if meant else ""
                where = f" in [{self.path[0]}]" if self.path else ""
                text = f"{name} is unknown{where}{hint}; allowed are {', '.join(allowed)}"
                self._problems.add((*self.path, name), text)

    def text(self, name: str, needed: bool = False) -> str:
        """A string, or empty."""
        value = self.values.get(name)
        if value is None and needed:
            head = f"[[{self.path[0]}]]" if len(self.path) > 1 else f"[{self.path[0]}]"
            self._problems.add(self.path, f"{head} needs {name}")
        elif value is not None:
            if isinstance(value, str) and value.strip():
                return value.strip()
            self._refuse(name, "a string that is not empty")
        return ""

    def texts(self, what: str) -> dict[str, str]:
        """The whole table. All values must be strings."""
        found = {}
        for name, value in self.values.items():
            if isinstance(value, str) and value.strip():
                found[name] = value.strip()
            else:
                self._refuse(name, what)
        return found

    def words(self) -> dict[str, str]:
        """The whole table, with numbers and booleans as strings."""
        found = {}
        for name, value in self.values.items():
            if isinstance(value, bool):
                found[name] = str(value).lower()
            elif isinstance(value, str | int):
                found[name] = str(value)
            else:
                self._refuse(name, "a string, a whole number, true or false")
        return found

    def whole(self, name: str, smallest: int) -> int | None:
        """A whole number."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and value >= smallest:
            return value
        self._refuse(name, f"a whole number, at least {smallest}")
        return None

    def names(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A string, or an array of strings."""
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, str):
            value = [value]
        if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
            return tuple(dict.fromkeys(value))
        self._refuse(name, 'a name, or an array of names ["a", "b"]')
        return default

    def pairs(self, name: str) -> dict[str, str]:
        """An array of names, or a table {ours = "theirs"}. A name alone stands for itself."""
        value = self.values.get(name)
        if isinstance(value, dict):
            if all(isinstance(one, str) and one for one in value.values()):
                return dict(value)
            self._refuse(name, 'an array of names, or a table {name = "other name"}')
            return {}
        return {one: one for one in self.names(name)}

    def flag(self, name: str) -> bool:
        """True or false. False if it is missing."""
        value = self.values.get(name, False)
        if isinstance(value, bool):
            return value
        self._refuse(name, "true or false")
        return False

    def duration(self, name: str, needed: bool = False) -> int | None:
        """A duration in milliseconds."""
        text = self.text(name, needed)
        if not text:
            return None
        found = _DURATION.fullmatch(text)
        if found is None or int(found[1]) == 0:
            self._refuse(name, DURATION_FORM)
            return None
        return int(found[1]) * _UNITS_MS[found[2]]

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of these words. The first is the default."""
        value = self.values.get(name, allowed[0])
        if value in allowed:
            return str(value)
        self._refuse(name, " or ".join(f'"{one}"' for one in allowed))
        return allowed[0]

    def text_or_object(self, name: str, default: str) -> str:
        """A string, or a table as JSON."""
        value = self.values.get(name, default)
        if isinstance(value, dict):
            return json.dumps(value, default=str)
        if isinstance(value, str):
            return value
        self._refuse(name, 'a string, or a table {stream = "id"}')
        return default

    def table(self, name: str, allowed: Sequence[str] | None = None) -> Table:
        """A table inside this one. Empty if it is missing."""
        return Table(self._problems, (*self.path, name), self.values.get(name, _NO_TABLE), allowed)

    def tables(self, name: str) -> list[Table]:
        """An array of tables."""
        value = self.values.get(name, [])
        if isinstance(value, list):
            return [Table(self._problems, (name, at), one) for at, one in enumerate(value)]
        self._problems.add((name,), f"{name} must be an array of tables: [[{name}]]")
        return []

    def _refuse(self, name: str, allowed: str) -> None:
        # Does not quote the value: it may be a password in the wrong place.
        self._problems.add((*self.path, name), f"{name} must be {allowed}")
