"""XNACK on an engine: entries that a consumer returns to its group. By the documents of Redis 8.8."""

from __future__ import annotations

import pytest

from penstock.reply import NULL_ARRAY
from tests.support.engine.engines import INVALID_ID, WRONG_TYPE, Bench, assert_refused, grouped
from tests.support.servers.raw_redis import Refusal

NO_GROUP = "NOGROUP No such key 's' or consumer group 'none'"
TOP = 2**63 - 1


@pytest.fixture
def bench() -> Bench:
    """Entries 1-0 to 4-0, all pending of a and delivered three times; the group has read all."""
    bench = grouped("1-0", "2-0", "3-0", "4-0", version="8.8")
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    bench.ask("XCLAIM s g a 0 1-0 2-0 3-0 4-0 RETRYCOUNT 3 JUSTID")
    bench.clock.at_ms += 1000
    return bench


def rows(bench: Bench) -> list[list[object]]:
    found: list[list[object]] = bench.ask("XPENDING s g - + 100")
    return found


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("SILENT IDS 1 2-0", 2),
        ("FAIL IDS 1 2-0", 3),
        ("FATAL IDS 1 2-0", TOP),
        ("silent IDS 1 2-0 RETRYCOUNT 0", 0),
        ("FATAL ids 1 2-0 retrycount 7", 7),
        (f"FAIL IDS 1 2-0 RETRYCOUNT {TOP}", TOP),
    ],
)
def test_a_returned_entry_has_no_owner_and_a_new_count(
    bench: Bench, words: str, count: int
) -> None:
    assert bench.ask(f"XNACK s g {words}") == 1
    assert rows(bench)[1] == [b"2-0", b"", -1, count]
    assert bench.ask("XPENDING s g")[3] == [[b"a", b"3"]]
    bench.state()


def test_a_count_of_zero_stays_zero(bench: Bench) -> None:
    bench.ask("XNACK s g FAIL IDS 1 2-0 RETRYCOUNT 0")
    assert bench.ask("XNACK s g SILENT IDS 1 2-0") == 1
    assert rows(bench)[1][3] == 0


def test_returned_entries_are_claimed_first_in_the_order_of_their_return(bench: Bench) -> None:
    bench.ask("XNACK s g FAIL IDS 2 4-0 2-0")
    [[_, found]] = bench.ask("XREADGROUP GROUP g b CLAIM 1000 STREAMS s >")
    assert [(row[0], row[2], row[3]) for row in found] == [
        *((b"4-0", -1, 3), (b"2-0", -1, 3), (b"1-0", 1000, 3), (b"3-0", 1000, 3))
    ]
    assert [row[1] for row in rows(bench)] == [b"b"] * 4


def test_a_returned_entry_needs_no_idle_time(bench: Bench) -> None:
    bench.ask("XNACK s g FAIL IDS 1 2-0")
    [[_, found]] = bench.ask(f"XREADGROUP GROUP g b CLAIM {TOP} STREAMS s >")
    assert [row[0] for row in found] == [b"2-0"]


def test_a_plain_read_does_not_get_returned_entries(bench: Bench) -> None:
    bench.ask("XNACK s g FAIL IDS 1 2-0")
    assert bench.ask("XREADGROUP GROUP g b STREAMS s >") == NULL_ARRAY
    assert bench.ask("XREADGROUP GROUP g a COUNT 9 STREAMS s 0")[0][1][1][0] == b"3-0"


def test_xclaim_and_xack_find_returned_entries(bench: Bench) -> None:
    bench.ask("XNACK s g FAIL IDS 2 2-0 3-0")
    assert bench.ask("XCLAIM s g b 0 2-0 JUSTID") == [b"2-0"]
    assert bench.ask("XACK s g 3-0") == 1
    assert [row[:2] for row in rows(bench)] == [[b"1-0", b"a"], [b"2-0", b"b"], [b"4-0", b"a"]]
    bench.state()


def test_deleting_the_consumer_keeps_what_it_has_returned(bench: Bench) -> None:
    bench.ask("XNACK s g FAIL IDS 1 2-0")
    assert bench.ask("XGROUP DELCONSUMER s g a") == 3
    assert rows(bench) == [[b"2-0", b"", -1, 3]]


def test_ids_that_are_not_pending_do_not_count(bench: Bench) -> None:
    bench.ask("XACK s g 1-0")
    assert bench.ask("XNACK s g FAIL IDS 3 1-0 2-0 9-0") == 1


def test_force_makes_records_of_entries_that_exist(bench: Bench) -> None:
    bench.ask("XACK s g 1-0 2-0")
    bench.ask("XDEL s 2-0")
    assert bench.ask("XNACK s g FAIL IDS 3 1-0 2-0 9-0 FORCE") == 1
    assert rows(bench)[0] == [b"1-0", b"", -1, 0]


def test_xinfo_counts_returned_entries(bench: Bench) -> None:
    bench.ask("XNACK s g FAIL IDS 2 2-0 3-0")
    full = bench.ask("XINFO STREAM s FULL")
    group = full[full.index(b"groups") + 1][0]
    assert group[group.index(b"pel-count") + 1 :][:3] == [4, b"nacked-count", 2]


def test_a_reader_that_waits_with_claim_gets_it_at_once(bench: Bench) -> None:
    reader = bench.park(f"XREADGROUP GROUP g b BLOCK 0 CLAIM {TOP} STREAMS s >")
    plain = bench.park("XREADGROUP GROUP g c BLOCK 0 STREAMS s >")
    bench.ask("XNACK s g FAIL IDS 1 3-0")
    assert reader.got == [[b"s", [[b"3-0", [b"k", b"v"], -1, 3]]]]
    assert plain.woken == 0


MODES = "ERR mode must be SILENT, FAIL, or FATAL"
NO_MATCH = "ERR number of IDs doesn't match numids"
NOT_POSITIVE = "ERR numids must be a positive integer"
BAD_COUNT = "ERR Invalid RETRYCOUNT value, must be >= 0"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XNACK s g FAIL IDS 1", "ERR wrong number of arguments for 'xnack' command"),
        ("XNACK s none FOO IDS 0 x", NO_GROUP),
        ("XNACK string g FAIL IDS 1 1-0", WRONG_TYPE),
        ("XNACK s g FOO IDS 1 1-0", MODES),
        ("XNACK s g FAIL FOO 1 1-0", "ERR syntax error, expected IDS keyword"),
        ("XNACK s g FAIL IDS 0 1-0", NOT_POSITIVE),
        ("XNACK s g FAIL IDS -1 1-0", NOT_POSITIVE),
        ("XNACK s g FAIL IDS x 1-0", NOT_POSITIVE),
        ("XNACK s g FAIL IDS 2 1-0", NO_MATCH),
        ("XNACK s g FAIL IDS 2 1-0 oops", INVALID_ID),
        ("XNACK s g FAIL IDS 1 1-0 2-0", "ERR Unrecognized XNACK option '2-0'"),
        ("XNACK s g FAIL IDS 1 1-0 RETRYCOUNT", "ERR Unrecognized XNACK option 'RETRYCOUNT'"),
        ("XNACK s g FAIL IDS 1 1-0 RETRYCOUNT -1", BAD_COUNT),
        ("XNACK s g FAIL IDS 1 1-0 RETRYCOUNT x", BAD_COUNT),
    ],
)
def test_an_invalid_return_changes_nothing(bench: Bench, line: str, text: str) -> None:
    assert_refused(bench, line, text)


def test_a_missing_key_has_no_group(bench: Bench) -> None:
    text = "NOGROUP No such key 'missing' or consumer group 'g'"
    assert bench.ask("XNACK missing g FAIL IDS 1 1-0") == Refusal(text)
