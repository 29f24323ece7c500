"""LSET, LINSERT, LPOS: replies, errors and their order. Events are in test_lists."""

from __future__ import annotations

import pytest

from penstock.core.check import check_list
from penstock.core.list_value import ListValue
from penstock.engine.commands import lists
from tests.support.engine.engines import NOT_A_NUMBER, SYNTAX, WRONG_TYPE, Bench
from tests.support.servers.raw_redis import Refusal

NO_KEY = Refusal("ERR no such key")
NO_INDEX = Refusal("ERR index out of range")
TOO_LARGE = Refusal("ERR Elements are too large to be stored")
NEGATIVE_COUNT = "ERR COUNT can't be negative"
NEGATIVE_MAXLEN = "ERR MAXLEN can't be negative"
NO_RANK = (
    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
    "or use negative to start from the end of the list"
)
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
RANK_OUT_OF_RANGE = f"ERR value is out of range, value must between {-INT64_MAX} and {INT64_MAX}"


@pytest.fixture
def bench() -> Bench:
    """A list l of a b c a."""
    bench = Bench()
    bench.ask("RPUSH l a b c a")
    return bench


def elements(bench: Bench) -> bytes:
    """The elements of l, joined."""
    value = bench.engine.context.keyspace.find(b"l")
    assert isinstance(value, ListValue)
    check_list(value, bench.engine.list_limits, edited=True)
    return b"".join(value.range(0, value.length - 1))


# --- LSET -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "after"), [(0, b"xbca"), (3, b"abcx"), (-1, b"abcx"), (-4, b"xbca"), (-2, b"abxa")]
)
def test_an_element_is_replaced_by_its_index(bench: Bench, index: int, after: bytes) -> None:
    assert bench.run("LSET", "l", index, "x") == "OK"
    assert elements(bench) == after


@pytest.mark.parametrize("index", [4, -5, INT64_MAX, INT64_MIN, 2**32, -(2**32), 2**32 - 1])
def test_an_index_outside_of_the_list_is_refused(bench: Bench, index: int) -> None:
    """Redis 7.2 and later use the low 32 bits of it in a small list."""
    assert bench.run("LSET", "l", index, "x") == NO_INDEX
    assert elements(bench) == b"abca"


def test_the_key_is_checked_before_the_index(bench: Bench) -> None:
    assert bench.ask("LSET new x y") == NO_KEY
    assert bench.ask("LSET string x y") == Refusal(WRONG_TYPE)
    for index in ("x", "1.0", "+1", "01", str(2**63)):
        assert bench.ask(f"LSET l {index} y") == Refusal(NOT_A_NUMBER)


# --- LINSERT --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "after"),
    [
        ("BEFORE a x", b"xabca"),
        ("after a x", b"axbca"),
        ("Before c x", b"abxca"),
        ("AFTER c x", b"abcxa"),
        ("AFTER b a", b"abaca"),
    ],
)
def test_an_element_is_added_beside_the_first_match(bench: Bench, words: str, after: bytes) -> None:
    assert bench.ask(f"LINSERT l {words}") == 5
    assert elements(bench) == after


def test_without_the_pivot_nothing_is_added(bench: Bench) -> None:
    assert bench.ask("LINSERT l BEFORE x y") == -1
    assert bench.ask("LINSERT new BEFORE x y") == 0
    assert elements(bench) == b"abca"
    assert bench.ask("EXISTS new") == 0


def test_the_side_is_checked_before_the_key(bench: Bench) -> None:
    assert bench.ask("LINSERT string BESIDE a x") == Refusal(SYNTAX)
    assert bench.ask("LINSERT new BESIDE a x") == Refusal(SYNTAX)
    assert bench.ask("LINSERT string AFTER a x") == Refusal(WRONG_TYPE)


def test_an_element_that_no_push_accepts_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "PUSH_BYTES_MAX", 3)
    assert bench.ask("LSET l 0 1234") == bench.ask("LINSERT l BEFORE a 1234") == TOO_LARGE
    assert elements(bench) == b"abca"
    assert bench.ask("LSET l 0 123") == "OK"


# --- LPOS -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("", 0),
        ("RANK 2", 3),
        ("RANK -1", 3),
        ("RANK -2", 0),
        ("RANK 3", None),
        ("RANK -3", None),
        (f"RANK {INT64_MAX}", None),
        (f"RANK {-INT64_MAX}", None),
        ("MAXLEN 1", 0),
        ("RANK 2 MAXLEN 3", None),
        ("RANK 2 MAXLEN 4", 3),
        ("RANK -2 MAXLEN 3", None),
        (f"MAXLEN {INT64_MAX}", 0),
        ("COUNT 0", [0, 3]),
        ("COUNT 1", [0]),
        ("COUNT 2 RANK -1", [3, 0]),
        ("COUNT 0 RANK 2", [3]),
        ("COUNT 0 RANK 3", []),
        ("count 9 maxlen 3", [0]),
        (f"COUNT {INT64_MAX} MAXLEN 0", [0, 3]),
        ("RANK 1 RANK 2", 3),
        ("COUNT 1 MAXLEN 1 COUNT 0 MAXLEN 0", [0, 3]),
    ],
)
def test_matches_are_found_by_rank_count_and_length(
    bench: Bench, options: str, found: object
) -> None:
    assert bench.ask(f"LPOS l a {options}") == found


def test_nothing_found_is_a_null_or_with_a_count_an_empty_array(bench: Bench) -> None:
    for key in ("l", "new"):
        assert bench.ask(f"LPOS {key} x") is None
        assert bench.ask(f"LPOS {key} x COUNT 1") == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("RANK", SYNTAX),
        ("FOO", SYNTAX),
        ("FOO 1", SYNTAX),
        ("RANK 1 COUNT", SYNTAX),
        ("RANK 0", NO_RANK),
        ("RANK x", NOT_A_NUMBER),
        (f"RANK {2**63}", NOT_A_NUMBER),
        (f"RANK {INT64_MIN}", RANK_OUT_OF_RANGE),
        ("COUNT -1", NEGATIVE_COUNT),
        ("COUNT x", NEGATIVE_COUNT),
        ("MAXLEN -1", NEGATIVE_MAXLEN),
        (f"MAXLEN {2**63}", NEGATIVE_MAXLEN),
        ("RANK 0 COUNT", NO_RANK),
        ("COUNT -1 RANK 0", NEGATIVE_COUNT),
    ],
)
def test_options_are_checked_in_order_before_the_key(bench: Bench, options: str, text: str) -> None:
    for key in ("l", "new", "string"):
        assert bench.ask(f"LPOS {key} a {options}") == Refusal(text)
