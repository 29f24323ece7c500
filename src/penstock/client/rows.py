# cython: wraparound=False
"""Spreads the entries of a stream over the wanted columns.

A decoder (node_rows, reply_rows) finds an entry's id, its field names and the places of its values, notes the
places in `spans` and calls `add` (with `step` 2, the span of a name precedes that of its value). Many
consecutive entries have the same names, so everything that depends only on names is computed once and cached
in FieldNames: which value goes into which column, which of two equal names counts, how a name is shown.

    names     sku  qty  sku      columns   qty  price  sku
    places                                   1     -1    2       the last sku wins; there is no price

Decoders call `has_room` before each entry. A batch ends at `rows_max` rows, or before the texts of its
columns exceed `bytes_max` together, so no offset ever reaches 2**31.

A value that does not fit the type of its column becomes null, is counted in `values_failed`, and is shown in
the column `_corrupt` if there is one. Bytes that are not UTF-8 are escaped there (\\xff), as are names in a
map of strings, whose keys cannot be null.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.client.columns import (
    ENTRY_ID,
    ENTRY_TIME,
    STREAM,
    STRING,
    TEXT_BYTES_MAX,
    Column,
    Pairs,
)
from penstock.core import listpack, memory
from penstock.errors import UnreadableValue

ROWS_MAX = 10_000
BYTES_MAX = 64 << 20

_AS_INTEGER = 1 << 40  # as in columns.py
_ENTRY_ID, _ENTRY_TIME, _STREAM, _STRING = ENTRY_ID, ENTRY_TIME, STREAM, STRING
_TEXT_BYTES_MAX = TEXT_BYTES_MAX
_ID_TEXT_BYTES_MAX = 41
_ESCAPE_FACTOR = 4  # \xff replaces one byte
_SHAPES_MAX = 256
_SHOWN_BYTES_MAX = 100
_SPAN_BYTES = 16
_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class RowLimits:
    """When a batch is full, and whether a value of the wrong type is an error."""

    rows_max: int = ROWS_MAX
    bytes_max: int = BYTES_MAX
    fail_on_error: bool = False


class FieldNames:
    """The field names of an entry, and the columns they map to."""

    __slots__ = ("count", "names", "places", "shadowed", "size", "texts")

    def __init__(self, names: list[bytes], wanted: list[bytes | None]) -> None:
        last = {name: place for place, name in enumerate(names)}
        self.names = names
        self.count = len(names)
        self.texts = [escaped(name) for name in names]
        self.size = sum(map(len, self.texts))
        self.places = [_NOWHERE if name is None else last.get(name, _NOWHERE) for name in wanted]
        self.shadowed = bytearray(last[name] != place for place, name in enumerate(names))


class Rows:
    """The rows of the batch that is being built; `count` is their number.

    Decoders use has_room, names_of, reserve_spans, spans and add. The builder of batches uses the columns,
    fields and corrupt, then begin for the next batch.
    """

    __slots__ = (
        "_bytes",
        "_bytes_max",
        "_columns",
        "_failures",
        "_known",
        "_overhead",
        "_rows_max",
        "_stream_text",
        "_wanted",
        "corrupt",
        "count",
        "fail_on_error",
        "fields",
        "keep_all",
        "spans",
        "step",
        "stream",
        "values_failed",
    )

    def __init__(
        self, columns: list[tuple[bytes | None, Column]], stream: bytes, limits: RowLimits
    ) -> None:
        """`columns`: columns with one value per entry and their field names, None for the id and the like."""
        self._columns = [column for _, column in columns]
        self._wanted = [name for name, _ in columns]
        self.fields: Pairs | None = None
        self.keep_all = False  # keep all fields of the same name, not only the last
        self.corrupt: Pairs | None = None
        self.fail_on_error = limits.fail_on_error
        self._rows_max = limits.rows_max
        self._bytes_max = min(limits.bytes_max, TEXT_BYTES_MAX)
        self.stream = stream
        self._stream_text = escaped(stream)
        self._overhead = len(self._stream_text) + _ID_TEXT_BYTES_MAX
        self._known: dict[tuple[bytes, ...], FieldNames] = {}
        self._failures: dict[bytes, bytes] = {}
        self.spans = bytearray(_SPAN_BYTES * 16)
        self.step = 1  # 2 if spans alternate between names and values
        self.values_failed = 0
        self.begin()

    def begin(self) -> None:
        """Start the next batch, after the columns were taken."""
        self.count = 0
        self._bytes = 0

    def names_of(self, names: list[bytes]) -> FieldNames:
        """The FieldNames of these names, from a cache of limited size."""
        key = tuple(names)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _SHAPES_MAX:
                self._known.clear()
            known = self._known[key] = FieldNames(names, self._wanted)
        return known

    def reserve_spans(self, count: int) -> None:
        """Make room for the places of `count` values."""
        missing = _SPAN_BYTES * count - len(self.spans)
        if missing > 0:
            self.spans.extend(bytes(max(missing, len(self.spans))))

    def has_room(self, values_bytes: int, names: FieldNames) -> bool:
        """Whether an entry fits into this batch. Raises: UnreadableValue if it fits into no batch."""
        size = values_bytes + names.size + self._overhead
        if self.corrupt is not None:
            size *= _ESCAPE_FACTOR
        if self.count == 0:
            if size > _TEXT_BYTES_MAX:
                raise UnreadableValue(
                    f"an entry of {size} bytes does not fit a column of Arrow, which has 2 GiB"
                )
        elif self.count >= self._rows_max or self._bytes + size > self._bytes_max:
            return False
        self._bytes += size
        return True

    def add(self, ms: int, seq: int, buffer: bytearray, names: FieldNames) -> None:
        """Add the entry ms-seq, with its values in the buffer at `spans`."""
        row = self.count
        columns = self._columns
        places = names.places
        spans = self.spans
        step = self.step
        number = 0
        count = len(columns)
        while number < count:
            column = columns[number]
            kind = column.kind
            if kind == _ENTRY_ID:
                column.put_id(row, ms, seq)
            elif kind == _ENTRY_TIME:
                column.put_time(row, ms)
            elif kind == _STREAM:
                column.put_bytes(row, self._stream_text)
            else:
                place = places[number]
                span = place * step + step - 1
                if place < 0:
                    column.put_null(row)
                elif not column.put(
                    row, buffer, memory.span_start(spans, span), memory.span_size(spans, span)
                ):
                    column.put_null(row)
                    self._note_failure(buffer, names, place)
            number += 1
        if self.fields is not None:
            self._add_fields(row, buffer, names)
        if self._failures:
            self._settle_failures(row, ms, seq)
        elif self.corrupt is not None:
            self.corrupt.end_row(row, True)
        self.count = row + 1

    def _add_fields(self, row: int, buffer: bytearray, names: FieldNames) -> None:
        pairs = self.fields
        assert pairs is not None
        name_column = pairs.names
        value_column = pairs.values
        spans = self.spans
        step = self.step
        known = names.texts if name_column.kind == _STRING else names.names
        shadowed = names.shadowed
        number = pairs.count
        for place in range(names.count):
            if shadowed[place] and not self.keep_all:
                continue
            name_column.put_bytes(number, known[place])
            span = place * step + step - 1
            if not value_column.put(
                number, buffer, memory.span_start(spans, span), memory.span_size(spans, span)
            ):
                value_column.put_null(number)
                self._note_failure(buffer, names, place)
            number += 1
        pairs.count = number
        pairs.end_row(row, False)

    def _note_failure(self, buffer: bytearray, names: FieldNames, place: int) -> None:
        span = place * self.step + self.step - 1
        start = memory.span_start(self.spans, span)
        size = memory.span_size(self.spans, span)
        if size == _AS_INTEGER:
            text = memory.format_int(listpack.get_int(buffer, start))
        else:
            text = memory.cut(buffer, start, size)
        self._failures[names.texts[place]] = escaped(text)

    def _settle_failures(self, row: int, ms: int, seq: int) -> None:
        """Count and show the values of this row that did not fit, or raise."""
        failures = self._failures
        self._failures = {}
        if self.fail_on_error:
            raise self._refusal(ms, seq, failures)
        self.values_failed += len(failures)
        pairs = self.corrupt
        if pairs is not None:
            for name, text in failures.items():
                pairs.names.put_bytes(pairs.count, name)
                pairs.values.put_bytes(pairs.count, text)
                pairs.count += 1
            pairs.end_row(row, False)

    def _refusal(self, ms: int, seq: int, failures: dict[bytes, bytes]) -> UnreadableValue:
        name, text = next(iter(failures.items()))
        shown = text[:_SHOWN_BYTES_MAX].decode("utf-8", "replace")
        more = "..." if len(text) > _SHOWN_BYTES_MAX else ""
        return UnreadableValue(
            f"stream {self._stream_text.decode()}, entry {memory.format_pair(ms, seq).decode()}: the field"
            f" {name.decode()} is {shown!r}{more}, which does not fit the type of its column"
        )


def escaped(text: bytes) -> bytes:
    """The text as valid UTF-8: other bytes become \\x and two digits."""
    return text.decode("utf-8", "backslashreplace").encode()
