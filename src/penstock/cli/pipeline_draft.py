"""Drafts the file of a pipeline from a sample of a stream: `penstock pipeline new`.

Each field gets the narrowest of these types that all sampled values have:

    bigint  decimal(18,n)  decimal(38,n)  double  boolean  date  timestamp  string  binary

A field whose values are JSON objects becomes the [payload], with the types of its members, and each member
that is a plain value becomes a column. A member with values of two types is left out, with a remark.

The draft loses nothing: entries that do not fit it are rejected with their reason, and the archive keeps
every entry as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.client.value_text import ValueText
from penstock.spark.pipeline.definition.rules import OWN_COLUMNS

Fields = Sequence[tuple[bytes, bytes]]
Type = str | None  # None: no two values agree, or there is none

DECIMAL_DIGITS = (18, 38)  # the most of a quick decimal, and of any
_CODE = re.compile(rb"[+-]?0[0-9]|\+")  # 007 and +5 would lose characters as numbers
_DECIMAL = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_TRUTH = re.compile(rb"true|false", re.IGNORECASE)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONG_MAX = 2**63 - 1


# --- Types -----------------------------------------------------------------------------------------


def type_of_values(values: Sequence[bytes]) -> str:
    """The narrowest type that all values of a field have."""
    parser = ValueText()

    def all_are(parse: Callable[[bytearray, int, int], bool]) -> bool:
        return all(parse(bytearray(value), 0, len(value)) for value in values)

    if not any(_CODE.match(value) for value in values):
        if all_are(parser.integer):
            return "bigint"
        decimal = _decimal_of(values)
        if decimal is not None:
            return decimal
        if all_are(parser.real_number):
            return "double"
    if all(_TRUTH.fullmatch(value) for value in values):
        return "boolean"
    if all_are(parser.date):
        return "date"
    if all_are(lambda buffer, start, size: parser.timestamp(buffer, start, size, True)):
        return "timestamp"
    return "string" if all(map(_is_text, values)) else "binary"


def _decimal_of(values: Sequence[bytes]) -> Type:
    """A decimal with room for larger numbers, if all values are plain numbers with few enough digits."""
    digits = places = 0
    for value in values:
        if not _DECIMAL.fullmatch(value):
            return None
        whole, _, part = value.lstrip(b"-").partition(b".")
        digits, places = max(digits, len(whole)), max(places, len(part))
    for precision in DECIMAL_DIGITS:
        if digits + places <= precision:
            return f"decimal({precision},{places})"
    return None


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def object_or_none(value: bytes) -> dict[str, Any] | None:
    """A JSON object, or None if the value is none."""
    if not value.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def json_type(values: Iterable[Any]) -> Type:
    """The type that JSON values have in common; null has any. None if they have none."""
    found = [value for value in values if value is not None]
    kinds = {type(value) for value in found}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        fits = all(-_LONG_MAX - 1 <= value <= _LONG_MAX for value in found)
        return "bigint" if fits else "decimal(38,0)"
    if kinds and kinds <= {int, float}:
        return "double"
    if kinds == {str}:
        return "string"
    if kinds == {list}:
        inner = json_type(item for value in found for item in value)
        return None if inner is None else f"array<{inner}>"
    if kinds == {dict}:
        members = [(name, kind) for name, kind in members_of(found).items() if kind is not None]
        inner = ",".join(f"{quoted_name(name)}:{kind}" for name, kind in members)
        return f"struct<{inner}>" if members else None
    return None


def members_of(objects: Sequence[Mapping[str, Any]]) -> dict[str, Type]:
    """The members of all objects with their types, in the order in which they appear.

    Spark ignores case: of two names that differ only in case, the first is taken.
    """
    names: dict[str, str] = {}
    for one in objects:
        for name in one:
            names.setdefault(name.lower(), name)
    return {name: json_type(one.get(name) for one in objects) for name in names.values()}


def quoted_name(name: str) -> str:
    """A name as SQL and Spark's types take it."""
    return name if _IDENTIFIER.fullmatch(name) else "`{}`".format(name.replace("`", "``"))


# --- The file --------------------------------------------------------------------------------------


class Draft:
    """The file for one stream: `text`."""

    def __init__(self, stream: str, url: str, entries: Sequence[Fields]) -> None:
        self._stream = stream
        self._url = url
        self._count = len(entries)
        self._values: dict[str, list[bytes]] = {}
        self._left_out: list[str] = []
        for fields in entries:
            for name, value in dict(fields).items():
                self._values.setdefault(name.decode("utf-8", "backslashreplace"), []).append(value)
        self._leave_out()
        self._payload, self._objects = self._find_payload()

    def _leave_out(self) -> None:
        """Take out the fields that cannot be columns."""
        seen: dict[str, str] = {}
        for name in list(self._values):
            other = seen.setdefault(name.lower(), name)
            if name.lower() in OWN_COLUMNS:
                self._drop(name, "is a column of the source itself")
            elif other != name:
                self._drop(name, f"is the same column as {other} to Spark")
            elif not name.isprintable() or not name:
                self._drop(name, "cannot be the name of a column")

    def _drop(self, name: str, why: str) -> None:
        del self._values[name]
        self._left_out.append(f"The field {json.dumps(name)} {why}.")

    def _find_payload(self) -> tuple[str | None, list[dict[str, Any]]]:
        """The field with JSON objects only; of several the one with the most bytes."""
        best: tuple[int, str, list[dict[str, Any]]] | None = None
        for name, values in self._values.items():
            objects = [one for one in map(object_or_none, values) if one is not None]
            size = sum(map(len, values))
            if len(objects) == len(values) and (best is None or size > best[0]):
                best = size, name, objects
        return (None, []) if best is None else best[1:]

    @property
    def text(self) -> str:
        """The whole file."""
        stream = json.dumps(self._stream)
        lines = [
            f"# A draft from {self._count:,} entries of {_one_line(self._stream)}. Check it with",
            "#   penstock pipeline check FILE",
            *(f"# {_one_line(remark)}" for remark in self._left_out),
            "",
            "[source]",
            f'url = "${{PENSTOCK_URL:-{self._url}}}"',
            f"stream = {stream}",
            'group = "lake"  # shows how far the archive is',
            *self._schema(),
            *self._payload_sections(),
            "",
            "[archive]",
            'path = "lake"  # relative to this file',
            "",
            "[reject]",
            f"stream = {json.dumps(self._stream + ':rejected')}",
            "",
            "# [valid]",
            '# name = "SQL condition"  # rows that fail it are rejected, with this name as the reason',
            "",
            "# [[aggregate]]",
            '# name = "by_minute"',
            '# window = "1 minute"',
            '# watermark = "10 minutes"',
            '# measures = { entries = "count(*)" }',
        ]
        return "\n".join(lines) + "\n"

    def _schema(self) -> list[str]:
        rows = []
        for name, values in self._values.items():
            if name != self._payload:
                rows.append(
                    f"{_key(name)} = {json.dumps(type_of_values(values))}{self._share(values)}"
                )
        return ["", "[schema]", *rows] if rows else []

    def _share(self, values: Sequence[bytes]) -> str:
        if len(values) == self._count:
            return ""
        return f"  # in {len(values):,} of {self._count:,} entries"

    def _payload_sections(self) -> list[str]:
        if self._payload is None:
            return []
        members = members_of(self._objects)
        typed = {name: kind for name, kind in members.items() if kind is not None}
        if not typed:
            return [f"# {_key(self._payload)}: no member has one type in all entries"]
        lines = ["", "[payload]", f"field = {json.dumps(self._payload)}", 'format = "json"']
        lines += ["", "[payload.schema]"]
        lines += [f"{_key(name)} = {json.dumps(kind)}" for name, kind in typed.items()]
        for name in members.keys() - typed.keys():
            lines.append(f"# {_one_line(name)}: no type, or several")
        columns = self._columns(typed)
        return [*lines, "", "[columns]", *columns] if columns else lines

    def _columns(self, typed: Mapping[str, str]) -> list[str]:
        """Columns of the plain members whose names are free."""
        taken = {*OWN_COLUMNS, *map(str.lower, self._values)}
        assert self._payload is not None
        field = quoted_name(self._payload)
        return [
            f"{_key(name)} = {json.dumps(f'{field}.{quoted_name(name)}')}"
            for name, kind in typed.items()
            if "<" not in kind and name.lower() not in taken
        ]


def _key(name: str) -> str:
    """A key of TOML."""
    return name if _BARE.fullmatch(name) else json.dumps(name)


def _one_line(text: str) -> str:
    """A text for a comment."""
    return "".join(one if one.isprintable() else "?" for one in text)
