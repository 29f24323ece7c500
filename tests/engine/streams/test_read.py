"""XRANGE, XREVRANGE, XREAD and XREADGROUP on an engine."""

from __future__ import annotations

import pytest

from penstock.reply import NULL_ARRAY
from tests.support.engine.engines import (
    INVALID_ID,
    NOT_A_NUMBER,
    START_MS,
    SYNTAX,
    WRONG_TYPE,
    Bench,
    assert_refused,
    grouped,
)
from tests.support.servers.raw_redis import Refusal

TOP = "18446744073709551615"
KV = [b"k", b"v"]
NO_GROUP = "NOGROUP No such key 's' or consumer group 'none' in XREADGROUP with GROUP option"
ONLY_BY_GROUP = (
    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group>"
    " <consumer> option."
)
DOLLAR_IN_GROUP = (
    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this"
    " consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return"
    " an empty result set."
)


@pytest.fixture
def bench() -> Bench:
    """Entries 1-0 1-1 3-0 in s; a group g at the start, which has read nothing."""
    bench = grouped("1-0", "1-1", "2-0", "3-0")
    bench.ask("XDEL s 2-0")
    return bench


def entries(*entry_ids: str) -> list[list[object]]:
    return [[entry_id.encode(), KV] for entry_id in entry_ids]


# --- Ranges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("XRANGE s - +", ["1-0", "1-1", "3-0"]),
        ("XREVRANGE s + -", ["3-0", "1-1", "1-0"]),
        ("XRANGE s 1 1", ["1-0", "1-1"]),
        ("XRANGE s 1-1 2", ["1-1"]),
        ("XRANGE s (1-0 (3-0", ["1-1"]),
        ("XREVRANGE s (3-0 (1-0", ["1-1"]),
        ("XREVRANGE s 1 1", ["1-1", "1-0"]),
        ("XRANGE s + -", []),
        ("XRANGE s 5 9", []),
        ("XRANGE s - + COUNT 2", ["1-0", "1-1"]),
        ("XREVRANGE s + - COUNT 1", ["3-0"]),
        ("xrange s - + count 9 count 1", ["1-0"]),
        (f"XRANGE s 0 {TOP}-{TOP}", ["1-0", "1-1", "3-0"]),
    ],
)
def test_a_range_has_the_entries_between_its_ends(
    bench: Bench, line: str, found: list[str]
) -> None:
    assert bench.ask(line) == entries(*found)


@pytest.mark.parametrize("count", ["0", "-1", "-9223372036854775808"])
def test_a_range_of_no_entries_is_null_but_without_the_key_it_is_empty(
    bench: Bench, count: str
) -> None:
    assert bench.ask(f"XRANGE s - + COUNT {count}") is NULL_ARRAY
    assert bench.ask(f"XREVRANGE s + - COUNT {count}") is NULL_ARRAY
    assert bench.ask(f"XRANGE missing - + COUNT {count}") == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XRANGE s oops +", INVALID_ID),
        ("XRANGE s - oops", INVALID_ID),
        ("XRANGE s ( +", INVALID_ID),
        ("XRANGE s (- +", INVALID_ID),
        ("XRANGE s ((1 +", INVALID_ID),
        ("XRANGE s 1-* +", INVALID_ID),
        (f"XRANGE s ({TOP}-{TOP} +", "ERR invalid start ID for the interval"),
        ("XRANGE s - (0-0", "ERR invalid end ID for the interval"),
        (f"XREVRANGE s + ({TOP}-{TOP}", "ERR invalid start ID for the interval"),
        ("XREVRANGE s (0-0 -", "ERR invalid end ID for the interval"),
        ("XRANGE s - + COUNT", SYNTAX),
        ("XRANGE s - + LIMIT 1", SYNTAX),
        ("XRANGE s - + COUNT 1 extra", SYNTAX),
        ("XRANGE s - + COUNT many", NOT_A_NUMBER),
        ("XRANGE s -", "ERR wrong number of arguments for 'xrange' command"),
        ("XREVRANGE s +", "ERR wrong number of arguments for 'xrevrange' command"),
        ("XRANGE string oops +", INVALID_ID),
        ("XRANGE string - + COUNT many", NOT_A_NUMBER),
        ("XRANGE string - +", WRONG_TYPE),
        ("XRANGE string - + COUNT 0", WRONG_TYPE),
    ],
)
def test_an_invalid_range_is_refused(bench: Bench, line: str, text: str) -> None:
    assert_refused(bench, line, text)


# --- XREAD ----------------------------------------------------------------------------------------


def test_xread_returns_the_entries_after_an_id_of_streams_that_have_some(bench: Bench) -> None:
    bench.ask("XADD t 5-0 k v")
    assert bench.ask("XREAD STREAMS s t missing 1-0 0 0") == [
        [b"s", entries("1-1", "3-0")],
        [b"t", entries("5-0")],
    ]
    assert bench.ask("XREAD STREAMS s t 3-0 4") == [[b"t", entries("5-0")]]


def test_xread_counts_each_stream_for_itself(bench: Bench) -> None:
    assert bench.ask("XREAD COUNT 1 STREAMS s s 0 1-0") == [
        [b"s", entries("1-0")],
        [b"s", entries("1-1")],
    ]


@pytest.mark.parametrize("count", ["0", "-1"])
def test_xread_takes_a_count_that_is_not_above_zero_for_all(bench: Bench, count: str) -> None:
    assert bench.ask(f"XREAD COUNT {count} STREAMS s 0") == [[b"s", entries("1-0", "1-1", "3-0")]]


@pytest.mark.parametrize("after", ["3-0", "$", "9", f"{TOP}-{TOP}"])
def test_xread_that_finds_nothing_is_null(bench: Bench, after: str) -> None:
    assert bench.ask(f"XREAD STREAMS s {after}") is NULL_ARRAY


def test_xread_does_not_answer_behind_deleted_entries(bench: Bench) -> None:
    bench.ask("XDEL s 3-0")
    assert bench.ask("XREAD STREAMS s 1-1") is NULL_ARRAY


def test_xread_returns_existing_entries_at_once_even_with_block(bench: Bench) -> None:
    assert bench.ask("XREAD BLOCK 0 STREAMS missing s 0 1-1") == [[b"s", entries("3-0")]]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XREAD STREAMS s", "ERR wrong number of arguments for 'xread' command"),
        ("XREAD COUNT 1 STREAMS", SYNTAX),
        ("XREAD COUNT 1 BLOCK 1", SYNTAX),
        ("XREAD COUNT many STREAMS s 0", NOT_A_NUMBER),
        ("XREAD BLOCK soon STREAMS s 0", "ERR timeout is not an integer or out of range"),
        ("XREAD BLOCK 1.5 STREAMS s 0", "ERR timeout is not an integer or out of range"),
        ("XREAD BLOCK -1 STREAMS s 0", "ERR timeout is negative"),
        (
            "XREAD GROUP g c STREAMS s 0",
            "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
        ),
        (
            "XREAD NOACK STREAMS s 0",
            "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
        ),
        ("XREAD STREAMS s >", ONLY_BY_GROUP),
        ("XREAD STREAMS s oops", INVALID_ID),
        ("XREAD STREAMS s -", INVALID_ID),
        ("XREAD STREAMS string oops", WRONG_TYPE),
        ("XREAD STREAMS missing oops", INVALID_ID),
        ("XREAD STREAMS s string oops 0", INVALID_ID),
        ("XREAD STREAMS string s 0 oops", WRONG_TYPE),
        ("XREAD STREAMS s string 0 0", WRONG_TYPE),
    ],
)
def test_an_invalid_xread_is_refused(bench: Bench, line: str, text: str) -> None:
    assert_refused(bench, line, text)


# --- XREADGROUP -----------------------------------------------------------------------------------


def test_a_group_delivers_each_entry_once(bench: Bench) -> None:
    assert bench.ask("XREADGROUP GROUP g a COUNT 1 STREAMS s >") == [[b"s", entries("1-0")]]
    assert bench.ask("XREADGROUP GROUP g b STREAMS s >") == [[b"s", entries("1-1", "3-0")]]
    assert bench.ask("XREADGROUP GROUP g a STREAMS s >") is NULL_ARRAY
    assert bench.ask("XPENDING s g") == [3, b"1-0", b"3-0", [[b"a", b"1"], [b"b", b"2"]]]


def test_options_may_come_in_any_order(bench: Bench) -> None:
    line = "xreadgroup noack count 1 GROUP g a streams s >"
    assert bench.ask(line) == [[b"s", entries("1-0")]]


def test_words_of_the_grammar_may_be_names() -> None:
    bench = Bench()
    bench.ask("XADD STREAMS 1-0 k v")
    bench.ask("XGROUP CREATE STREAMS GROUP 0")
    line = "XREADGROUP GROUP GROUP STREAMS COUNT 5 STREAMS STREAMS >"
    assert bench.ask(line) == [[b"STREAMS", entries("1-0")]]


def test_without_acknowledgement_nothing_becomes_pending_but_the_group_moves(bench: Bench) -> None:
    bench.ask("XREADGROUP GROUP g a COUNT 2 NOACK STREAMS s >")
    assert bench.ask("XPENDING s g") == [0, None, None, NULL_ARRAY]
    group = bench.ask("XINFO GROUPS s")[0]
    assert group[group.index(b"last-delivered-id") + 1] == b"1-1"
    assert bench.ask("XINFO CONSUMERS s g")[0][1] == b"a"


def test_history_is_the_pending_entries_of_this_consumer(bench: Bench) -> None:
    bench.ask("XREADGROUP GROUP g a COUNT 2 STREAMS s >")
    bench.ask("XREADGROUP GROUP g b STREAMS s >")
    assert bench.ask("XREADGROUP GROUP g a STREAMS s 0") == [[b"s", entries("1-0", "1-1")]]
    assert bench.ask("XREADGROUP GROUP g a COUNT 1 STREAMS s 1-0") == [[b"s", entries("1-1")]]
    assert bench.ask("XREADGROUP GROUP g b STREAMS s 3-0") == [[b"s", []]]


def test_history_is_answered_at_once_even_when_it_is_empty_and_may_block(bench: Bench) -> None:
    assert bench.ask("XREADGROUP GROUP g new BLOCK 0 STREAMS s 0") == [[b"s", []]]


def test_an_entry_that_is_gone_shows_in_the_history_as_a_null_array(bench: Bench) -> None:
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    bench.ask("XDEL s 1-0")
    assert bench.ask("XREADGROUP GROUP g a COUNT 1 STREAMS s 0") == [[b"s", [[b"1-0", NULL_ARRAY]]]]


def test_reading_the_history_counts_as_a_delivery(bench: Bench) -> None:
    bench.ask("XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    bench.clock.at_ms += 500
    assert bench.ask("XPENDING s g - + 1") == [[b"1-0", b"a", 500, 1]]
    bench.ask("XREADGROUP GROUP g a STREAMS s 0")
    assert bench.ask("XPENDING s g - + 1") == [[b"1-0", b"a", 0, 2]]


def test_a_group_that_was_set_back_hands_pending_entries_to_the_new_reader(bench: Bench) -> None:
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    bench.ask("XREADGROUP GROUP g a STREAMS s 0")
    bench.ask("XGROUP SETID s g 1-1")
    bench.ask("XREADGROUP GROUP g b STREAMS s >")
    rows = [row[:2] + row[3:] for row in bench.ask("XPENDING s g - + 9")]
    assert rows == [[b"1-0", b"a", 2], [b"1-1", b"a", 2], [b"3-0", b"b", 1]]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "XREADGROUP GROUP g a STREAMS s",
            "ERR wrong number of arguments for 'xreadgroup' command",
        ),
        ("XREADGROUP COUNT 1 NOACK STREAMS s >", "ERR Missing GROUP option for XREADGROUP"),
        ("XREADGROUP GROUP g a COUNT many STREAMS s >", NOT_A_NUMBER),
        ("XREADGROUP GROUP g a BLOCK -1 STREAMS s >", "ERR timeout is negative"),
        ("XREADGROUP GROUP none a STREAMS s >", NO_GROUP),
        ("XREADGROUP GROUP none a STREAMS s oops", NO_GROUP),
        ("XREADGROUP GROUP none a STREAMS string >", WRONG_TYPE),
        ("XREADGROUP GROUP g a STREAMS s $", DOLLAR_IN_GROUP),
        ("XREADGROUP GROUP g a STREAMS s oops", INVALID_ID),
        ("XREADGROUP GROUP g a STREAMS s string oops >", INVALID_ID),
        ("XREADGROUP GROUP g a STREAMS string s > oops", WRONG_TYPE),
        ("XREADGROUP GROUP g a LATEST 1 STREAMS s >", SYNTAX),
    ],
)
def test_an_invalid_xreadgroup_is_refused(bench: Bench, line: str, text: str) -> None:
    assert_refused(bench, line, text)


def test_a_refused_group_read_delivers_nothing_from_the_streams_before(bench: Bench) -> None:
    refusal = "NOGROUP No such key 'missing' or consumer group 'g' in XREADGROUP with GROUP option"
    assert_refused(bench, "XREADGROUP GROUP g a STREAMS s missing > >", refusal)


def test_names_in_a_refusal_end_at_a_nul_and_stay_on_one_line() -> None:
    """Found by the random campaign: a line break in a name broke the line of the error."""
    refusal = Bench().run("XREADGROUP", "GROUP", b"a\r\nb\0c", "c", "STREAMS", b"k\xff", ">")
    assert refusal == Refusal(
        "NOGROUP No such key 'k\udcff' or consumer group 'a  b' in XREADGROUP with GROUP option"
    )


def test_the_largest_id_means_new_entries_as_in_redis(bench: Bench) -> None:
    """In Redis `>` is the largest id, so that id reads new entries too."""
    found = bench.ask(f"XREADGROUP GROUP g a COUNT 1 STREAMS s {TOP}-{TOP}")
    assert found == [[b"s", entries("1-0")]]


def test_a_blocked_read_says_how_long_it_waits(bench: Bench) -> None:
    assert bench.park("XREAD BLOCK 1500 STREAMS s $").timeout_ms == 1500
    assert bench.park("XREAD BLOCK 0 STREAMS s $").timeout_ms == 0


def test_automatic_ids_are_read_like_others() -> None:
    bench = Bench()
    bench.ask("XADD s * k v")
    assert bench.ask("XREAD STREAMS s 0") == [[b"s", entries(f"{START_MS}-0")]]
