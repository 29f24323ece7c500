"""Exports entries of a stream as JSONL, CSV or Parquet.

    jsonl     one object per line, as `penstock tail --json`; exact: `base64` has values that are not UTF-8
    csv       id, time, one column per field name of the first entries; `more` has other fields as JSON;
              what a spreadsheet could run as a formula is defused, or kept as it is
    parquet   _stream, _id, _timestamp and the map `fields`, as in the Spark source

The file is created while it is sent, some hundred entries at a time, so memory does not grow with its size. A
selection is a list of ids, or a range of ids with conditions and a limit.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.client.replies import Entry
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.human.show import (
    TIME_MS_MAX,
    Fields,
    entry_json,
    json_fields,
    json_text,
    time_or_none,
)
from penstock.human.where import Condition
from penstock.web.model.stream_page import (
    Reading,
    behind,
    count_for,
    mean_bytes,
    read_entries,
    read_ids,
)
from penstock.web.server.asking import ServerClient

CHUNK_ENTRIES = 500
LIMIT_DEFAULT = 100_000
IDS_MAX = 1000
TYPES = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


# Spreadsheets ignore characters before a formula, and East Asian ones accept its full-width form.
_FORMULA = frozenset("=+-@\N{MINUS SIGN}")
_LEADING_CONTROL = ("\t", "\r", "\n", "\0")
_QUOTES = frozenset("\"'`\N{FULLWIDTH QUOTATION MARK}\N{FULLWIDTH APOSTROPHE}")
# Controls, invisible characters, spaces, line ends, and other quotes.
_CATEGORIES_IGNORED = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp", "Pi", "Pf"))
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """The entries to export: `ids`, or the range from `start` to `end`, both included."""

    name: bytes
    start: StreamID = SMALLEST
    end: StreamID = LARGEST
    ids: tuple[StreamID, ...] = ()
    conditions: tuple[Condition, ...] = ()
    limit: int = LIMIT_DEFAULT
    keeps_formulas: bool = False  # in CSV


async def selected(server: ServerClient, selection: ExportSelection) -> AsyncIterator[list[Entry]]:
    """The entries of a selection, in chunks."""
    if selection.ids:
        yield await read_ids(server, selection.name, selection.ids[:IDS_MAX])
        return
    at: Reading | None = Reading(selection.start, rising=True)
    left = selection.limit
    count = count_for(await mean_bytes(server, selection.name), CHUNK_ENTRIES)
    while at is not None and left > 0:
        read = await read_entries(server, selection.name, at, count)
        at = behind(at, read[-1].id) if len(read) == count else None
        chunk = [
            entry
            for entry in read
            if entry.id <= selection.end
            and all(test(entry.fields) for test in selection.conditions)
        ]
        yield chunk[:left]
        left -= len(chunk)
        if read and read[-1].id >= selection.end:
            return


async def export(
    server: ServerClient, selection: ExportSelection, kind: str
) -> AsyncIterator[bytes]:
    """The file, piece by piece. `kind` is one of TYPES."""
    writer = WRITERS[kind](selection)
    async for chunk in selected(server, selection):
        if chunk:
            yield writer.write(chunk)
    yield writer.end()


class JsonlWriter:
    """One object per line."""

    def __init__(self, selection: ExportSelection) -> None:
        self._name = selection.name

    def write(self, chunk: Sequence[Entry]) -> bytes:
        lines = (entry_json(self._name, entry.id, entry.fields) for entry in chunk)
        return "".join(f"{line}\n" for line in lines).encode()

    def end(self) -> bytes:
        return b""


class CsvWriter:
    """A table. The first entries determine its columns."""

    def __init__(self, selection: ExportSelection) -> None:
        self._cell = json_text if selection.keeps_formulas else _safe_cell
        self._columns: list[bytes] | None = None

    def write(self, chunk: Sequence[Entry]) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text)
        if self._columns is None:
            self._columns = list(dict.fromkeys(name for entry in chunk for name, _ in entry.fields))
            names = [self._cell(name) for name in self._columns]
            writer.writerow(["id", "time", *names, "more"])
        writer.writerows(self._row(entry, self._columns) for entry in chunk)
        return text.getvalue().encode()

    def end(self) -> bytes:
        return b"" if self._columns is not None else b"id,time\r\n"

    def _row(self, entry: Entry, columns: Sequence[bytes]) -> Iterator[str]:
        first: dict[bytes, bytes] = {}
        more: list[tuple[bytes, bytes]] = []
        for name, value in entry.fields:
            if name in columns and name not in first:
                first[name] = value
            else:
                more.append((name, value))
        yield str(entry.id)
        yield time_or_none(entry.id.ms) or ""
        for name in columns:
            yield self._cell(first.get(name, b""))
        yield json_fields(more) if more else ""


def _safe_cell(value: bytes) -> str:
    """A cell that no spreadsheet runs: an apostrophe precedes what could be a formula."""
    text = json_text(value)
    return f"'{text}" if _may_run(text) else text


def _may_run(text: str) -> bool:
    """Whether a spreadsheet could take a cell for a formula. Plain numbers are safe.

    A leading control character counts too, because programs treat it differently.
    """
    visible = next((place for place, char in enumerate(text) if not _is_ignored(char)), None)
    if visible is None:
        return text.startswith(("\t", "\r"))
    if text.startswith(_LEADING_CONTROL):
        return True
    # NFKC turns wide, small and superscript forms into the plain character.
    first = unicodedata.normalize("NFKC", text[visible])[:1]
    return first in _FORMULA and not _NUMBER.fullmatch(text.strip(" "))


def _is_ignored(char: str) -> bool:
    return char in _QUOTES or unicodedata.category(char) in _CATEGORIES_IGNORED


class ParquetWriter:
    """One row group per chunk."""

    def __init__(self, selection: ExportSelection) -> None:
        # Imported here, so that the dashboard works without pyarrow.
        import pyarrow  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415

        self._arrow: Any = pyarrow
        self._name = json_text(selection.name)
        self._sink = _Drain()
        text = pyarrow.string()
        columns = [("_stream", text), ("_id", text)]
        columns.append(("_timestamp", pyarrow.timestamp("ms", "UTC")))
        columns.append(("fields", pyarrow.map_(text, text)))
        self._schema = pyarrow.schema(columns)
        self._writer = pyarrow.parquet.ParquetWriter(self._sink, self._schema)

    def write(self, chunk: Sequence[Entry]) -> bytes:
        rows = {
            "_stream": [self._name] * len(chunk),
            "_id": [str(entry.id) for entry in chunk],
            "_timestamp": [_calendar_ms(entry.id.ms) for entry in chunk],
            "fields": [_pairs(entry.fields) for entry in chunk],
        }
        self._writer.write_table(self._arrow.Table.from_pydict(rows, self._schema))
        return self._sink.take()

    def end(self) -> bytes:
        self._writer.close()
        return self._sink.take()


class _Drain(io.RawIOBase):
    """A file that drops the bytes taken from it but keeps its position."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = bytearray()
        self._at = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._kept += data
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        return self._at

    def take(self) -> bytes:
        taken = bytes(self._kept)
        self._kept.clear()
        return taken


def _calendar_ms(ms: int) -> int | None:
    return ms if ms <= TIME_MS_MAX else None


def _pairs(fields: Fields) -> list[tuple[str, str]]:
    """The pairs of a map: the last value of each name."""
    return list({json_text(name): json_text(value) for name, value in fields}.items())


WRITERS: dict[str, Callable[[ExportSelection], Any]] = {
    "jsonl": JsonlWriter,
    "csv": CsvWriter,
    "parquet": ParquetWriter,
}
