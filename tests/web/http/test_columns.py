"""Chosen columns in a cookie."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.web.http.columns import (
    COLUMNS_MAX,
    COOKIE_CHARACTERS_MAX,
    encode_choices,
    parse_choices,
)


@given(st.binary(), st.lists(st.binary(max_size=8), min_size=1, max_size=5))
def test_a_choice_is_remembered_byte_for_byte(stream: bytes, chosen: list[bytes]) -> None:
    cookie = encode_choices({b"other": [b"a"]}, stream, chosen)
    assert parse_choices(cookie)[stream] == chosen
    assert not set(cookie) & set("'\\;, \"")


def test_no_choice_forgets_the_stream() -> None:
    assert parse_choices(encode_choices({b"s": [b"a"], b"t": [b"b"]}, b"s", [])) == {b"t": [b"b"]}


def test_the_oldest_choices_are_dropped() -> None:
    choices: dict[bytes, list[bytes]] = {}
    for number in range(100):
        cookie = encode_choices(choices, b"stream-%d" % number, [b"a long name of a field"])
        choices = parse_choices(cookie)
        assert len(cookie) <= COOKIE_CHARACTERS_MAX
    assert b"stream-99" in choices
    assert b"stream-0" not in choices
    assert encode_choices({}, b"s", [b"x" * 9000]) == "%7B%7D"


@pytest.mark.parametrize("cookie", [None, "", "{", "[1]", "%7B", "[" * 100_000, '{"s": 1}'])
def test_another_cookie_counts_as_empty(cookie: str | None) -> None:
    assert parse_choices(cookie) == {}


def test_a_cookie_has_limited_columns() -> None:
    cookie = '{"s": [' + ",".join(['"a"'] * 100) + ", 7, null]}"
    assert len(parse_choices(cookie)[b"s"]) == COLUMNS_MAX
