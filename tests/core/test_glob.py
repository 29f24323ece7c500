"""Glob patterns: the semantics of Redis 7.0, at a cost that is linear in the name."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from penstock.core.glob import SEARCHED_TOKENS_MAX, Glob, matches
from tests.support.builds import ROOT
from tests.support.campaign import cases, seed
from tests.support.engine import dumb_glob
from tests.support.engine.engines import Bench

SOURCE = ROOT / "src" / "penstock" / "core" / "glob.py"


@pytest.mark.parametrize(
    ("pattern", "name", "wanted"),
    [
        (b"", b"", True),
        (b"", b"a", False),
        (b"a", b"", False),
        (b"*", b"a", True),
        (b"*", b"", False),  # KEYS and SCAN handle a lone star before they call glob
        (b"**", b"", False),
        (b"a*", b"a", True),
        (b"a**", b"a", True),
        (b"*a", b"a", True),
        (b"a*a", b"a", False),
        (b"a*b*c", b"abbc", True),
        (b"a*bc*c", b"abc", False),
        (b"*ab*ab*", b"aab", False),
        (b"?", b"", False),
        (b"*?", b"a", True),
        (b"[abc]", b"b", True),
        (b"[^abc]", b"b", False),
        (b"[c-a]", b"b", True),
        (b"[a-c", b"b", True),
        (b"[a-", b"-", True),
        (b"[a-]", b"]", True),  # a range from ] to a, never closed
        (b"[a-]", b"-", False),
        (b"[", b"[", False),
        (b"[", b"a", False),
        (b"[^", b"a", True),
        (b"[^", b"", False),
        (b"[]", b"]", False),
        (b"[]a]", b"a]", False),
        (b"[^]", b"a", True),
        (b"[^]a]", b"xa]", True),
        (b"[\\]]", b"]", True),
        (b"[\\]", b"]", True),
        (b"[a\\", b"\\", True),
        (b"[\\a-c]", b"b", False),
        (b"[\\a-c]", b"-", True),
        (b"[!a]", b"!", True),
        (b"[*]", b"*", True),
        (b"[*]", b"a", False),
        (b"\\*", b"*", True),
        (b"\\*", b"a", False),
        (b"a\\", b"a\\", True),
        (b"\\", b"\\", True),
        (b"\\\\", b"\\", True),
        (b"*\\", b"x\\", True),
        (b"[\x70-\x90]", b"\x10", True),  # signed: from -112 to 112
        (b"[\x70-\x90]", b"\xf0", True),
        (b"[\x70-\x90]", b"\x80", False),
        (b"a\0*", b"a\0b", True),
    ],
)
def test_a_pattern_means_what_it_means_in_redis(pattern: bytes, name: bytes, wanted: bool) -> None:
    assert matches(pattern, name) is wanted
    assert dumb_glob.matches(pattern, name) is wanted


@pytest.mark.parametrize(
    ("pattern", "name", "wanted"),
    [
        (b"MAX*", b"maxmemory", True),
        (b"max\\Memory", b"maxmemory", True),
        (b"[A-C]", b"b", True),
        (b"[a-c]", b"B", True),
        (b"[Z-a]", b"z", False),  # from z to a, after the ends were swapped
        (b"[M]", b"m", True),
        (b"[\\M]", b"m", False),
        (b"[\\M]", b"M", True),
        (b"[^m]", b"M", False),
        (b"[@-[]", b"q", False),
        (b"[@-[]", b"Z", False),  # its lower case is not between @ and [
        (b"[@-z]", b"Z", True),
        (b"*X*", b"axb", True),
    ],
)
def test_case_is_ignored_as_in_redis(pattern: bytes, name: bytes, wanted: bool) -> None:
    assert matches(pattern, name, ignore_case=True) is wanted
    assert dumb_glob.matches(pattern, name, ignore_case=True) is wanted


def test_a_thousand_stars_match_and_one_more_matches_nothing() -> None:
    name = b"a" * 3000
    for pattern, wanted in ((b"*a" * 1000, True), (b"*a" * 1001, False), (b"*a" * 5000, False)):
        assert matches(pattern, name) is wanted
        assert matches(pattern + b"*", name) is wanted


def _random_bytes(dice: random.Random, letters: bytes, most: int) -> bytes:
    return bytes(dice.choices(letters, k=dice.randint(0, most)))


@pytest.mark.parametrize("ignore_case", [False, True])
@pytest.mark.parametrize("letters", [b"ab", b"aAbBzZ", b"\x00\x10\x7f\x80\x90\xff"])
def test_random_patterns_agree_with_the_dumb_matcher(letters: bytes, ignore_case: bool) -> None:
    start = seed()
    dice = random.Random(start)
    for _ in range(cases(100_000)):
        pattern = _random_bytes(dice, letters * 2 + b"***???[[]]\\^--", 12)
        glob = Glob(pattern, ignore_case)
        for _ in range(3):
            name = _random_bytes(dice, letters + b"]-\\^", 8)
            wanted = dumb_glob.matches(pattern, name, ignore_case)
            assert glob.matches(name) is wanted, (start, pattern, name)


def test_long_stretches_agree_with_the_dumb_matcher() -> None:
    """Names and patterns that are long enough for the search of all positions at once."""
    start = seed()
    dice = random.Random(start)
    found = 0
    for _ in range(cases(3000)):
        tokens = dice.choices([b"a", b"a", b"b", b"?", b"[ab]", b"[^b]"], k=dice.randint(17, 90))
        pattern = b"*" + b"".join(tokens) + dice.choice((b"*", b"*b", b"*?*a"))
        piece = b"".join(_taken(dice, token) for token in tokens)
        left, right = (bytes(dice.choices(b"ab", k=dice.randint(0, 150))) for _ in "lr")
        name = left + piece[: dice.choice((len(piece), len(piece) - 1))] + right
        wanted = dumb_glob.matches(pattern, name)
        found += wanted
        assert matches(pattern, name) is wanted, (start, pattern, name)
    assert found


def _taken(dice: random.Random, token: bytes) -> bytes:
    return {b"b": b"b", b"?": dice.choice((b"a", b"b")), b"[ab]": b"b"}.get(token, b"a")


def test_tokens_behind_the_table_count() -> None:
    stretch = b"a?" * (SEARCHED_TOKENS_MAX // 2) + b"b?c"
    name = b"a" * 1000 + b"a" * SEARCHED_TOKENS_MAX + b"bxc" + b"a" * 1000
    assert matches(b"*" + stretch + b"*", name)
    assert not matches(b"*" + stretch + b"c*", name)


# --- Cost ------------------------------------------------------------------------------------------

NAME_BYTES = 20_000
STEPS_A_BYTE_MAX = 150


def _steps(work: Callable[[], object]) -> int:
    """The number of lines of glob.py that a call runs."""
    count = 0

    def line(_frame: FrameType, event: str, _what: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: FrameType, _event: str, _what: Any) -> Any:
        return line if Path(frame.f_code.co_filename) == SOURCE else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _interpreted() -> Any:
    """The interpreted module: lines can be counted only there. The compiled one has the same source."""
    spec = importlib.util.spec_from_file_location("interpreted_glob", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "pattern",
    [
        b"*" + b"a" * 1000 + b"b",
        b"*" + b"a" * 1000 + b"b*",
        b"*" + b"a?" * 500 + b"b*",
        b"*" + b"[ab]" * 250 + b"c*",
        b"*" + b"[^b]?a" * 180 + b"b*",
        b"*" + b"a?" * 7 + b"b*",
        b"*a" * 500 + b"*b",
        b"*a?" * 300 + b"*b?*",
        (b"*" + b"a?" * 20) * 20 + b"*b?*",
        b"[" + b"ab" * 500 + b"]*b",
        b"?" * 1000 + b"*b",
    ],
)
def test_a_long_name_costs_a_bounded_number_of_steps_a_byte(pattern: bytes) -> None:
    glob = _interpreted().Glob(pattern)
    name = b"a" * NAME_BYTES
    results = []
    steps = _steps(lambda: results.append(glob.matches(name)))
    assert results == [False]
    assert steps <= STEPS_A_BYTE_MAX * NAME_BYTES, steps / NAME_BYTES


def test_a_pattern_is_parsed_in_a_bounded_number_of_steps_a_byte() -> None:
    module = _interpreted()
    for piece in (b"*", b"a*", b"?", b"[", b"[^", b"[a", b"[a-", b"[a]", b"a-", b"\\", b"[a-b]*"):
        pattern = piece * 3000
        steps = _steps(lambda pattern=pattern: module.Glob(pattern, True))  # type: ignore[misc]
        assert steps <= STEPS_A_BYTE_MAX * len(pattern), piece


def test_keys_parses_its_pattern_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    for number in range(5):
        bench.ask(f"SET k{number} v")
    made: list[bytes] = []

    def counted(pattern: bytes) -> Glob:
        made.append(pattern)
        return Glob(pattern)

    monkeypatch.setattr("penstock.engine.commands.scan.Glob", counted)
    assert bench.ask("KEYS k[1-2]") == [b"k1", b"k2"]
    assert made == [b"k[1-2]"]
