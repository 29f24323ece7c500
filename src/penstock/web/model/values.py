"""Formats values for a page: preview, text, JSON, hex.

Pages insert text as text, so markup in it is harmless. Characters that are invisible or change the writing
direction are escaped by `harmless`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from penstock.human.show import Fields, harmless, quoted

PREVIEW_CHARACTERS = 200
SHOWN_BYTES_MAX = 64 * 1024
HEX_BYTES_MAX = 4096
HEX_ROW = 16


def preview(fields: Fields) -> str:
    """The start of an entry's fields on one line. JSON is shown as it is, without escapes."""
    cut = [(name[:PREVIEW_CHARACTERS], value[:PREVIEW_CHARACTERS]) for name, value in fields[:20]]
    text = " ".join(
        f"{quoted(name)}={harmless(value) if _starts_json(value) else quoted(value)}"
        for name, value in cut
    )
    if len(text) > PREVIEW_CHARACTERS or len(fields) > len(cut):
        return text[:PREVIEW_CHARACTERS] + " ..."
    return text


def field_preview(fields: Fields, name: bytes) -> str:
    """The values of one field, cut, on one line. Empty if the entry does not have it."""
    found = [value for field, value in fields if field == name]
    text = ", ".join(harmless(value[:PREVIEW_CHARACTERS]) for value in found)
    cut = len(text) > PREVIEW_CHARACTERS or any(len(value) > PREVIEW_CHARACTERS for value in found)
    return text[:PREVIEW_CHARACTERS] + " ..." if cut else text


def _starts_json(value: bytes) -> bool:
    """Whether a value, which may be cut, looks like an object or an array."""
    start = value.lstrip()[:2]
    return start[:1] == b"{" or start in (b'["', b"[{", b"[[", b"[]")


def value_text(value: bytes) -> str:
    """The value as text, with its line breaks."""
    lines = value[:SHOWN_BYTES_MAX].decode("utf-8", "backslashreplace").split("\n")
    return "\n".join(harmless(line) for line in lines) + _rest(value, SHOWN_BYTES_MAX)


def json_view_or_none(value: bytes) -> str | None:
    """Indented JSON, if the value is an object or array. All digits and repeated names are kept."""
    parsed = parse_json_or_none(value)
    try:
        return None if parsed is None else "\n".join(_lines(parsed, ""))
    except RecursionError:
        return None


def parse_json_or_none(value: bytes) -> object:
    """An object or array: JsonObject, list, JsonLiteral for numbers, str, bool and None inside."""
    if value.lstrip()[:1] not in (b"{", b"[") or len(value) > SHOWN_BYTES_MAX:
        return None
    try:
        # Keep numbers as text: a float would lose digits of large integers and decimals.
        return json.loads(
            value,
            parse_float=JsonLiteral,
            parse_int=JsonLiteral,
            parse_constant=_refuse,
            object_pairs_hook=JsonObject,
        )
    except (ValueError, RecursionError):
        return None


class JsonLiteral(str):
    """A number as written."""

    __slots__ = ()


class JsonObject(tuple[tuple[str, object], ...]):
    """Names and values in order. A dict would drop repeated names."""

    __slots__ = ()


def _refuse(word: str) -> None:
    raise ValueError(word)


def _lines(value: object, indent: str) -> list[str]:
    """The lines of a value. The first line follows a name."""
    deeper = indent + "  "
    if isinstance(value, JsonObject):
        if not value:
            return ["{}"]
        return _block("{", "}", [(f"{json_string(name)}: ", item) for name, item in value], deeper)
    if isinstance(value, list) and value:
        return _block("[", "]", [("", item) for item in value], deeper)
    if isinstance(value, JsonLiteral):
        return [str(value)]
    return [json_string(value) if isinstance(value, str) else json.dumps(value)]


def _block(
    opening: str, closing: str, items: Sequence[tuple[str, object]], indent: str
) -> list[str]:
    lines = [opening]
    for number, (name, item) in enumerate(items):
        first, *rest = _lines(item, indent)
        inner = [indent + name + first, *rest]
        if number < len(items) - 1:
            inner[-1] += ","
        lines += inner
    return [*lines, indent[:-2] + closing]


def json_string(text: str) -> str:
    return harmless(json.dumps(text, ensure_ascii=False))


def hex_view(value: bytes) -> str:
    """A hexdump: offset, sixteen bytes, their ASCII characters."""
    rows = []
    for at in range(0, min(len(value), HEX_BYTES_MAX), HEX_ROW):
        row = value[at : min(at + HEX_ROW, HEX_BYTES_MAX)]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{at:08x}  {row.hex(' '):<{HEX_ROW * 3}} {text}")
    return "\n".join(rows) + _rest(value, HEX_BYTES_MAX)


def _rest(value: bytes, shown: int) -> str:
    more = len(value) - shown
    return f"\n... {more:,} more bytes" if more > 0 else ""
