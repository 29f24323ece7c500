"""Names in URLs."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.web.http.names import link, name_text, parse_name


@given(st.binary())
def test_a_name_survives_a_url(name: bytes) -> None:
    assert parse_name(name_text(name)) == name


@given(st.binary(min_size=1))
def test_a_link_carries_the_name(name: bytes) -> None:
    address = link("stream", name, at="1-0")
    assert address.isascii()
    query = parse_qs(urlsplit(address).query, keep_blank_values=True)
    assert parse_name(query["name"][0]) == name
    assert query["at"] == ["1-0"]


@pytest.mark.parametrize(
    ("name", "text"), [(b"orders", "orders"), (b"\xff", "\\xff"), (b"\\xff", "\\\\xff")]
)
def test_bytes_that_are_not_text_are_escaped(name: bytes, text: str) -> None:
    assert name_text(name) == text


def test_missing_parameters_are_left_out() -> None:
    assert link("streams", search="", page=None) == "streams"
