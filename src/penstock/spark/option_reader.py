"""Reads the options that Spark passes to a source or sink, and reports wrong ones.

Spark passes names in any case and values as strings. Each error names the option, the value and what is
allowed. The values of `url` and `password` are never shown: they may hold a password.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from penstock.errors import PenstockError

T = TypeVar("T")

SHOWN_CHARACTERS_MAX = 100
SECRET = frozenset({"url", "password"})


class OptionError(PenstockError):
    """An option that cannot be used. The text has its name, its value and what is allowed."""

    def __init__(self, name: str, given: str, allowed: str) -> None:
        shown = "the value (not shown: it may hold a password)"
        if name not in SECRET:
            shown = repr(given[:SHOWN_CHARACTERS_MAX])
        super().__init__(f"option {name}: {shown} is not allowed; expected {allowed}")
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        return _with_text, (self.name, str(self))


def missing_option(name: str, allowed: str) -> OptionError:
    """The error for an option that must be set."""
    return _with_text(name, f"option {name} is missing; expected {allowed}")


def _with_text(name: str, text: str) -> OptionError:
    """An error with this text; also how one is unpickled on its way from a worker to the driver."""
    error = OptionError.__new__(OptionError)
    PenstockError.__init__(error, text)
    error.name = name
    return error


class OptionReader:
    """The options of one reader or writer, under the names of the documentation."""

    def __init__(self, given: Mapping[str, str], names: Iterable[str]) -> None:
        known = {name.lower(): name for name in names}
        self._values: dict[str, str] = {}
        for word, value in given.items():
            if word.lower() not in known:
                raise _unknown(word, list(known.values()))
            self._values[known[word.lower()]] = value

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str, default: str = "") -> str:
        """The value without surrounding blanks."""
        return self._values.get(name, default).strip()

    def required(self, name: str, allowed: str) -> str:
        """The value. Raises: OptionError if it is missing or empty."""
        value = self.text(name)
        if not value:
            raise missing_option(name, allowed)
        return value

    def integer(self, name: str, default: T, smallest: int, largest: int = 2**63 - 1) -> int | T:
        """A whole number in a range, or the default."""
        if name not in self:
            return default
        value = self.text(name)
        if not (value.isascii() and value.isdigit() and smallest <= int(value) <= largest):
            raise OptionError(name, value, f"a whole number from {smallest} to {largest}")
        return int(value)

    def boolean(self, name: str, default: bool) -> bool:
        """true or false."""
        return self.one_of(name, ("true", "false"), str(default).lower()) == "true"

    def one_of(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """One of these words, in any case."""
        value = self.text(name, default)
        if value.lower() not in allowed:
            raise OptionError(name, value, " or ".join(allowed))
        return value.lower()

    def names(self, name: str) -> tuple[str, ...]:
        """A list of names: separated by commas, or a JSON array if a name contains a comma."""
        value = self.text(name)
        if not value:
            return ()
        allowed = 'names separated by commas, or a JSON array of names ["a,b"]'
        if value.startswith("["):
            found = _json(name, value, allowed)
            if not (isinstance(found, list) and all(isinstance(item, str) for item in found)):
                raise OptionError(name, value, allowed)
        else:
            found = [part.strip() for part in value.split(",")]
        if not all(found):
            raise OptionError(name, value, allowed)
        return tuple(dict.fromkeys(found))

    def by_stream(self, name: str, parse: Callable[[str], T], allowed: str) -> dict[str, T]:
        """A JSON object with one value per stream."""
        value = self.text(name)
        found = _json(name, value, allowed)
        if not isinstance(found, dict):
            raise OptionError(name, value, allowed)
        try:
            return {stream: parse(item) for stream, item in found.items()}
        except (ValueError, TypeError, AttributeError, PenstockError):
            raise OptionError(name, value, allowed) from None


def _json(name: str, value: str, allowed: str) -> object:
    try:
        found: object = json.loads(value)
    except ValueError:
        raise OptionError(name, value, allowed) from None
    return found


def _unknown(word: str, known: list[str]) -> OptionError:
    near = get_close_matches(word.lower(), [name.lower() for name in known], 1)
    hint = next((f" (did you mean {name}?)" for name in known if [name.lower()] == near), "")
    text = f"option {word}: there is no such option{hint}; allowed are {', '.join(known)}"
    return _with_text(word, text)
