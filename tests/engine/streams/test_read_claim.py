"""XREADGROUP with CLAIM on an engine: idle entries first, and readers that wait for them."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.reply import NULL_ARRAY
from tests.support.engine.engines import (
    NOT_A_NUMBER,
    SYNTAX,
    WRONG_TYPE,
    Bench,
    Reader,
    assert_refused,
    grouped,
)
from tests.support.servers.raw_redis import Refusal

NOT_A_TIME = "ERR min-idle-time is not an integer or out of range"
ONLY_IN_GROUPS = "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead."
NEGATIVE = "ERR min-idle-time must be a positive integer"
RETRIES_MAX = 12  # in one second


@pytest.fixture
def bench() -> Bench:
    """Entries 1-0 to 5-0; a has got 2-0, 1-0 and 3-0 in this order, 10 ms apart; 4-0 5-0 are new."""
    bench = grouped(*(f"{n}-0" for n in range(1, 6)))
    bench.ask("XGROUP SETID s g 3-0")
    for entry_id in ("2-0", "1-0", "3-0"):
        bench.ask(f"XCLAIM s g a 0 {entry_id} FORCE JUSTID RETRYCOUNT 1")
        bench.clock.at_ms += 10
    return bench


def read(bench: Bench, words: str, streams: str = "s >") -> Any:
    """Every entry that a read by b returns: id, idle time, deliveries before."""
    reply = bench.ask(f"XREADGROUP GROUP g b {words} STREAMS {streams}")
    if not isinstance(reply, list):
        return reply
    return [[row[0].decode(), *row[2:]] for row in reply[0][1]]


def rows(bench: Bench) -> list[str]:
    """Every pending row in short: `id consumer deliveries`."""
    found = bench.ask("XPENDING s g - + 100")
    return [f"{row[0].decode()} {row[1].decode()} {row[3]}" for row in found]


def test_idle_entries_come_before_new_ones_longest_idle_first(bench: Bench) -> None:
    assert read(bench, "CLAIM 0") == [
        *(["2-0", 30, 1], ["1-0", 20, 1], ["3-0", 10, 1]),
        *(["4-0", 0, 0], ["5-0", 0, 0]),
    ]
    assert rows(bench) == ["1-0 b 2", "2-0 b 2", "3-0 b 2", "4-0 b 1", "5-0 b 1"]


def test_only_entries_idle_for_so_long_are_claimed(bench: Bench) -> None:
    assert [row[0] for row in read(bench, "CLAIM 20 COUNT 3")] == ["2-0", "1-0", "4-0"]
    assert rows(bench) == ["1-0 b 2", "2-0 b 2", "3-0 a 1", "4-0 b 1"]


def test_a_count_is_shared(bench: Bench) -> None:
    assert [row[0] for row in read(bench, "COUNT 2 CLAIM 0")] == ["2-0", "1-0"]
    assert [row[0] for row in read(bench, "COUNT 2 CLAIM 10")] == ["3-0", "4-0"]


def test_entries_that_are_gone_are_skipped_and_stay_pending(bench: Bench) -> None:
    bench.ask("XDEL s 2-0 3-0")
    assert [row[0] for row in read(bench, "CLAIM 0 COUNT 1")] == ["1-0"]
    assert rows(bench) == ["1-0 b 2", "2-0 a 1", "3-0 a 1"]


def test_noack_concerns_new_entries_only(bench: Bench) -> None:
    assert len(read(bench, "NOACK CLAIM 0")) == 5
    assert rows(bench) == ["1-0 b 2", "2-0 b 2", "3-0 b 2"]


def test_a_history_id_ends_the_claims_of_later_streams(bench: Bench) -> None:
    bench.ask("XADD t 1-0 k v")
    bench.ask("XGROUP CREATE t g 0")
    bench.ask("XREADGROUP GROUP g a STREAMS t >")
    bench.clock.at_ms += 10
    assert bench.ask("XREADGROUP GROUP g b CLAIM 0 STREAMS s t 0 >") == [[b"s", []]]
    assert bench.ask("XPENDING t g - + 1")[0][1] == b"a"
    [[key, entries], _] = bench.ask("XREADGROUP GROUP g b CLAIM 0 STREAMS t s > 0")
    assert (key, entries[0][2:]) == (b"t", [10, 1])


def test_nothing_idle_and_nothing_new_is_nothing(bench: Bench) -> None:
    bench.ask("XGROUP SETID s g $")
    assert read(bench, "CLAIM 31") == NULL_ARRAY
    assert read(bench, f"CLAIM {2**63 - 1}") == NULL_ARRAY


def test_entries_of_one_moment_are_claimed_by_id() -> None:
    """In Redis in the order of delivery, which does not survive its restart (docs/compatibility.md)."""
    bench = grouped("1-0", "2-0", "3-0")
    bench.ask("XCLAIM s g a 0 3-0 1-0 2-0 FORCE JUSTID")
    assert [row[0] for row in read(bench, "CLAIM 0 COUNT 3")] == ["1-0", "2-0", "3-0"]


def test_a_clock_that_steps_back_claims_nothing_with_a_time(bench: Bench) -> None:
    bench.ask("XGROUP SETID s g $")
    bench.clock.at_ms -= 5000
    assert read(bench, "CLAIM 1") == NULL_ARRAY


def test_the_count_of_deliveries_stops_at_the_largest_number(bench: Bench) -> None:
    bench.ask(f"XCLAIM s g a 0 1-0 JUSTID RETRYCOUNT {2**63 - 1}")
    bench.clock.at_ms += 100
    read(bench, "CLAIM 0")
    assert rows(bench)[0] == f"1-0 b {2**63 - 1}"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XREADGROUP GROUP g b CLAIM x STREAMS s >", NOT_A_TIME),
        ("XREADGROUP GROUP g b CLAIM 9223372036854775808 STREAMS s >", NOT_A_TIME),
        ("XREADGROUP GROUP g b CLAIM -1 STREAMS s >", NEGATIVE),
        ("XREADGROUP GROUP g b CLAIM STREAMS s >", NOT_A_TIME),
        ("XREADGROUP GROUP g b CLAIM 5 CLAIM -5 STREAMS s >", NEGATIVE),
        ("XREADGROUP GROUP g b CLAIM 5 COUNT x STREAMS s >", NOT_A_NUMBER),
        ("XREADGROUP GROUP g b STREAMS s CLAIM 5 >", None),
        ("XREADGROUP GROUP g b CLAIM 5 STREAMS string >", WRONG_TYPE),
        ("XREAD CLAIM 5 STREAMS s 0", ONLY_IN_GROUPS),
    ],
)
def test_an_invalid_claim_changes_nothing(bench: Bench, line: str, text: str | None) -> None:
    if text is None:
        assert isinstance(bench.ask(line), Refusal)
    else:
        assert_refused(bench, line, text)


def test_older_levels_do_not_know_the_option() -> None:
    bench = grouped("1-0", version="8.2")
    assert bench.ask("XREADGROUP GROUP g b CLAIM 5 STREAMS s >") == Refusal(SYNTAX)


# --- Waiting --------------------------------------------------------------------------------------


class Timers:
    """Lets time pass as a server does: a reader looks again whenever it is due."""

    def __init__(self, bench: Bench, *readers: Reader) -> None:
        self._bench = bench
        self._readers = readers
        self.retries = 0
        self._due_ms = {reader: self._next_ms(reader) for reader in readers}

    def _next_ms(self, reader: Reader) -> int:
        assert reader.retry_ms is not None
        return self._bench.clock.at_ms + reader.retry_ms

    def pass_ms(self, wait_ms: int) -> None:
        clock = self._bench.clock
        end_ms = clock.at_ms + wait_ms
        while waiting := [reader for reader in self._readers if not reader.done]:
            first = min(waiting, key=lambda reader: self._due_ms[reader])
            if self._due_ms[first] > end_ms:
                break
            clock.at_ms = self._due_ms[first]
            self._bench.engine.retry(first)
            self.retries += 1
            self._due_ms[first] = self._next_ms(first)
        clock.at_ms = end_ms


def test_a_reader_waits_until_an_entry_is_idle(bench: Bench) -> None:
    bench.ask("XGROUP SETID s g $")
    reader = bench.park("XREADGROUP GROUP g b BLOCK 0 CLAIM 100 STREAMS s >")
    timers = Timers(bench, reader)
    timers.pass_ms(69)  # 2-0 was idle for 30 ms already
    assert reader.woken == 0
    timers.pass_ms(2)
    assert [row[0] for row in reader.got[0][1]] == [b"2-0"]


def test_readers_are_served_in_the_order_in_which_they_blocked(bench: Bench) -> None:
    bench.ask("XGROUP SETID s g $")
    line = "XREADGROUP GROUP g {} BLOCK 0 COUNT 1 CLAIM 100 STREAMS s >"
    readers = [bench.park(line.format(name)) for name in ("d", "b", "c")]
    Timers(bench, *readers).pass_ms(200)
    assert [reader.got[0][1][0][0] for reader in readers] == [b"2-0", b"1-0", b"3-0"]


def test_a_new_entry_wakes_a_reader_with_any_time(bench: Bench) -> None:
    bench.ask("XGROUP SETID s g $")
    reader = bench.park(f"XREADGROUP GROUP g b BLOCK 0 CLAIM {2**63 - 1} STREAMS s >")
    bench.ask("XADD s 9-0 k v")
    assert reader.got == [[b"s", [[b"9-0", [b"k", b"v"], 0, 0]]]]


@pytest.mark.parametrize("idle_ms", [0, 1, 50])
def test_a_reader_of_an_empty_group_looks_rarely(idle_ms: int) -> None:
    bench = grouped()
    reader = bench.park(f"XREADGROUP GROUP g b BLOCK 0 CLAIM {idle_ms} STREAMS s >")
    timers = Timers(bench, reader)
    timers.pass_ms(1000)
    assert timers.retries <= RETRIES_MAX


def test_a_reader_of_entries_that_are_gone_looks_rarely(bench: Bench) -> None:
    bench.ask("XGROUP SETID s g $")
    bench.ask("XDEL s 1-0 2-0 3-0")
    reader = bench.park("XREADGROUP GROUP g b BLOCK 0 CLAIM 0 STREAMS s >")
    timers = Timers(bench, reader)
    timers.pass_ms(1000)
    assert timers.retries <= RETRIES_MAX


def test_an_entry_that_becomes_pending_while_a_reader_waits_is_found() -> None:
    bench = grouped("1-0")
    bench.ask("XGROUP SETID s g $")
    reader = bench.park("XREADGROUP GROUP g b BLOCK 0 CLAIM 300 STREAMS s >")
    timers = Timers(bench, reader)
    timers.pass_ms(150)
    bench.ask("XCLAIM s g a 0 1-0 FORCE JUSTID RETRYCOUNT 1")
    timers.pass_ms(299)
    assert reader.woken == 0
    timers.pass_ms(2)
    assert reader.got[0][1][0][2:] == [300, 1]
