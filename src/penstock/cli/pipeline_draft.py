"""Drafts the file of a pipeline from a sample of a stream: `penstock pipeline new`.

Each field gets the narrowest of these types that all sampled values have:

    bigint  decimal(18,n)  decimal(38,n)  double  boolean  date  timestamp  string  binary

A field whose values are JSON objects becomes the [payload], with the types of its members, and each member
that is a plain value becomes a column. Columns of deeper members are suggested in comments. Rare values of
another type, and rare values that are no JSON objects, are taken for mistakes. A member with values of two
types is left out. Comments name both.

If the stream has replayed entries, a column gets the time of the original.

The draft loses nothing: entries that do not fit it are rejected with their reason, and the archive keeps
every entry as it is.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from penstock.client.dead_letters import SOURCE_ID
from penstock.client.value_text import ValueText
from penstock.spark.pipeline.definition.rules import OWN_COLUMNS

Fields = Sequence[tuple[bytes, bytes]]
Type = str | None  # None: no two values agree, or there is none
# A type, the members of a struct, or the kind of the elements of an array.
Kind = str | dict[str, "Kind"] | tuple["Kind"]

RARE = 10  # a kind of values is a mistake if fewer than one of RARE values have it
SUGGESTIONS_MAX = 10  # columns of deeper members
DECIMAL_DIGITS = (18, 38)  # the most of a quick decimal, and of any
_CODE = re.compile(rb"[+-]?0[0-9]|\+")  # 007 and +5 would lose characters as numbers
_DECIMAL = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_TRUTH = re.compile(rb"true|false", re.IGNORECASE)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONG_MAX = 2**63 - 1
_REPLAYED = SOURCE_ID.decode()
_ORIGINAL = f"coalesce(id_timestamp({_REPLAYED}), _timestamp)"


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


class JsonKinds:
    """The kinds of JSON values, and `remarks` about members with several."""

    def __init__(self) -> None:
        self.remarks: list[str] = []

    def of(self, values: Iterable[Any], path: str = "") -> Kind | None:
        """The kind that nearly all values have; null has any. None if there is no such kind."""
        found = [value for value in values if value is not None]
        counts = Counter(map(_name_of, found))
        usual = [name for name, count in counts.items() if count * RARE >= len(found)]
        if len(usual) != 1:
            why = "its values have several types" if found else "it has no values"
            self.remarks.append(f"{path} is left out, because {why}.")
            return None
        rare = len(found) - counts[usual[0]]
        if rare:
            what = (
                "values have another type. Their entries are"
                if rare > 1
                else "values has another type. Its entry is"
            )
            self.remarks.append(f"{path}: {rare:,} of {len(found):,} {what} rejected.")
        return self._one([value for value in found if _name_of(value) == usual[0]], path)

    def of_members(self, objects: Sequence[Mapping[str, Any]], path: str = "") -> dict[str, Kind]:
        """The members of all objects that have a kind, in the order in which they appear.

        Spark ignores case: of two names that differ only in case, the first is taken.
        """
        names: dict[str, str] = {}
        for one in objects:
            for name in one:
                names.setdefault(name.lower(), name)
        kinds = {}
        for name in names.values():
            whole = f"{path}.{name}" if path else name
            if _SURROGATE.search(name):
                self.remarks.append(f"{whole} is left out, because its name is not valid Unicode.")
            else:
                kinds[name] = self.of([one.get(name) for one in objects], whole)
        return {name: kind for name, kind in kinds.items() if kind is not None}

    def _one(self, values: list[Any], path: str) -> Kind | None:
        """The kind of values that are all numbers, or all lists, ..."""
        first = values[0]
        if isinstance(first, bool):
            return "boolean"
        if isinstance(first, int | float):
            if any(isinstance(value, float) for value in values):
                return "double"
            fits = all(-_LONG_MAX - 1 <= value <= _LONG_MAX for value in values)
            return "bigint" if fits else "decimal(38,0)"
        if isinstance(first, str):
            return _time_or_string(values)
        if isinstance(first, list):
            inner = self.of((item for value in values for item in value), f"{path}[]")
            return None if inner is None else (inner,)
        return self.of_members(values, path) or None


def _name_of(value: Any) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def _time_or_string(values: Sequence[str]) -> str:
    """The type of JSON strings: dates and times are strings, too."""
    kind = type_of_values([value.encode("utf-8", "surrogatepass") for value in values])
    return kind if kind in ("date", "timestamp") else "string"


def text_of(kind: Kind) -> str:
    """A kind as a type of Spark."""
    if isinstance(kind, str):
        return kind
    if isinstance(kind, tuple):
        return f"array<{text_of(kind[0])}>"
    return "struct<{}>".format(
        ",".join(f"{quoted_name(name)}:{text_of(one)}" for name, one in kind.items())
    )


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
        kinds = JsonKinds()
        self._members = kinds.of_members(self._objects)
        self._remarks = kinds.remarks
        if not self._members:
            self._payload = None
        self._made = self._make_columns()
        self._original = self._find_original()
        self._time = self._find_time()

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
        self._left_out.append(f"The field {_text(name)} {why}.")

    def _find_payload(self) -> tuple[str | None, list[dict[str, Any]]]:
        """The field with JSON objects, but for rare values; of several the one with the most bytes."""
        best: tuple[int, str, list[dict[str, Any]]] | None = None
        for name, values in self._values.items():
            objects = [one for one in map(object_or_none, values) if one is not None]
            size = sum(map(len, values))
            if (len(values) - len(objects)) * RARE < len(values) and (
                best is None or size > best[0]
            ):
                best = size, name, objects
        return (None, []) if best is None else best[1:]

    @property
    def text(self) -> str:
        """The whole file."""
        stream = _text(self._stream)
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
            *self._columns(),
            "",
            "[archive]",
            'path = "lake"  # relative to this file',
            "",
            "[reject]",
            f"stream = {_text(self._stream + ':rejected')}",
            "",
            "# [valid]",
            '# name = "SQL condition"  # rows that fail it are rejected, with this name as the reason',
            "",
            "# [[aggregate]]",
            '# name = "by_minute"',
            *([f"# time = {_text(self._time)}"] if self._time else []),
            '# window = "1 minute"',
            '# watermark = "10 minutes"',
            '# measures = { entries = "count(*)" }',
        ]
        return "\n".join(lines) + "\n"

    def _schema(self) -> list[str]:
        rows = []
        for name, values in self._values.items():
            if name != self._payload:
                rows.append(f"{_key(name)} = {_text(type_of_values(values))}{self._share(values)}")
        return ["", "[schema]", *rows] if rows else []

    def _share(self, values: Sequence[bytes]) -> str:
        if len(values) == self._count:
            return ""
        return f"  # in {len(values):,} of {self._count:,} entries"

    def _payload_sections(self) -> list[str]:
        if self._payload is None:
            return []
        broken = len(self._values[self._payload]) - len(self._objects)
        what = (
            "values are not JSON objects: they are"
            if broken > 1
            else "value is not a JSON object: it is"
        )
        remark = f"  # {broken:,} {what} rejected" if broken else ""
        lines = ["", "[payload]", f"field = {_text(self._payload)}{remark}", 'format = "json"']
        lines += ["", "[payload.schema]", *(f"# {_one_line(one)}" for one in self._remarks)]
        return lines + [
            f"{_key(name)} = {_text(text_of(kind))}" for name, kind in self._members.items()
        ]

    def _columns(self) -> list[str]:
        """Columns of the plain members whose names are free, and suggestions for deeper ones."""
        made = [f"{_key(name)} = {_text(sql)}" for name, sql in self._made.items()]
        if self._original:
            made.append(f"{self._original} = {_text(_ORIGINAL)}  # of replayed entries, too")
        plain = [path for path in _plain_members(self._members) if len(path) > 1]
        for path in plain[:SUGGESTIONS_MAX]:
            made.append(f"# {_key('_'.join(path))} = {_text(self._sql_of(path))}")
        return ["", "[columns]", *made] if made else []

    def _sql_of(self, path: Sequence[str]) -> str:
        assert self._payload is not None
        return ".".join(map(quoted_name, (self._payload, *path)))

    def _make_columns(self) -> dict[str, str]:
        taken = {*OWN_COLUMNS, *map(str.lower, self._values)}
        return {
            path[0]: self._sql_of(path)
            for path in _plain_members(self._members)
            if len(path) == 1 and path[0].lower() not in taken
        }

    def _find_original(self) -> str:
        """The name of the column with the time of the original, or empty."""
        taken = {name.lower() for name in (*self._values, *self._made)}
        is_replayed = _REPLAYED in self._values and self._payload != _REPLAYED
        return "happened" if is_replayed and "happened" not in taken else ""

    def _find_time(self) -> str:
        """The column whose time is that of the event, or empty."""
        if self._original:
            return self._original
        for name, values in self._values.items():
            if name != self._payload and type_of_values(values) == "timestamp":
                return name
        return next((name for name in self._made if self._members[name] == "timestamp"), "")


def _plain_members(
    members: Mapping[str, Kind], above: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """The paths of all members that are plain values, outside of arrays."""
    for name, kind in members.items():
        if isinstance(kind, dict):
            yield from _plain_members(kind, (*above, name))
        elif isinstance(kind, str):
            yield (*above, name)


def _key(name: str) -> str:
    """A key of TOML."""
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    """A string of TOML: as in JSON, but no character is two surrogates. A lone one becomes its number."""
    whole = text.encode("utf-8", "backslashreplace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _one_line(text: str) -> str:
    """A text for a comment."""
    return "".join(one if one.isprintable() else "?" for one in text)
