"""Wrong query parameters: the page is shown and reports them."""

from __future__ import annotations

import pytest

from penstock.core.stream_id import SMALLEST, StreamID
from penstock.web.http.address import QueryReader
from penstock.web.model.stream_page import NEWEST, Reading


@pytest.mark.parametrize(
    ("text", "number"), [("", 1), ("7", 7), ("x", 1), ("-1", 1), ("٣", 1), ("9" * 30, 1)]
)
def test_an_invalid_number_is_the_default(text: str, number: int) -> None:
    words = QueryReader()
    assert words.number("page", text, 1) == number
    assert bool(words.problems) == (text not in ("", "7"))


def test_each_wrong_parameter_has_one_sentence() -> None:
    words = QueryReader()
    words.number("page", "x\x1b[0m", 1)
    words.one_of("sort", "-colour", ("name", "length"), "name")
    assert words.problems == [
        "page=x\\x1b[0m in the URL is not a number.",
        "sort=-colour in the URL is not one of name, length.",
    ]
    assert words.one_of("sort", "-length", ("name", "length"), "name") == "-length"


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("", NEWEST),
        ("5-1", Reading(StreamID(5, 1), rising=True)),
        ("-5-1", Reading(StreamID(5, 1), rising=False)),
        ("--5-1", NEWEST),
        ("yesterday", NEWEST),
        ("\ud800", NEWEST),
    ],
)
def test_a_position_is_an_id_and_a_direction(text: str, reading: Reading) -> None:
    assert QueryReader().reading("at", text) == reading


def test_an_invalid_id_is_the_start() -> None:
    words = QueryReader()
    assert words.identifier("at", "") == SMALLEST
    assert words.problems == []
    assert words.identifier("at", "5") == StreamID(5, 0)
    assert words.identifier("at", "5-") == SMALLEST
    assert words.problems == ["at=5- in the URL is not an id."]


def test_a_missing_name_differs_from_an_empty_name() -> None:
    words = QueryReader()
    assert words.name("") == b""
    assert words.has_name
    assert words.name(None) == b""
    assert not words.has_name
