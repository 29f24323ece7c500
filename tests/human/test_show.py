"""Formatting of data for a terminal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.human.show import (
    TIME_MS_MAX,
    age_text,
    binary_fields,
    counted,
    duration_text,
    fields_text,
    harmless,
    json_fields,
    json_line,
    size_text,
    time_or_none,
    time_text,
)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"plain", "plain"),
        ("größe ✓".encode(), "größe ✓"),
        (b"\xff\x00A", "\\xff\\x00A"),
        (b"\x1b]0;evil\x07", "\\x1b]0;evil\\x07"),
        ("\x9b31m".encode(), "\\x9b31m"),
        (b"two\r\nlines\t", "two\\r\\nlines\\t"),
        ("\u202etxt.exe\u2066".encode(), "\\u202etxt.exe\\u2066"),
        ("a\u2028b\ufeff".encode(), "a\\u2028b\\ufeff"),
        (b"[red]x[/]", "[red]x[/]"),
        (b"C:\\new", "C:\\new"),
        ("\udcff", "\\udcff"),
    ],
)
def test_harmless_escapes_characters_that_cannot_be_printed(data: bytes | str, shown: str) -> None:
    assert harmless(data) == shown


@given(st.binary())
def test_no_control_character_survives(data: bytes) -> None:
    for text in (harmless(data), fields_text([(data, data)]), json_fields([(data, data)])):
        text.encode()
        assert not [character for character in text if ord(character) < 32]
        assert not [character for character in text if 0x7F <= ord(character) < 0xA0]


@given(st.lists(st.tuples(st.text(), st.text())))
def test_fields_that_are_text_come_back_from_json(fields: list[tuple[str, str]]) -> None:
    encoded = [
        (name.encode("utf-8", "replace"), value.encode("utf-8", "replace"))
        for name, value in fields
    ]
    expected = [(name.decode(), value.decode()) for name, value in encoded]
    line = json_fields(encoded)
    assert line.isascii()
    assert json.loads(line, object_pairs_hook=list) == expected


def test_values_with_blanks_are_quoted() -> None:
    fields = [(b"a", b"1"), (b"b", b"two words"), (b"c", b""), (b"d", b'"'), (b"e f", b"x=y")]
    assert fields_text(fields) == 'a=1 b="two words" c="" d="\\"" "e f"="x=y"'


def test_del_is_escaped_in_json() -> None:
    assert json_line({"a": "\x7f\x1b\x9b"}) == '{"a":"\\u007f\\u001b\\u009b"}'


def test_values_that_are_not_utf8_are_kept_in_base64() -> None:
    assert binary_fields([(b"a", b"\xff\xfe"), (b"b", b"text")]) == {"a": "//4="}


def test_times_are_utc_and_end_with_the_calendar() -> None:
    assert time_text(0) == "1970-01-01T00:00:00.000Z"
    assert time_text(1700000000123) == "2023-11-14T22:13:20.123Z"
    assert time_or_none(TIME_MS_MAX) == "9999-12-31T23:59:59.999Z"
    assert time_or_none(TIME_MS_MAX + 1) is None
    assert time_text(2**64 - 1) == "-"


@pytest.mark.parametrize(
    ("duration_ms", "shown"),
    [
        (0, "0ms"),
        (999, "999ms"),
        (1000, "1s"),
        (61_000, "1m 1s"),
        (3_600_000, "1h"),
        (3_601_000, "1h"),
        (90_061_000, "1d 1h"),
        (2**63, "106751991167d 7h"),
    ],
)
def test_a_duration_has_its_two_largest_units(duration_ms: int, shown: str) -> None:
    assert duration_text(duration_ms) == shown


def test_an_id_may_be_ahead_of_the_clock() -> None:
    assert age_text(1000, 3000) == "2s"
    assert age_text(3000, 1000) == "in 2s"


def test_sizes_have_units() -> None:
    assert [size_text(size) for size in (0, 1023, 1024, 3 << 20, 5 << 30, 7 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KB",
        "3.0 MB",
        "5.0 GB",
        "7.0 TB",
    ]


def test_one_of_something_is_not_many() -> None:
    assert counted(1, "entry") == "1 entry"
    assert counted(0, "entry") == "0 entries"
    assert counted(1234, "dead consumer") == "1,234 dead consumers"
