"""An entry as a line."""

from __future__ import annotations

import json

import pytest
import typer

from penstock.cli.terminal.entries import StreamEntry
from penstock.cli.terminal.entry_line import coloured_entry, entry_text, json_entry, parse_format
from penstock.core.stream_id import LARGEST, StreamID

ENTRY = StreamEntry(
    b"orders", StreamID(1000, 2), [(b"sku", b"A1"), (b"note", b"x\x1b[0m"), (b"sku", b"B")]
)


@pytest.mark.parametrize(
    ("format_", "line"),
    [
        ("{stream} {id}", "orders 1000-2"),
        ("{ms}:{seq} {time}", "1000:2 1970-01-01T00:00:01.000Z"),
        ("{fields}", "sku=A1 note=x\\x1b[0m sku=B"),
        ("{json}", '{"sku":"A1","note":"x\\u001b[0m","sku":"B"}'),
        ("{field[sku]}", "B"),
        ("<{field[none]}>", "<>"),
        ("{field[note]}", "x\\x1b[0m"),
        ("{{{id}}} \\t\\n\\\\", "{1000-2} \t\n\\"),
        ("[red]{id}[/]", "[red]1000-2[/]"),
        ("", ""),
    ],
)
def test_a_format_fills_in_its_placeholders(format_: str, line: str) -> None:
    assert parse_format(format_)(ENTRY) == line


@pytest.mark.parametrize(
    "format_",
    ["{", "}", "{}", "{nope}", "{id!r}", "{id:>9}", "{id.__class__}", "{fields[0]}", "{field[a}"],
)
def test_a_format_gives_no_access_to_attributes(format_: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_format(format_)


def test_inserted_values_are_not_parsed_as_a_format() -> None:
    entry = StreamEntry(b"s", StreamID(1, 0), [(b"a", b"{id}{{\\n")])
    assert parse_format("{field[a]}")(entry) == "{id}{{\\n"


def test_json_has_base64_of_values_that_are_not_utf8() -> None:
    line = json_entry(StreamEntry(b"\xff", LARGEST, [(b"a", b"\xff"), (b"b", b"ok")]))
    assert json.loads(line) == {
        "stream": "\\xff",
        "id": "18446744073709551615-18446744073709551615",
        "time": None,
        "fields": {"a": "\\xff", "b": "ok"},
        "base64": {"a": "/w=="},
    }


@pytest.mark.parametrize("with_stream", [False, True])
def test_the_terminal_shows_the_same_text(with_stream: bool) -> None:
    text = entry_text(ENTRY, with_stream)
    assert coloured_entry(ENTRY, with_stream).plain == text
    assert text.startswith("orders  ") is with_stream
