"""Filters on _stream, _id and _timestamp that a batch read takes from Spark.

A filter is used twice: to read fewer streams and shorter ranges of ids, and to drop the other rows of what
was read. Ranges may be too long, but never too short, so the second step decides.

`_id` is a string, so Spark compares it as text: '9-0' is greater than '10-0'. Among ids with the same number
of digits in their milliseconds, the order of texts is that of numbers. So a comparison becomes one span of
ids for each number of digits:

    _id >= '1700'      17, 18, 19 ... 99      170 ... 999      1700 ... 9999      17000 ... 99999      ...

Ids of today have 13 digits, so all spans but one are empty in most streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID, parse
from penstock.errors import InvalidID
from penstock.spark.source.planning import IdRange
from penstock.spark.source.schema import TIMESTAMP_MS_MAX

Span = tuple[StreamID, StreamID]  # the first and the last id
Spans = list[Span]  # in order, without overlaps

ALL: Spans = [(SMALLEST, LARGEST)]
POINTS_MAX = 100  # with more ids in a filter, one span covers them all

_DIGITS_MAX = len(str(MAX64))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMPARISONS: dict[type[Filter], Callable[[Any, Any], Any]] = {
    EqualTo: pc.equal,
    EqualNullSafe: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}
_VALUES = {"_stream": str, "_id": str, "_timestamp": datetime}


def takes(one: Filter) -> bool:
    """Whether a filter can be taken."""
    attribute: tuple[str, ...] = getattr(one, "attribute", ())
    kind = _VALUES.get(attribute[0]) if len(attribute) == 1 else None
    if kind is None:
        return False
    if isinstance(one, IsNotNull):
        return True
    if isinstance(one, In):
        return all(value is None or isinstance(value, kind) for value in one.value)
    if isinstance(one, StringStartsWith):
        return kind is str
    return type(one) in _COMPARISONS and isinstance(getattr(one, "value", None), kind)


def kept(batch: pa.RecordBatch, filters: Iterable[Filter]) -> pa.RecordBatch:
    """The rows of a batch that pass all filters."""
    for one in filters:
        batch = batch.filter(_mask(batch.column(_column(one)), one))
    return batch


def wants_stream(key: bytes, filters: Iterable[Filter]) -> bool:
    """Whether the rows of a stream pass the filters on `_stream`."""
    column = pa.array([key.decode("utf-8", "backslashreplace")], pa.string())
    return all(_mask(column, one)[0].as_py() for one in filters if _column(one) == "_stream")


def narrowed(whole: IdRange, filters: Iterable[Filter]) -> list[IdRange]:
    """The parts of a range that may have rows that pass the filters."""
    spans = ALL
    for one in filters:
        spans = _both(spans, spans_of(one))
    found = []
    for first, last in spans:
        starts_inside = first > whole.after and first.previous() > whole.after
        after = first.previous() if starts_inside else whole.after
        end = min(last, whole.end)
        if (after, end) == (whole.after, whole.end):
            return [whole]
        if after < end:
            found.append(IdRange(after, end, None if starts_inside else whole.n))
    return found


def spans_of(one: Filter) -> Spans:
    """The ids of all rows that can pass a filter, and perhaps of others."""
    column = _column(one)
    if column == "_stream":
        return ALL
    if isinstance(one, IsNotNull):
        return ALL if column == "_id" else [_span(0, TIMESTAMP_MS_MAX)]
    if isinstance(one, In):
        values = [value for value in one.value if value is not None]
        return _union([spans_of(EqualTo(one.attribute, value)) for value in values])
    if isinstance(one, StringStartsWith):
        return _spans_of_prefix(one.value)
    value = getattr(one, "value", None)
    if column == "_id":
        return _spans_of_text(type(one), str(value))
    assert isinstance(value, datetime)
    return _spans_of_moment(type(one), value)


def _column(one: Filter) -> str:
    return str(getattr(one, "attribute", ("",))[0])


def _mask(column: pa.Array, one: Filter) -> pa.Array:
    """Which values pass a filter; null counts as false."""
    if isinstance(one, IsNotNull):
        return pc.is_valid(column)
    if isinstance(one, In):
        values = [value for value in one.value if value is not None]
        return pc.is_in(column, value_set=pa.array(values, column.type))
    value = getattr(one, "value", None)
    if isinstance(one, StringStartsWith):
        return pc.fill_null(pc.starts_with(column, pattern=value), False)
    compare = _COMPARISONS[type(one)]
    return pc.fill_null(compare(column, pa.scalar(value, column.type)), False)


def _spans_of_moment(kind: type[Filter], value: datetime) -> Spans:
    us = (value - _EPOCH) // timedelta(microseconds=1)
    floor, ceiling = us // 1000, -(-us // 1000)
    low, high = {
        GreaterThan: (floor + 1, TIMESTAMP_MS_MAX),
        GreaterThanOrEqual: (ceiling, TIMESTAMP_MS_MAX),
        LessThan: (0, ceiling - 1),
        LessThanOrEqual: (0, floor),
    }.get(kind, (ceiling, floor))
    low = max(low, 0)
    return [_span(low, high)] if low <= high else []


def _spans_of_text(kind: type[Filter], text: str) -> Spans:
    if kind in (EqualTo, EqualNullSafe):
        try:
            one = parse(text.encode())
        except (InvalidID, UnicodeEncodeError):
            return []
        return [(one, one)] if str(one) == text else []
    found = []
    for digits in range(1, _DIGITS_MAX + 1):
        low, high = _numbers_with(digits)
        if kind in (GreaterThan, GreaterThanOrEqual):
            low = max(low, _smallest_from(text, digits))
        else:
            high = min(high, _largest_up_to(text, digits))
        if low <= high:
            found.append(_span(low, high))
    return _merged(found)


def _spans_of_prefix(text: str) -> Spans:
    head, dash, _ = text.partition("-")
    if not _is_number(head) and head:
        return []
    if dash:
        return _merged([_span(int(head), int(head))]) if head and int(head) <= MAX64 else []
    found = []
    for digits in range(max(len(head), 1), _DIGITS_MAX + 1):
        scale = 10 ** (digits - len(head))
        begin = int(head or 0) * scale
        low, high = _numbers_with(digits)
        low, high = max(low, begin), min(high, begin + scale - 1)
        if low <= high:
            found.append(_span(low, high))
    return _merged(found)


def _numbers_with(digits: int) -> tuple[int, int]:
    """The smallest and the largest number of milliseconds with this number of digits."""
    return (10 ** (digits - 1) if digits > 1 else 0), min(10**digits - 1, MAX64)


def _smallest_from(text: str, digits: int) -> int:
    """The smallest number with these digits such that NUMBER-... can be at or after a text."""
    head, other = _leading_digits(text[:digits])
    scale = int(10 ** (digits - len(head)))
    number = int(head or 0)
    # A character after the digits is before or after all digits, so also the number is.
    return (number + 1) * scale if other > "9" else number * scale


def _largest_up_to(text: str, digits: int) -> int:
    """The largest number with these digits such that NUMBER-... can be at or before a text."""
    head, other = _leading_digits(text[:digits])
    scale = int(10 ** (digits - len(head)))
    number = int(head or 0)
    if len(head) == digits:
        return number
    # The text ends here, or has a character before all digits: longer numbers come after it.
    return (number + 1) * scale - 1 if other > "9" else number * scale - 1


def _leading_digits(text: str) -> tuple[str, str]:
    """The digits at the start of a text, and the character after them, if any."""
    count = next((at for at, one in enumerate(text) if not "0" <= one <= "9"), len(text))
    return text[:count], text[count : count + 1]


def _is_number(text: str) -> bool:
    return bool(text) and _leading_digits(text)[0] == text


def _span(low_ms: int, high_ms: int) -> Span:
    return StreamID(low_ms, 0), StreamID(high_ms, MAX64)


def _merged(spans: Sequence[Span]) -> Spans:
    """The same ids in fewer spans, in order."""
    found: Spans = []
    for first, last in sorted(spans, key=lambda one: one[0]):
        if found and (found[-1][1] == LARGEST or first <= found[-1][1].next()):
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def _union(many: Sequence[Spans]) -> Spans:
    spans = _merged([one for spans in many for one in spans])
    return spans if len(spans) <= POINTS_MAX else [(spans[0][0], spans[-1][1])]


def _both(left: Spans, right: Spans) -> Spans:
    """The ids that are in both."""
    pairs = [(max(a[0], b[0]), min(a[1], b[1])) for a in left for b in right]
    return _merged([one for one in pairs if one[0] <= one[1]])
