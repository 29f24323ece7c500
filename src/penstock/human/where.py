"""Conditions on the fields of an entry.

sku=A1                     a field sku has this value
sku!=A1                    no field sku has this value; also true where there is none
note~^re:                  a field note matches this regular expression somewhere
body$.customer.id=7        a field body is JSON that has this value there; body$.lines[0].sku~^A likewise

Numbers inside JSON are compared as they are written, so none loses a digit.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import regex  # type: ignore[import-untyped]

from penstock.errors import PenstockError
from penstock.human.show import Fields

Condition = Callable[[Fields], bool]
Values = Callable[[Fields], Iterator[str]]

SEARCH_SECONDS_MAX = 0.1  # a pattern may need for ever, and holds up whoever runs it

_CONDITION = re.compile(r"(.*?)(!=|=|~)(.*)", re.S)
_PATH = re.compile(r"(.*?)\$((?:\.[^.\[\]]+|\[\d{1,9}\])+)", re.S)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_CONSTANTS = {True: "true", False: "false", None: "null"}


class SlowPattern(PenstockError, ValueError):
    """A regular expression that takes too long for one value."""


def parse_condition(text: str) -> Condition:
    """A function of an entry's fields. Raises: ValueError."""
    parts = _CONDITION.fullmatch(text)
    if parts is None:
        raise ValueError(
            f"{text!r} is no condition: write field=value, field!=value or field~regex"
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
    """The texts that a condition is about. Bytes that are not UTF-8 are decoded as the command line is."""
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
    """The text, the number, the truth or the null that JSON has at a place."""
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
    try:
        search = regex.compile(pattern).search
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None

    def matches(fields: Fields) -> bool:
        try:
            return any(search(value, timeout=SEARCH_SECONDS_MAX) for value in values(fields))
        except TimeoutError:
            raise SlowPattern(
                f"{pattern!r} takes more than {SEARCH_SECONDS_MAX:g} s for one value:"
                " repetitions inside of repetitions do that"
            ) from None

    return matches
