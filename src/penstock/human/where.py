"""Conditions on the fields of an entry.

sku=A1                     a field sku has this value
sku!=A1                    no field sku has this value; also true without such a field
note~^re:                  the regular expression matches somewhere in a field note
body$.customer.id=7        a field body is JSON with this value at this path
body$.lines[0].sku~^A      the same with a regular expression

Numbers in JSON are compared as they are written, so no digit is lost.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from penstock.errors import PenstockError
from penstock.human.show import Fields

Condition = Callable[[Fields], bool]
Values = Callable[[Fields], Iterator[str]]

SEARCH_SECONDS_MAX = 0.1  # a pattern that backtracks without end would block the caller

_CONDITION = re.compile(r"(.*?)(!=|=|~)(.*)", re.S)
_PATH = re.compile(r"(.*?)\$((?:\.[^.\[\]]+|\[\d{1,9}\])+)", re.S)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_CONSTANTS = {True: "true", False: "false", None: "null"}


class SlowPattern(PenstockError, ValueError):
    """A regular expression takes too long for one value."""


def parse_condition(text: str) -> Condition:
    """A function that checks the fields of an entry. Raises: ValueError."""
    parts = _CONDITION.fullmatch(text)
    if parts is None:
        raise ValueError(
            f"{text!r} is not a condition: write field=value, field!=value or field~regex"
        )
    name, sign, wanted = parts.groups()
    values = _values_of(name)
    if sign == "=":
        return lambda fields: wanted in values(fields)
    if sign == "!=":
        return lambda fields: wanted not in values(fields)
    return _matching(values, wanted)


def parse_conditions(text: str) -> list[Condition]:
    """Conditions joined by &&, all of which must hold. Raises: ValueError."""
    return [parse_condition(part.strip()) for part in text.split("&&") if part.strip()]


def _values_of(name: str) -> Values:
    """Reads the texts to compare. Bytes that are not UTF-8 are decoded like command-line arguments."""
    path = _PATH.fullmatch(name)
    if path is None:
        wanted = os.fsencode(name)
        return lambda fields: (os.fsdecode(value) for field, value in fields if field == wanted)
    field_name = os.fsencode(path[1])
    steps = [key or int(index) for key, index in _STEP.findall(path[2])]

    def inside(fields: Fields) -> Iterator[str]:
        for field, value in fields:
            if field == field_name and (found := _at(value, steps)) is not None:
                yield found

    return inside


def _at(value: bytes, steps: list[str | int]) -> str | None:
    """The string, number, boolean or null at a path in JSON."""
    try:
        found: Any = json.loads(value, parse_int=str, parse_float=str, parse_constant=str)
        for step in steps:
            found = {} if isinstance(found, str) else found[step]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
    if isinstance(found, str):
        return found
    return None if isinstance(found, list | dict) else _CONSTANTS[found]


def _matching(values: Values, pattern: str) -> Condition:
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415 - 0.1 s that most commands do not need

    try:
        search = regex.compile(pattern).search
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None

    def matches(fields: Fields) -> bool:
        try:
            return any(search(value, timeout=SEARCH_SECONDS_MAX) for value in values(fields))
        except TimeoutError:
            raise SlowPattern(
                f"{pattern!r} takes more than {SEARCH_SECONDS_MAX:g} s for one value:"
                " avoid repetitions inside repetitions"
            ) from None

    return matches
