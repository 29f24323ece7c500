"""Reads the query parameters of a URL. A parameter that is wrong is ignored and reported.

People type, shorten and share URLs, and other versions of the dashboard create them. A wrong parameter should
not prevent the page from being shown.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from penstock.core.stream_id import SMALLEST, StreamID, parse
from penstock.errors import InvalidID
from penstock.human.show import harmless
from penstock.web.http.names import parse_name
from penstock.web.model.retention import RetentionRule, parse_rule
from penstock.web.model.stream_page import NEWEST, Reading
from penstock.web.refusal import Refused

T = TypeVar("T")
NUMBER_MAX = 10**9


class QueryReader:
    """Reads parameters, and collects a message for each wrong one."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.has_name = True

    def name(self, text: str | None) -> bytes:
        """The name of a stream, which may be empty."""
        if text is None:
            self.has_name = False
            self.problems.append("The URL names no stream: add name=...")
        return parse_name(text or "")

    def number(self, name: str, text: str, default: int) -> int:
        """A whole number, 0 or larger."""
        if text.isascii() and text.isdecimal() and len(text) < len(str(NUMBER_MAX)):
            return int(text)
        return self._not(name, text, "a number", default)

    def one_of(self, name: str, text: str, known: Collection[str], default: str) -> str:
        """One of the known words, with or without a minus sign, which the caller interprets."""
        if text.removeprefix("-") in known:
            return text
        return self._not(name, text, f"one of {', '.join(known)}", default)

    def identifier(self, name: str, text: str) -> StreamID:
        """An id, or the smallest one if the text is wrong."""
        try:
            return parse(text.encode("utf-8", "replace"))
        except InvalidID:
            return self._not(name, text, "an id", SMALLEST)

    def reading(self, name: str, text: str) -> Reading:
        """The reverse of Reading.url_word, or the newest entries if the text is wrong."""
        if not text:
            return NEWEST
        try:
            id_ = parse(text.removeprefix("-").encode("utf-8", "replace"))
        except InvalidID:
            return self._not(name, text, "an id", NEWEST)
        return Reading(id_, rising=not text.startswith("-"))

    def rule(self, name: str, text: str) -> RetentionRule:
        """The options of a retention rule, or none if the text is wrong."""
        try:
            return parse_rule(text)
        except Refused:
            return self._not(name, text, "a retention rule, such as age 7d", RetentionRule({}))

    def _not(self, name: str, text: str, wanted: str, default: T) -> T:
        if text:
            self.problems.append(f"{name}={harmless(text)} in the URL is not {wanted}.")
        return default
