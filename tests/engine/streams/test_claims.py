"""XPENDING, XCLAIM and XAUTOCLAIM on an engine."""

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
NO_GROUP = "NOGROUP No such key 's' or consumer group 'none'"
NO_KEY = "NOGROUP No such key 'missing' or consumer group 'g'"


def pending_bench(compat_version: str | None = None) -> Bench:
    """Entries 1-0 to 5-0 in s; a has 1-0 2-0 pending and b 3-0 4-0, for one second."""
    bench = grouped("1-0", "2-0", "3-0", "4-0", "5-0", version=compat_version)
    bench.ask("XREADGROUP GROUP g a COUNT 2 STREAMS s >")
    bench.ask("XREADGROUP GROUP g b COUNT 2 STREAMS s >")
    bench.clock.at_ms += 1000
    return bench


@pytest.fixture
def bench() -> Bench:
    return pending_bench()


def rows(bench: Bench) -> list[list[object]]:
    """Every pending row: id, consumer, idle time, deliveries."""
    found: list[list[object]] = bench.ask("XPENDING s g - + 100")
    return found


def consumers(bench: Bench) -> dict[bytes, list[object]]:
    """The times of each consumer."""
    return {row[1]: row[2:] for row in bench.ask("XINFO CONSUMERS s g")}


# --- XPENDING -------------------------------------------------------------------------------------


def test_the_summary_counts_by_consumer_and_ends_with_the_edges(bench: Bench) -> None:
    assert bench.ask("XPENDING s g") == [4, b"1-0", b"4-0", [[b"a", b"2"], [b"b", b"2"]]]


def test_the_summary_leaves_out_consumers_without_pending_entries(bench: Bench) -> None:
    bench.ask("XGROUP CREATECONSUMER s g idler")
    bench.ask("XACK s g 1-0 2-0")
    assert bench.ask("XPENDING s g") == [2, b"3-0", b"4-0", [[b"b", b"2"]]]


def test_the_summary_of_nothing_has_no_edges(bench: Bench) -> None:
    bench.ask("XGROUP CREATE s new 0")
    assert bench.ask("XPENDING s new") == [0, None, None, NULL_ARRAY]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("- + 10", ["1-0", "2-0", "3-0", "4-0"]),
        ("- + 3", ["1-0", "2-0", "3-0"]),
        ("- + 0", []),
        ("- + -5", []),
        ("(1-0 (4-0 10", ["2-0", "3-0"]),
        ("2 3 10", ["2-0", "3-0"]),
        ("+ - 10", []),
        ("- + 10 a", ["1-0", "2-0"]),
        ("- + 10 nobody", []),
        ("IDLE 1000 - + 10", ["1-0", "2-0", "3-0", "4-0"]),
        ("IDLE 1001 - + 10", []),
        ("idle 0 - + 1 b", ["3-0"]),
        ("IDLE -1 - + 1 b", ["3-0"]),
    ],
)
def test_rows_are_chosen_by_range_count_consumer_and_idle_time(
    bench: Bench, words: str, found: list[str]
) -> None:
    reply = bench.ask(f"XPENDING s g {words}")
    assert [row[0].decode() for row in reply] == found
    assert all(row[2:] == [1000, 1] for row in reply)


def test_a_clock_that_steps_back_makes_nothing_less_than_just_delivered(bench: Bench) -> None:
    bench.clock.at_ms -= 5000
    assert rows(bench)[0] == [b"1-0", b"a", 0, 1]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XPENDING s", "ERR wrong number of arguments for 'xpending' command"),
        ("XPENDING s g -", SYNTAX),
        ("XPENDING s g - +", SYNTAX),
        ("XPENDING s g IDLE 5 - +", SYNTAX),
        ("XPENDING s g IDLE 5 - + 1 a extra", SYNTAX),
        ("XPENDING s g IDLE soon - + 1", NOT_A_NUMBER),
        ("XPENDING s g - + many", NOT_A_NUMBER),
        ("XPENDING s g oops + many", NOT_A_NUMBER),
        ("XPENDING s g oops + 1", INVALID_ID),
        ("XPENDING s g - oops 1", INVALID_ID),
        (f"XPENDING s g ({TOP}-{TOP} + 1", "ERR invalid start ID for the interval"),
        ("XPENDING s g - (0-0 1", "ERR invalid end ID for the interval"),
        ("XPENDING missing g", NO_KEY),
        ("XPENDING s none", NO_GROUP),
        ("XPENDING s none oops + 1", INVALID_ID),
        ("XPENDING string g oops + 1", INVALID_ID),
        ("XPENDING string g", WRONG_TYPE),
    ],
)
def test_an_invalid_query_is_refused(bench: Bench, line: str, text: str) -> None:
    assert_refused(bench, line, text)


# --- XCLAIM ---------------------------------------------------------------------------------------


def test_claiming_moves_an_entry_counts_it_and_makes_it_young(bench: Bench) -> None:
    assert bench.ask("XCLAIM s g c 0 1-0 3-0") == [[b"1-0", KV], [b"3-0", KV]]
    assert rows(bench) == [
        [b"1-0", b"c", 0, 2],
        [b"2-0", b"a", 1000, 1],
        [b"3-0", b"c", 0, 2],
        [b"4-0", b"b", 1000, 1],
    ]


def test_only_entries_idle_long_enough_can_be_claimed(bench: Bench) -> None:
    assert bench.ask("XCLAIM s g c 1001 1-0") == []
    assert bench.ask("XCLAIM s g c 1000 1-0") == [[b"1-0", KV]]
    assert bench.ask("XCLAIM s g c 1 1-0") == []


def test_a_minimum_below_zero_is_no_minimum(bench: Bench) -> None:
    assert bench.ask("XCLAIM s g c -5 1-0 JUSTID") == [b"1-0"]


def test_justid_gives_ids_and_does_not_count(bench: Bench) -> None:
    assert bench.ask("XCLAIM s g c 0 1-0 JUSTID") == [b"1-0"]
    assert rows(bench)[0] == [b"1-0", b"c", 0, 1]


@pytest.mark.parametrize(
    ("options", "idle_ms"),
    [
        ("IDLE 300", 300),
        ("IDLE 0", 0),
        ("IDLE -300", 0),
        ("IDLE 9223372036854775807", 0),
        ("IDLE -9223372036854775808", 0),
        (f"TIME {START_MS}", 1000),
        ("TIME 9000000000000", 0),
        ("TIME -5", 0),
        ("TIME 0", START_MS + 1000),
        (f"IDLE 5 TIME {START_MS}", 1000),
        (f"TIME {START_MS} IDLE 5", 5),
    ],
)
def test_the_idle_time_can_be_set_but_not_to_the_future(
    bench: Bench, options: str, idle_ms: int
) -> None:
    bench.ask(f"XCLAIM s g c 0 1-0 {options}")
    assert rows(bench)[0] == [b"1-0", b"c", idle_ms, 2]


@pytest.mark.parametrize(("given", "count"), [("7", 7), ("0", 0), ("-1", 2)])
def test_the_count_of_deliveries_can_be_set(bench: Bench, given: str, count: int) -> None:
    bench.ask(f"XCLAIM s g c 0 1-0 RETRYCOUNT {given}")
    assert rows(bench)[0][3] == count


def test_the_count_of_deliveries_stops_at_the_largest_number(bench: Bench) -> None:
    """In Redis 7 the count overflows into negative numbers."""
    bench.ask("XCLAIM s g c 0 1-0 RETRYCOUNT 9223372036854775807")
    bench.ask("XCLAIM s g c 0 1-0")
    bench.ask("XREADGROUP GROUP g c STREAMS s 0")
    assert rows(bench)[0][3] == 2**63 - 1


def test_an_entry_that_is_not_pending_is_claimed_only_by_force(bench: Bench) -> None:
    assert bench.ask("XCLAIM s g c 0 5-0") == []
    assert bench.ask("XCLAIM s g c 5000 5-0 FORCE") == [[b"5-0", KV]]
    assert rows(bench)[-1] == [b"5-0", b"c", 0, 2]


def test_force_makes_no_row_for_an_entry_that_is_not_there(bench: Bench) -> None:
    assert bench.ask("XCLAIM s g c 0 9-0 FORCE") == []
    assert len(rows(bench)) == 4


def test_a_claim_removes_the_record_of_a_deleted_entry(bench: Bench) -> None:
    bench.ask("XDEL s 1-0")
    assert bench.ask("XCLAIM s g c 5000 1-0") == []
    assert [row[0] for row in rows(bench)] == [b"2-0", b"3-0", b"4-0"]


def test_a_claim_can_move_the_group_forwards_but_not_back(bench: Bench) -> None:
    bench.ask("XCLAIM s g c 0 1-0 LASTID 3-0")
    assert bench.ask("XINFO GROUPS s")[0][7] == b"4-0"
    bench.ask("XCLAIM s g c 0 1-0 LASTID 5-0")
    assert bench.ask("XINFO GROUPS s")[0][7] == b"5-0"


def test_an_entry_named_twice_is_claimed_twice(bench: Bench) -> None:
    assert bench.ask("XCLAIM s g c 0 1-0 1-0 JUSTID") == [b"1-0", b"1-0"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XCLAIM s g c 0", "ERR wrong number of arguments for 'xclaim' command"),
        ("XCLAIM s none c 0 1-0", NO_GROUP),
        ("XCLAIM missing g c 0 1-0", NO_KEY),
        ("XCLAIM s none c soon oops", NO_GROUP),
        ("XCLAIM string g c soon 1-0", WRONG_TYPE),
        ("XCLAIM s g c soon oops", "ERR Invalid min-idle-time argument for XCLAIM"),
        ("XCLAIM s g c 0 1-0 IDLE soon", "ERR Invalid IDLE option argument for XCLAIM"),
        ("XCLAIM s g c 0 1-0 TIME soon", "ERR Invalid TIME option argument for XCLAIM"),
        ("XCLAIM s g c 0 1-0 RETRYCOUNT many", "ERR Invalid RETRYCOUNT option argument for XCLAIM"),
        ("XCLAIM s g c 0 1-0 LASTID oops", INVALID_ID),
        ("XCLAIM s g c 0 1-0 oops", "ERR Unrecognized XCLAIM option 'oops'"),
        ("XCLAIM s g c 0 oops 1-0", "ERR Unrecognized XCLAIM option 'oops'"),
        ("XCLAIM s g c 0 1-0 JUSTID 2-0", "ERR Unrecognized XCLAIM option '2-0'"),
        ("XCLAIM s g c 0 1-0 IDLE", "ERR Unrecognized XCLAIM option 'IDLE'"),
        ("XCLAIM s g c 0 1-0 LASTID 5-0 FORCE IDLE", "ERR Unrecognized XCLAIM option 'IDLE'"),
    ],
)
def test_an_invalid_claim_is_refused(bench: Bench, line: str, text: str) -> None:
    assert_refused(bench, line, text)


def test_an_option_in_a_refusal_stays_on_one_line(bench: Bench) -> None:
    """Found by the random campaign."""
    refusal = bench.run("XCLAIM", "s", "g", "c", "0", "1-0", b"(\t\n1\0x")
    assert refusal == Refusal("ERR Unrecognized XCLAIM option '(\t 1'")


# --- XAUTOCLAIM -----------------------------------------------------------------------------------


def test_autoclaim_goes_through_all_that_is_idle_with_a_cursor(bench: Bench) -> None:
    assert bench.ask("XAUTOCLAIM s g c 1000 0 COUNT 3") == [
        b"4-0",
        [[b"1-0", KV], [b"2-0", KV], [b"3-0", KV]],
        [],
    ]
    assert bench.ask("XAUTOCLAIM s g c 1000 4-0 COUNT 3") == [b"0-0", [[b"4-0", KV]], []]
    assert bench.ask("XAUTOCLAIM s g c 1000 0") == [b"0-0", [], []]
    assert [row[1:] for row in rows(bench)] == [[b"c", 0, 2]] * 4


def test_autoclaim_starts_at_the_given_id(bench: Bench) -> None:
    assert bench.ask("XAUTOCLAIM s g c 0 (2-0 JUSTID COUNT 1") == [b"4-0", [b"3-0"], []]
    assert bench.ask("XAUTOCLAIM s g c 0 - COUNT 1 JUSTID") == [b"2-0", [b"1-0"], []]
    assert bench.ask("XAUTOCLAIM s g c 0 + JUSTID") == [b"0-0", [], []]


def test_autoclaim_looks_at_ten_rows_for_each_that_it_may_take() -> None:
    bench = Bench()
    bench.ask("XGROUP CREATE s g 0 MKSTREAM")
    for n in range(1, 31):
        bench.run("XADD", "s", f"{n}-0", "k", "v")
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    assert bench.ask("XAUTOCLAIM s g c 1 0 COUNT 2") == [b"21-0", [], []]


def test_autoclaim_removes_and_reports_deleted_entries_which_count_towards_the_limit(
    bench: Bench,
) -> None:
    bench.ask("XDEL s 1-0 3-0")
    assert bench.ask("XAUTOCLAIM s g c 9999 0 COUNT 1") == [b"2-0", [], [b"1-0"]]
    assert bench.ask("XAUTOCLAIM s g c 0 0 COUNT 2") == [b"4-0", [[b"2-0", KV]], [b"3-0"]]
    assert [row[0] for row in rows(bench)] == [b"2-0", b"4-0"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XAUTOCLAIM s g c 0", "ERR wrong number of arguments for 'xautoclaim' command"),
        ("XAUTOCLAIM s none c soon 0", "ERR Invalid min-idle-time argument for XAUTOCLAIM"),
        ("XAUTOCLAIM s none c 0 oops", INVALID_ID),
        ("XAUTOCLAIM s none c 0 0 COUNT 0", "ERR COUNT must be > 0"),
        ("XAUTOCLAIM s g c 0 0 COUNT -1", "ERR COUNT must be > 0"),
        ("XAUTOCLAIM s g c 0 0 COUNT many", "ERR COUNT must be > 0"),
        ("XAUTOCLAIM s g c 0 0 COUNT 576460752303423488", "ERR COUNT must be > 0"),
        ("XAUTOCLAIM s g c 0 0 COUNT", SYNTAX),
        ("XAUTOCLAIM s g c 0 0 FORCE", SYNTAX),
        (f"XAUTOCLAIM s g c 0 ({TOP}-{TOP}", "ERR invalid start ID for the interval"),
        ("XAUTOCLAIM s none c 0 0", NO_GROUP),
        ("XAUTOCLAIM missing g c 0 0", NO_KEY),
        ("XAUTOCLAIM string g c 0 0", WRONG_TYPE),
        ("XAUTOCLAIM string g c 0 oops", INVALID_ID),
    ],
)
def test_an_invalid_autoclaim_is_refused(bench: Bench, line: str, text: str) -> None:
    assert_refused(bench, line, text)


@pytest.mark.parametrize("count", ["576460752303423487", "9000000000000"])
def test_a_count_that_no_memory_can_hold_is_refused(bench: Bench, count: str) -> None:
    """Found by the random campaign: Redis allocates memory for all the ids that it might report."""
    text = "ERR Insufficient memory, failed allocating transient memory, COUNT too high."
    assert_refused(bench, f"XAUTOCLAIM s g c 0 0 COUNT {count}", text)


# --- The consumer ---------------------------------------------------------------------------------

ASKS_IN_VAIN = ["XCLAIM s g {} 5000 1-0", "XCLAIM s g {} 0 9-0", "XAUTOCLAIM s g {} 5000 0"]


@pytest.mark.parametrize("line", ASKS_IN_VAIN)
def test_a_claim_without_result_leaves_no_trace_before_7_2(line: str) -> None:
    """Found by the random campaign: only since 7.2 every request creates a consumer."""
    bench = pending_bench("7.0")
    assert_unchanged = bench.state()
    bench.ask(line.format("new"))
    bench.ask(line.format("a"))
    assert bench.state() == assert_unchanged


@pytest.mark.parametrize("line", ASKS_IN_VAIN)
def test_a_claim_without_result_updates_the_seen_time_since_7_2(line: str) -> None:
    bench = pending_bench("7.2")
    bench.ask(line.format("new"))
    bench.ask(line.format("a"))
    assert consumers(bench)[b"new"] == [b"pending", 0, b"idle", 0, b"inactive", -1]
    assert consumers(bench)[b"a"] == [b"pending", 2, b"idle", 0, b"inactive", 1000]


@pytest.mark.parametrize("line", ["XCLAIM s g c 0 1-0", "XAUTOCLAIM s g c 0 0 COUNT 1"])
@pytest.mark.parametrize("version", ["7.0", "7.2"])
def test_a_successful_read_creates_the_consumer_and_sets_its_times(version: str, line: str) -> None:
    bench = pending_bench(version)
    bench.ask("XGROUP CREATECONSUMER s g c")
    bench.clock.at_ms += 77
    bench.ask(line)
    assert consumers(bench)[b"c"][:4] == [b"pending", 1, b"idle", 0]
