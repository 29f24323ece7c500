"""Conditions on the fields of an entry.

sku=A1      a field sku has this value
sku!=A1     no field sku has this value; also true where there is none
note~^re:   a field note matches this regular expression somewhere
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from penstock.human.show import Fields

Condition = Callable[[Fields], bool]

_CONDITION = re.compile(r"(.*?)(!=|=|~)(.*)", re.S)


def parse_condition(text: str) -> Condition:
    """A function of an entry's fields. Raises: ValueError."""
    parts = _CONDITION.fullmatch(text)
    if parts is None:
        raise ValueError(
            f"{text!r} is no condition: write field=value, field!=value or field~regex"
        )
    name, wanted = os.fsencode(parts[1]), os.fsencode(parts[3])
    if parts[2] == "=":
        return lambda fields: (name, wanted) in fields
    if parts[2] == "!=":
        return lambda fields: (name, wanted) not in fields
    return _matching(name, parts[3])


def parse_conditions(text: str) -> list[Condition]:
    """Conditions joined by &&, all of which must hold. Raises: ValueError."""
    return [parse_condition(part.strip()) for part in text.split("&&") if part.strip()]


def _matching(name: bytes, pattern: str) -> Condition:
    try:
        regex = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    # As the command line was decoded, so is the value: bytes that are not UTF-8 still compare.
    return lambda fields: any(
        field == name and regex.search(value.decode("utf-8", "surrogateescape"))
        for field, value in fields
    )
