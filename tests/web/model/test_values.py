"""Values formatted for a page."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.web.model.values import (
    HEX_BYTES_MAX,
    field_preview,
    hex_view,
    json_view_or_none,
    preview,
    value_text,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='ab<>"\\'), inner),
    max_leaves=20,
)


def test_a_preview_shows_json_without_escapes() -> None:
    fields = [(b"order", b"two words"), (b"body", b'{"a": {"b": [1, "x"]}}'), (b"list", b'["x"]')]
    assert preview(fields) == 'order="two words" body={"a": {"b": [1, "x"]}} list=["x"]'
    assert preview([(b"evil", b'{"a": "\x1b[2J"}')]) == 'evil={"a": "\\x1b[2J"}'


def test_a_field_has_all_its_values() -> None:
    fields = [(b"a", b"1"), (b"b", b"2"), (b"a", b"x" * 500)]
    assert field_preview(fields, b"b") == "2"
    assert field_preview(fields, b"c") == ""
    assert field_preview(fields, b"a").startswith("1, xxx")
    assert field_preview(fields, b"a").endswith(" ...")


@given(st.lists(JSON) | st.dictionaries(st.text(alphabet="abc"), JSON))
def test_a_json_view_is_equivalent(value: object) -> None:
    view = json_view_or_none(json.dumps(value).encode())
    assert view is not None
    assert json.loads(view) == value


def test_numbers_of_a_json_view_keep_every_digit() -> None:
    assert json_view_or_none(b'{"id": 9007199254740993, "x": 0.10000000000000000001}') == (
        '{\n  "id": 9007199254740993,\n  "x": 0.10000000000000000001\n}'
    )


def test_a_json_view_keeps_repeated_names() -> None:
    assert json_view_or_none(b'{"a": 1, "b": {}, "a": {"c": [], "c": 2}}') == (
        '{\n  "a": 1,\n  "b": {},\n  "a": {\n    "c": [],\n    "c": 2\n  }\n}'
    )


@pytest.mark.parametrize("value", [b"1", b"plain", b"{", b"[NaN]", b"\xff", b"[" * 100_000])
def test_other_values_have_no_json_view(value: bytes) -> None:
    assert json_view_or_none(value) is None


def test_a_hex_view_shows_offsets_bytes_and_ascii() -> None:
    assert hex_view(b"\x00\xffAB").split() == ["00000000", "00", "ff", "41", "42", "..AB"]
    assert hex_view(bytes(HEX_BYTES_MAX + 5)).endswith("... 5 more bytes")


def test_control_characters_are_escaped_and_lines_kept() -> None:
    assert value_text(b"a\x1b[31m\nb\xe2\x80\xae") == "a\\x1b[31m\nb\\u202e"


@given(st.lists(st.tuples(st.binary(), st.binary(max_size=1000)), max_size=50))
def test_a_preview_is_one_short_line(fields: list[tuple[bytes, bytes]]) -> None:
    text = preview(fields)
    assert len(text) <= 204
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", text)
