"""The query parameters of an export, and errors in them."""

from __future__ import annotations

import pytest

from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from penstock.errors import InvalidID
from penstock.web.refusal import Refused
from tests.web.conftest import NO_UI, Live

pytest.importorskip("nicegui", reason=NO_UI)
from penstock.web.pages.export import find_selection, parse_selection

NOW_MS = 100_000


@pytest.mark.parametrize(
    ("word", "start", "end"),
    [
        ("6", StreamID(6, 0), StreamID(6, MAX64)),
        ("6-0", StreamID(6, 0), StreamID(6, 0)),
        ("@6", StreamID(6, 0), StreamID(6, MAX64)),
        ("10s", StreamID(90_000, 0), StreamID(90_000, MAX64)),
        ("1970-01-01T00:00:01", StreamID(1000, 0), StreamID(1000, MAX64)),
    ],
)
def test_a_bound_without_a_sequence_number_includes_its_millisecond(
    word: str, start: StreamID, end: StreamID
) -> None:
    found = parse_selection({"name": "s", "start": word, "end": word}, NOW_MS)
    assert (found.start, found.end) == (start, end)


def test_without_bounds_the_whole_stream_is_exported() -> None:
    found = parse_selection({"name": "s"}, NOW_MS)
    assert (found.start, found.end) == (SMALLEST, LARGEST)


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"end": "soon"},
        {"ids": "1-0,x"},
        {"limit": "0"},
        {"limit": "-1"},
        {"limit": "abc"},
        {"limit": ""},
    ],
)
def test_invalid_parameters_are_refused_with_a_text(words: dict[str, str]) -> None:
    with pytest.raises((ValueError, InvalidID)) as caught:
        parse_selection(({"name": "s"} if words else {}) | words, NOW_MS)
    assert "literal" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"), [("word", "the key holds a string"), ("none", "there is no such key")]
)
@pytest.mark.parametrize("more", [{}, {"ids": "1-0"}])
def test_other_keys_are_not_exported(
    live: Live, name: str, said: str, more: dict[str, str]
) -> None:
    live.client.set("word", "x")
    with pytest.raises(Refused, match=said):
        live.ask(lambda server: find_selection(server, {"name": name} | more))


def test_formulas_are_defused_unless_they_are_kept() -> None:
    assert not parse_selection({"name": "s"}, NOW_MS).keeps_formulas
    assert parse_selection({"name": "s", "formulas": "keep"}, NOW_MS).keeps_formulas
    with pytest.raises(ValueError, match="defuse or keep"):
        parse_selection({"name": "s", "formulas": "yes"}, NOW_MS)
