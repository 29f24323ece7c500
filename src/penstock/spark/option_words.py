"""Options as Spark hands them over, and the refusals that name them.

Names come in any case, values are texts. Every reader of a value says, when it refuses, which option it
was, what was given and what is allowed. What may carry a password is never quoted.
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
    """An option that cannot be used: its name, what was given, what is allowed."""

    def __init__(self, name: str, given: str, allowed: str) -> None:
        shown = "what was given (not shown: it may hold a password)"
        if name not in SECRET:
            shown = repr(given[:SHOWN_CHARACTERS_MAX])
        super().__init__(f"option {name}: {shown} is not allowed; expected {allowed}")
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (self.name, str(self))


def _rebuilt(name: str, text: str) -> OptionError:
    """An error that crosses from a worker to the driver: its text is final."""
    error = OptionError.__new__(OptionError)
    PenstockError.__init__(error, text)
    error.name = name
    return error


class Words:
    """The options of one reader or writer, by the name that the table gives them."""

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
        """The value, without blanks around it."""
        return self._values.get(name, default).strip()

    def required(self, name: str, allowed: str) -> str:
        """The value. Raises: OptionError if there is none."""
        value = self.text(name)
        if not value:
            raise OptionError(name, value, allowed)
        return value

    def whole(self, name: str, default: T, smallest: int, largest: int = 2**63 - 1) -> int | T:
        """A whole number between two others, or the default."""
        if name not in self:
            return default
        value = self.text(name)
        if not (value.isascii() and value.isdigit() and smallest <= int(value) <= largest):
            raise OptionError(name, value, f"a whole number from {smallest} to {largest}")
        return int(value)

    def truth(self, name: str, default: bool) -> bool:
        """true or false."""
        return self.one_of(name, ("true", "false"), str(default).lower()) == "true"

    def one_of(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """One of a few words, in any case."""
        value = self.text(name, default)
        if value.lower() not in allowed:
            raise OptionError(name, value, " or ".join(allowed))
        return value.lower()

    def names(self, name: str) -> tuple[str, ...]:
        """Several names: separated by commas, or a JSON array where a name holds a comma."""
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
        """A JSON object of values by stream."""
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
    error = OptionError.__new__(OptionError)
    PenstockError.__init__(
        error, f"option {word}: there is no such option{hint}; allowed are {', '.join(known)}"
    )
    error.name = word
    return error
