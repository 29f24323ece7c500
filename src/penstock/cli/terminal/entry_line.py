"""An entry as a line of text, as JSON, or in a format of the user.

A format string supports these placeholders, and no attribute access or format specifications. Inserted values
are harmless to a terminal:

    {stream} {id} {ms} {seq} {time}      the entry's key and id; time is ISO 8601 in UTC
    {fields} {json}                      all fields: name=value ..., or a JSON object
    {field[sku]}                         the value of one field, empty if the entry has none
    {{ }} \\n \\t \\\\                       a brace, a newline, a tab, a backslash
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import typer
from rich.text import Text

from penstock.cli.terminal.entries import StreamEntry
from penstock.human.show import (
    entry_json,
    fields_text,
    harmless,
    json_fields,
    quoted,
    time_text,
)

Line = Callable[[StreamEntry], str | Text]
Piece = Callable[[StreamEntry], str]

PIECES: dict[str, Piece] = {
    "stream": lambda entry: harmless(entry.stream),
    "id": lambda entry: str(entry.id),
    "ms": lambda entry: str(entry.id.ms),
    "seq": lambda entry: str(entry.id.seq),
    "time": lambda entry: time_text(entry.id.ms),
    "fields": lambda entry: fields_text(entry.fields),
    "json": lambda entry: json_fields(entry.fields),
}
ESCAPES = {"{{": "{", "}}": "}", "\\n": "\n", "\\t": "\t", "\\\\": "\\"}

_TOKEN = re.compile(
    r"\{\{|\}\}|\\[nt\\]|\{field\[(?P<field>.*?)\]\}|\{(?P<name>[^{}]*)\}|[{}]", re.S
)


def json_entry(entry: StreamEntry) -> str:
    """The whole entry as one line of JSON."""
    return entry_json(entry.stream, entry.id, entry.fields)


def entry_text(entry: StreamEntry, with_stream: bool) -> str:
    """`TIME  ID  name=value ...`, with the stream in front if wanted."""
    line = f"{time_text(entry.id.ms)}  {entry.id}  {fields_text(entry.fields)}"
    return f"{harmless(entry.stream)}  {line}" if with_stream else line


def coloured_entry(entry: StreamEntry, with_stream: bool) -> Text:
    """The same text for a terminal."""
    line = Text()
    if with_stream:
        line.append(harmless(entry.stream), "magenta").append("  ")
    line.append(time_text(entry.id.ms), "dim").append("  ")
    line.append(str(entry.id), "cyan").append(" ")
    for name, value in entry.fields:
        line.append(" ").append(quoted(name), "green").append("=").append(quoted(value))
    return line


def parse_format(text: str) -> Piece:
    """A function that fills in the placeholders of `text`. Raises: typer.BadParameter."""
    pieces: list[str | Piece] = []
    at = 0
    for token in _TOKEN.finditer(text):
        pieces.append(text[at : token.start()])
        pieces.append(_parse_token(token))
        at = token.end()
    pieces.append(text[at:])
    return lambda entry: "".join(
        piece if isinstance(piece, str) else piece(entry) for piece in pieces
    )


def _parse_token(token: re.Match[str]) -> str | Piece:
    if token[0] in ESCAPES:
        return ESCAPES[token[0]]
    if token["field"] is not None:
        return _field(os.fsencode(token["field"]))
    if token["name"] in PIECES:
        return PIECES[token["name"]]
    known = " ".join(f"{{{name}}}" for name in PIECES)
    raise typer.BadParameter(f"unknown placeholder {token[0]}: use {known} {{field[NAME]}}")


def _field(name: bytes) -> Piece:
    def value(entry: StreamEntry) -> str:
        found = [value for field, value in entry.fields if field == name]
        return harmless(found[-1]) if found else ""

    return value
