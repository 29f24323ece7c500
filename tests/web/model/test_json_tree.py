"""JSON values as HTML trees."""

from __future__ import annotations

import html
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.web.model.json_tree import LEAVES_MAX, OPEN_DEPTH, json_tree_or_none


def test_a_tree_shows_names_sizes_and_values() -> None:
    tree = json_tree_or_none(b'{"a": {"b": [1, null, true]}, "a": 9007199254740993, "c": {}}')
    assert tree is not None
    text = html.unescape(re.sub(r"<[^>]+>", "|", tree))
    wanted = (
        '"a"',
        "{1}",
        '"b"',
        "[3]",
        "1",
        "null",
        "true",
        '"a"',
        "9007199254740993",
        '"c"',
        "{}",
    )
    at = 0
    for word in wanted:
        at = text.index(word, at)
    assert tree.count("<details open>") == OPEN_DEPTH


@given(st.text())
def test_text_is_escaped(text: str) -> None:
    tree = json_tree_or_none(json.dumps({text: text}).encode())
    assert tree is not None
    assert set(re.findall(r"<\w+", tree)) <= {"<div", "<details", "<summary", "<span"}


@pytest.mark.parametrize(
    "value",
    [b"1", b"plain", b"{", b'"text"', b"[" * 100_000, json.dumps([1] * LEAVES_MAX).encode()],
)
def test_other_values_and_large_ones_have_no_tree(value: bytes) -> None:
    assert json_tree_or_none(value) is None
