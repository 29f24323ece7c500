"""Input boxes lose nothing: unedited bytes are sent unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.web.changes import editing
from penstock.web.changes.editing import box_of


@given(st.binary(max_size=60) | st.text(max_size=30).map(str.encode), st.booleans())
def test_the_text_of_a_box_stands_for_its_bytes(data: bytes, one_line: bool) -> None:
    box = box_of(data, one_line)
    assert box.text is not None
    assert box.read(box.text) == data
    # Also after a letter is added.
    assert box.read(box.text + "z") == data + b"z"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"a": "x\\ny"}', '{"a": "x\\ny"}'),
        (b"two\nlines", "two\nlines"),
        ("grün".encode(), "grün"),
    ],
)
def test_plain_text_is_shown_unchanged(data: bytes, text: str) -> None:
    assert (box_of(data).text, box_of(data).escaped) == (text, False)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x00\xffA\\", "\\x00\\xffA\\\\"),
        (b"a\r\nb", "a\\x0d\\x0ab"),
        ("\u202e".encode(), "\\xe2\\x80\\xae"),
    ],
)
def test_bytes_that_a_box_would_lose_are_escaped(data: bytes, text: str) -> None:
    assert (box_of(data).text, box_of(data).escaped) == (text, True)


def test_the_name_of_a_field_is_one_line() -> None:
    assert box_of(b"a\nb", one_line=True).text == "a\\x0ab"


def test_a_value_too_long_for_a_box_is_sent_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editing, "BOX_BYTES_MAX", 3)
    box = box_of(b"long")
    assert box.text is None
    assert box.read("") == b"long"
