"""XSETID on an engine."""

from __future__ import annotations

import pytest

from tests.support.engine.engines import (
    INVALID_ID,
    NO_SUCH_KEY,
    NOT_A_NUMBER,
    SYNTAX,
    WRONG_TYPE,
    Bench,
    assert_refused,
    grouped,
)
from tests.support.servers.raw_redis import Refusal

BELOW = "ERR The ID specified in XSETID is smaller than"
BELOW_PROVIDED = f"{BELOW} the provided max_deleted_entry_id"
BELOW_DELETED = f"{BELOW} current max_deleted_entry_id"
BELOW_TOP = f"{BELOW} the target stream top item"
TOO_FEW = "ERR The entries_added specified in XSETID is smaller than the target stream length"


@pytest.fixture
def bench() -> Bench:
    """Entries 1-0 to 3-0, the second deleted."""
    bench = grouped("1-0", "2-0", "3-0")
    bench.ask("XDEL s 2-0")
    return bench


def counters(bench: Bench) -> list[object]:
    """The last id, the largest deleted id, and the number of entries added."""
    found = bench.ask("XINFO STREAM s")
    return [found[7].decode(), found[9].decode(), found[11]]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("3", ["3-0", "2-0", 3]),
        ("9-9", ["9-9", "2-0", 3]),
        ("9 ENTRIESADDED 2", ["9-0", "2-0", 2]),
        ("9 ENTRIESADDED 9223372036854775807", ["9-0", "2-0", 2**63 - 1]),
        ("9 MAXDELETEDID 9", ["9-0", "9-0", 3]),
        ("9 MAXDELETEDID 1-0", ["9-0", "1-0", 3]),
        ("9 MAXDELETEDID 0-0", ["9-0", "2-0", 3]),
        ("9 maxdeletedid 4 EntriesAdded 5 maxdeletedid 5", ["9-0", "5-0", 5]),
    ],
)
def test_ids_and_counters_are_set_as_given(bench: Bench, words: str, found: list[object]) -> None:
    assert bench.ask(f"XSETID s {words}") == "OK"
    assert counters(bench) == found


def test_the_count_of_entries_added_stops_at_the_largest_number(bench: Bench) -> None:
    """In Redis 7 the count overflows into negative numbers."""
    bench.ask("XSETID s 9 ENTRIESADDED 9223372036854775806")
    assert [bench.ask(f"XADD s {n} k v") and counters(bench)[2] for n in (10, 11, 12)] == [
        *(2**63 - 1, 2**63 - 1, 2**63 - 1)
    ]


def test_the_next_entry_comes_behind_the_id_that_was_set(bench: Bench) -> None:
    bench.ask("XSETID s 5-5")
    assert bench.ask("XADD s 5-* k v") == b"5-6"


def test_an_empty_stream_may_go_back_to_an_id_that_it_had() -> None:
    bench = grouped("5-0")
    bench.ask("XTRIM s MAXLEN 0")
    assert bench.ask("XSETID s 1-0 ENTRIESADDED 0") == "OK"
    assert bench.ask("XADD s 2-0 k v") == b"2-0"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XSETID s", "ERR wrong number of arguments for 'xsetid' command"),
        ("XSETID missing oops", INVALID_ID),
        ("XSETID s -", INVALID_ID),
        ("XSETID s +", INVALID_ID),
        ("XSETID s $", INVALID_ID),
        ("XSETID missing 5 SOON", SYNTAX),
        ("XSETID missing 5 ENTRIESADDED", SYNTAX),
        ("XSETID missing 5 ENTRIESADDED -1", "ERR entries_added must be positive"),
        ("XSETID missing 5 ENTRIESADDED many", NOT_A_NUMBER),
        ("XSETID missing 5 MAXDELETEDID +", INVALID_ID),
        ("XSETID missing 5 MAXDELETEDID 6", BELOW_PROVIDED),
        ("XSETID string 5 MAXDELETEDID 6", BELOW_PROVIDED),
        ("XSETID string 5", WRONG_TYPE),
        ("XSETID missing 5", NO_SUCH_KEY),
        ("XSETID s 1", BELOW_DELETED),
        ("XSETID s 2-9", BELOW_TOP),
        ("XSETID s 2-9 ENTRIESADDED 1", BELOW_TOP),
        ("XSETID s 5 ENTRIESADDED 1", TOO_FEW),
    ],
)
def test_invalid_arguments_are_refused(bench: Bench, line: str, text: str) -> None:
    assert_refused(bench, line, text)


def test_an_id_that_was_deleted_is_not_given_out_again(bench: Bench) -> None:
    """Redis 7.0 allows it, and then has a tombstone and an entry with the same id."""
    bench.ask("XDEL s 3-0")
    assert bench.ask("XSETID s 1-0") == Refusal(BELOW_DELETED)
    bench.ask("XSETID s 9-0 MAXDELETEDID 1-0")
    assert bench.ask("XSETID s 2-0") == Refusal(BELOW_TOP)
    assert bench.ask("XSETID s 3-0") == "OK"
    assert bench.ask("XADD s 3-0 k v") == Refusal(
        "ERR The ID specified in XADD is equal or smaller than the target stream top item"
    )


def test_no_waiter_is_woken(bench: Bench) -> None:
    reader = bench.park("XREAD BLOCK 0 STREAMS s $")
    bench.ask("XSETID s 9")
    assert reader.woken == 0
    bench.ask("XADD s * k v")
    assert reader.woken == 1


def test_the_error_about_two_ids_depends_on_the_version() -> None:
    for version, text in (("7.0", BELOW_TOP), ("7.2", BELOW_DELETED), ("7.4", BELOW_DELETED)):
        bench = grouped("1-0", "2-0", "3-0", version=version)
        bench.ask("XDEL s 2-0")
        assert_refused(bench, "XSETID s 1", text)
