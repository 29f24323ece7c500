"""The annotated hexdump: one line per element, with the terms of docs/formats.

    offset  bytes                    what            value         stored as
        12  84|74 65 6d 70|05        name            "temp"        string, 6 bits of length

Bars separate encoding, content and backlen; on a terminal these also differ in colour. A long element takes
several lines. Values are made harmless and shortened; bytes are always complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from penstock.human.show import fields_text, harmless, time_or_none
from penstock.inspect.node_map import MappedEntry, NodeMap, flags_text
from penstock.inspect.segments import NO_ELEMENT, NO_ENTRY, Role, Segment, SegmentKind

BYTES_A_LINE = 8
HEX_WIDTH = 3 * BYTES_A_LINE - 1
VALUE_CHARACTERS_MAX = 60
_INDENT = " " * 8

_LABELS = {
    Role.HEADER_FIELDS: "fields",
    Role.HEADER_NAME: "name",
    Role.HEADER_END: "end of the header",
}
_STYLES = {
    Role.NONE: "cyan",
    Role.HEADER_LIVE: "blue",
    Role.HEADER_DELETED: "blue",
    Role.HEADER_FIELDS: "blue",
    Role.HEADER_NAME: "green",
    Role.HEADER_END: "blue",
    Role.FLAGS: "yellow",
    Role.MS: "magenta",
    Role.SEQ: "magenta",
    Role.FIELDS: "blue",
    Role.NAME: "green",
    Role.VALUE: "default",
    Role.PIECES: "cyan",
}
_WEIGHTS = {SegmentKind.CONTENT: "bold", SegmentKind.BACKLEN: "dim"}
_DAMAGE_STYLE = "bold red"
_TOMBSTONE_STYLE = "dim red"


@dataclass(frozen=True, slots=True)
class _DumpLine:
    """The segments of one element, or a single segment outside of elements."""

    segments: Sequence[Segment]
    style: str

    @property
    def damage_or_none(self) -> str | None:
        for segment in self.segments:
            if segment.kind is SegmentKind.DAMAGE:
                return segment.label
        return None


def listpack_lines(data: bytes, segments: Sequence[Segment]) -> Iterator[Text]:
    """The lines of a listpack that is not known to be a stream node."""
    for row in _rows(segments, ()):
        yield from _row_lines(data, row)


def node_lines(data: bytes, node: NodeMap) -> Iterator[Text]:
    """The lines of a stream node, entry by entry."""
    entry = NO_ENTRY
    for row in _rows(node.segments, node.entries):
        first = row.segments[0]
        if first.entry not in (entry, NO_ENTRY):
            entry = first.entry
            if entry < len(node.entries):
                yield _entry_heading(entry + 1, node.entries[entry])
        yield from _row_lines(data, row)


def _entry_heading(number: int, entry: MappedEntry) -> Text:
    remarks = []
    moment = time_or_none(entry.id.ms)
    if moment:
        remarks.append(moment)
    if entry.deleted:
        remarks.append("tombstone")
    if not entry.rises:
        remarks.append("id is not larger than the one before")
    if not entry.whole:
        remarks.append("cut off by damage")
    line = Text().append(f"{_INDENT}entry {number}  ", "dim")
    line.append(str(entry.id), _TOMBSTONE_STYLE if entry.deleted else "bold")
    line.append(f"  {', '.join(remarks)}" if remarks else "")
    fields = fields_text(entry.fields)
    if fields:
        line.append(f"  {_cut(fields)}", "dim")
    return line


def _rows(segments: Iterable[Segment], entries: Sequence[MappedEntry]) -> Iterator[_DumpLine]:
    together: list[Segment] = []
    for segment in segments:
        if together and (segment.element == NO_ELEMENT or segment.element != together[-1].element):
            yield _row(together, entries)
            together = []
        together.append(segment)
    if together:
        yield _row(together, entries)


def _row(segments: list[Segment], entries: Sequence[MappedEntry]) -> _DumpLine:
    first = segments[0]
    style = _STYLES[first.role]
    if 0 <= first.entry < len(entries) and entries[first.entry].deleted:
        style = _TOMBSTONE_STYLE
    return _DumpLine(list(segments), style)


def _row_lines(data: bytes, row: _DumpLine) -> Iterator[Text]:
    """The line of a row, and further lines if it has many bytes."""
    line, width, count = _begin(row.segments[0].offset), 0, 0
    is_first = True
    for segment in row.segments:
        style = _segment_style(segment, row.style)
        for at in range(segment.offset, segment.offset + segment.length):
            if count == BYTES_A_LINE:
                yield _annotated(line, width, row) if is_first else line
                line, width, count, is_first = _begin(at), 0, 0, False
            if count:
                line.append("|" if at == segment.offset else " ", "dim")
            line.append(f"{data[at]:02x}", style)
            count += 1
            width = 3 * count - 1
    yield _annotated(line, width, row) if is_first else line


def _begin(offset: int) -> Text:
    return Text().append(f"{offset:>6}  ", "dim")


def _segment_style(segment: Segment, style: str) -> str:
    if segment.kind is SegmentKind.DAMAGE:
        return _DAMAGE_STYLE
    return f"{style} {_WEIGHTS.get(segment.kind, '')}".rstrip()


def _annotated(line: Text, width: int, row: _DumpLine) -> Text:
    line.append(" " * (HEX_WIDTH - width + 2))
    damage = row.damage_or_none
    if damage is not None:
        return line.append(f"DAMAGE: {damage}", _DAMAGE_STYLE)
    first = row.segments[0]
    if first.element == NO_ELEMENT:
        value = "" if first.value is None else str(first.value)
        return _right_stripped(line.append(f"{first.label:<18}{value}"))
    label = _LABELS.get(first.role) or str(first.role) or "element"
    line.append(f"{label:<18}")
    line.append(f"{_value_text(row.segments):<14}", row.style)
    return line.append(f"  {first.label}", "dim")


def _right_stripped(line: Text) -> Text:
    line.rstrip()
    return line


def _value_text(segments: Sequence[Segment]) -> str:
    """The value of an element: a number, or the content of a string, which may be empty."""
    first = segments[0]
    content = next((s.value for s in segments if s.kind is SegmentKind.CONTENT), None)
    value = first.value if content is None else content
    if isinstance(value, bytes):
        return _string_text(value)
    if first.label.startswith("string"):
        return '""'
    assert value is not None
    if first.role is Role.FLAGS:
        return flags_text(value)
    return f"{value:+}" if first.role in (Role.MS, Role.SEQ) else str(value)


def _string_text(value: bytes) -> str:
    text = _cut(harmless(value[: 4 * VALUE_CHARACTERS_MAX]).replace('"', '\\"'))
    cut = len(value) > 4 * VALUE_CHARACTERS_MAX or text.endswith("...")
    return f'"{text}" ({len(value)} bytes)' if cut else f'"{text}"'


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_CHARACTERS_MAX else text[:VALUE_CHARACTERS_MAX] + "..."
