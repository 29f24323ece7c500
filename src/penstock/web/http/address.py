"""The words of an address: what cannot be read is taken as if it was not there, and told.

An address is typed, shortened and passed on by people, and written by programs of other versions. A page that
is wrong in one word is still the page that was meant.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from penstock.core.stream_id import SMALLEST, StreamID, parse
from penstock.errors import CommandError
from penstock.human.show import harmless
from penstock.web.http.names import parse_name
from penstock.web.model.stream_page import NEWEST, Reading

T = TypeVar("T")
NUMBER_MAX = 10**9


class QueryReader:
    """Reads words, and keeps a sentence for each that is none."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.has_name = True

    def name(self, text: str | None) -> bytes:
        """The name of a stream; an empty one is a name too."""
        if text is None:
            self.has_name = False
            self.problems.append("The address names no stream: it wants name=...")
        return parse_name(text or "")

    def number(self, name: str, text: str, default: int) -> int:
        """A whole number from 0 on."""
        if text.isascii() and text.isdecimal() and len(text) < len(str(NUMBER_MAX)):
            return int(text)
        return self._not(name, text, "a number", default)

    def one_of(self, name: str, text: str, known: Collection[str], default: str) -> str:
        """One of some words; a minus sign before it is left to the caller."""
        if text.removeprefix("-") in known:
            return text
        return self._not(name, text, f"one of {', '.join(known)}", default)

    def identifier(self, name: str, text: str) -> StreamID:
        """An id; the start of all if it is none."""
        try:
            return parse(text.encode("utf-8", "replace"))
        except CommandError:
            return self._not(name, text, "an id", SMALLEST)

    def reading(self, name: str, text: str) -> Reading:
        """What Reading.url_word made; the newest entries if it is nothing of that kind."""
        if not text:
            return NEWEST
        try:
            id_ = parse(text.removeprefix("-").encode("utf-8", "replace"))
        except CommandError:
            return self._not(name, text, "an id", NEWEST)
        return Reading(id_, rising=not text.startswith("-"))

    def _not(self, name: str, text: str, wanted: str, default: T) -> T:
        if text:
            self.problems.append(f"{name}={harmless(text)} in the address is not {wanted}.")
        return default
