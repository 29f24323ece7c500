"""XADD, XTRIM, XDEL and XLEN on an engine."""

from __future__ import annotations

import pytest

from penstock.core.stream import ENTRY_BYTES_MAX
from penstock.engine.commands.streams import append
from penstock.errors import CommandError
from tests.support.engine.engines import (
    INVALID_ID,
    NOT_A_NUMBER,
    START_MS,
    STRING_KEY,
    WRONG_TYPE,
    Bench,
    assert_refused,
    command_of,
)
from tests.support.engine.streams import frame_of
from tests.support.servers.raw_redis import Refusal

TOP = "18446744073709551615"
NOT_ABOVE_TOP = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
EXHAUSTED = "ERR The stream has exhausted the last possible ID, unable to add more items"
XADD_ARITY = "ERR wrong number of arguments for 'xadd' command"


def bench_with(*entry_ids: str, entries_max: int = 100) -> Bench:
    bench = Bench()
    bench.engine.limits.entries_max = entries_max
    for entry_id in entry_ids:
        assert bench.run("XADD", "s", entry_id, "k", "v") == entry_id.encode()
    return bench


def ids_of(bench: Bench) -> list[bytes]:
    return [entry_id for entry_id, _ in bench.ask("XRANGE s - +")]


# --- Ids ------------------------------------------------------------------------------------------


def test_an_automatic_id_is_the_time_and_counts_within_a_millisecond() -> None:
    bench = Bench()
    assert bench.ask("XADD s * k v") == b"%d-0" % START_MS
    assert bench.ask("XADD s * k v") == b"%d-1" % START_MS
    bench.clock.at_ms += 5
    assert bench.ask("XADD s * k v") == b"%d-0" % (START_MS + 5)


def test_a_clock_that_steps_back_does_not_take_ids_with_it() -> None:
    bench = bench_with(f"{START_MS + 100}-7")
    assert bench.ask("XADD s * k v") == b"%d-8" % (START_MS + 100)


def test_a_clock_before_1970_counts_as_1970() -> None:
    bench = Bench(start_ms=-5)
    assert bench.ask("XADD s * k v") == b"0-1"


def test_an_automatic_id_moves_to_the_next_millisecond_when_one_is_full() -> None:
    bench = bench_with(f"{2**62}-{TOP}")
    assert bench.ask("XADD s * k v") == b"%d-0" % (2**62 + 1)


@pytest.mark.parametrize(
    ("last", "given", "expected"),
    [
        ("5-5", "5-*", b"5-6"),
        ("5-5", "6-*", b"6-0"),
        ("5-5", "6", b"6-0"),
        ("5-5", "5-6", b"5-6"),
    ],
)
def test_an_incomplete_id_is_completed(last: str, given: str, expected: bytes) -> None:
    assert bench_with(last).run("XADD", "s", given, "k", "v") == expected


def test_the_first_free_number_of_millisecond_zero_is_one() -> None:
    assert Bench().ask("XADD s 0-* k v") == b"0-1"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("5-5", NOT_ABOVE_TOP),
        ("5-4", NOT_ABOVE_TOP),
        ("5", NOT_ABOVE_TOP),
        ("4-*", NOT_ABOVE_TOP),
        ("0-0", "ERR The ID specified in XADD must be greater than 0-0"),
        ("0", "ERR The ID specified in XADD must be greater than 0-0"),
        *((bad, INVALID_ID) for bad in ("-", "+", "a", "1-", "1-2-3", "$", ">", "1e3", "(5-6")),
        *((bad, INVALID_ID) for bad in ("*-1", "**", "5-**", "-*", "18446744073709551616-0")),
    ],
)
def test_an_id_that_cannot_follow_is_refused(given: str, text: str) -> None:
    assert_refused(bench_with("5-5"), f"XADD s {given} k v", text)


def test_a_full_millisecond_takes_no_more_entries_by_star() -> None:
    assert_refused(bench_with(f"5-{TOP}"), "XADD s 5-* k v", NOT_ABOVE_TOP)


@pytest.mark.parametrize("given", ["*", f"{TOP}-*", f"{TOP}-{TOP}", "1-1"])
def test_after_the_last_possible_id_nothing_can_be_added(given: str) -> None:
    assert_refused(bench_with(f"{TOP}-{TOP}"), f"XADD s {given} k v", EXHAUSTED)


# --- Options --------------------------------------------------------------------------------------


def test_without_its_key_a_stream_is_made_unless_that_is_not_wanted() -> None:
    bench = Bench()
    assert bench.ask("XADD s NOMKSTREAM 1-0 k v") is None
    assert bench.state() == []
    assert bench.ask("XADD s 1-0 k v") == b"1-0"
    assert bench.ask("xadd s nomkstream 2-0 k v") == b"2-0"


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ("MAXLEN 2", [b"4-0", b"9-0"]),
        ("MAXLEN = 1", [b"9-0"]),
        ("MAXLEN 0", []),
        ("MINID 3-0", [b"3-0", b"4-0", b"9-0"]),
        ("MINID = 3-1", [b"4-0", b"9-0"]),
        ("MINID 9-1", []),
        ("MAXLEN ~ 2", [b"3-0", b"4-0", b"9-0"]),
        ("MINID ~ 4", [b"3-0", b"4-0", b"9-0"]),
        ("MAXLEN ~ 0 LIMIT 3", [b"3-0", b"4-0", b"9-0"]),
        ("MAXLEN ~ 0 LIMIT 1", [b"1-0", b"2-0", b"3-0", b"4-0", b"9-0"]),
        ("MAXLEN ~ 0 LIMIT 0", []),
    ],
)
def test_an_entry_is_added_first_and_then_the_stream_is_trimmed(
    options: str, left: list[bytes]
) -> None:
    bench = bench_with("1-0", "2-0", "3-0", "4-0", entries_max=2)
    assert bench.ask(f"XADD s {options} 9-0 k v") == b"9-0"
    assert ids_of(bench) == left


def test_an_approximate_trim_removes_at_most_a_hundred_nodes_at_once() -> None:
    bench = bench_with(*(f"{n}-0" for n in range(1, 206)), entries_max=1)
    assert bench.ask("XTRIM s MAXLEN ~ 0") == append.TRIM_NODES_DEFAULT
    assert bench.ask("XTRIM s MAXLEN ~ 0 LIMIT 0") == 105


def test_trimming_without_the_key_removes_nothing() -> None:
    bench = Bench()
    assert bench.ask("XTRIM s MAXLEN 0") == 0
    assert bench.state() == []


OPTION_REFUSALS = [
    (
        "MAXLEN 1 MINID 1-0",
        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
    ),
    (
        "MAXLEN 1 MAXLEN 1",
        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
    ),
    ("MAXLEN -1", "ERR The MAXLEN argument must be >= 0."),
    ("MAXLEN ~ 1 LIMIT -1", "ERR The LIMIT argument must be >= 0."),
    ("MAXLEN 1 LIMIT 1", "ERR syntax error, LIMIT cannot be used without the special ~ option"),
    ("MINID = 1 LIMIT 1", "ERR syntax error, LIMIT cannot be used without the special ~ option"),
    ("LIMIT 1", "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"),
    ("MAXLEN many", NOT_A_NUMBER),
    ("MAXLEN +5", NOT_A_NUMBER),
    ("MAXLEN 007", NOT_A_NUMBER),
    ("MAXLEN 9223372036854775808", NOT_A_NUMBER),
    ("MAXLEN ~ 1 LIMIT 1e3", NOT_A_NUMBER),
    ("MINID many", INVALID_ID),
    ("MINID -", INVALID_ID),
]


@pytest.mark.parametrize(("options", "text"), OPTION_REFUSALS)
def test_invalid_options_are_refused_by_xadd(options: str, text: str) -> None:
    assert_refused(bench_with("1-0"), f"XADD s {options} 9-0 k v", text)


@pytest.mark.parametrize(("options", "text"), OPTION_REFUSALS)
def test_invalid_options_are_refused_by_xtrim(options: str, text: str) -> None:
    assert_refused(bench_with("1-0"), f"XTRIM s {options}", text)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XTRIM s MAXLEN 1 extra", "ERR syntax error"),
        ("XTRIM s MAXLEN ~", NOT_A_NUMBER),
        ("XTRIM s 1-0 1-0", "ERR syntax error"),
        ("XTRIM s NOMKSTREAM MAXLEN 1", "ERR syntax error"),
        ("XTRIM s LIMIT 0", "ERR syntax error, XTRIM must be called with a trimming strategy"),
        ("XTRIM s MAXLEN", "ERR wrong number of arguments for 'xtrim' command"),
        ("XLEN s s", "ERR wrong number of arguments for 'xlen' command"),
        ("XDEL s", "ERR wrong number of arguments for 'xdel' command"),
        ("XADD s *", XADD_ARITY),
        ("XADD s * k", XADD_ARITY),
        ("XADD s * k v k", XADD_ARITY),
        ("XADD s 9-0 k v k", XADD_ARITY),
        ("XADD s MAXLEN 1 *", XADD_ARITY),
        ("XADD s MAXLEN 1 NOMKSTREAM", XADD_ARITY),
    ],
)
def test_too_many_or_too_few_words_are_refused(line: str, text: str) -> None:
    assert_refused(bench_with("1-0"), line, text)


# --- The first error wins -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XADD string MAXLEN -1 0-0 k", "ERR The MAXLEN argument must be >= 0."),
        ("XADD string 0-0 k v k", XADD_ARITY),
        ("XADD string 0-0 k v", "ERR The ID specified in XADD must be greater than 0-0"),
        ("XADD string oops k v k", INVALID_ID),
        ("XADD string 5-0 k v", WRONG_TYPE),
        ("XADD string * k v", WRONG_TYPE),
        ("XTRIM string MAXLEN many", NOT_A_NUMBER),
        ("XTRIM string MAXLEN 1", WRONG_TYPE),
        ("XDEL string oops", WRONG_TYPE),
        ("XLEN string", WRONG_TYPE),
    ],
)
def test_the_first_complaint_is_redis_s(line: str, text: str) -> None:
    assert_refused(bench_with("1-0"), line, text)


def test_a_stream_that_is_refused_its_first_entry_is_not_made() -> None:
    bench = Bench()
    for line in ("XADD s 0-0 k v", "XADD s oops k v", "XADD s * k", "XADD s MAXLEN -1 * k v"):
        assert isinstance(bench.ask(line), Refusal)
    assert list(bench.engine.context.keyspace.values) == [STRING_KEY]


# --- Deleting -------------------------------------------------------------------------------------


def test_deleting_counts_existing_entries() -> None:
    bench = bench_with("1-0", "2-0", "3-0")
    assert bench.ask("XDEL s 1-0 1-0 3 9-9") == 2
    assert ids_of(bench) == [b"2-0"]
    assert bench.ask("XLEN s") == 1


def test_a_stream_without_entries_stays() -> None:
    bench = bench_with("1-0")
    assert bench.ask("XDEL s 1-0") == 1
    assert bench.ask("XLEN s") == 0
    assert bench.ask("XADD s 1-0 k v") == Refusal(NOT_ABOVE_TOP)


def test_all_ids_are_read_before_one_entry_is_deleted() -> None:
    assert_refused(bench_with("1-0", "2-0"), "XDEL s 1-0 oops 2-0", INVALID_ID)


def test_without_the_key_the_ids_to_delete_are_not_even_read() -> None:
    assert Bench().ask("XDEL s oops") == 0


# --- Size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["s", "new"])
@pytest.mark.parametrize("entry_id", ["*", "9-0", "9-*"])
def test_an_entry_of_more_than_a_gibibyte_is_refused(key: str, entry_id: str) -> None:
    bench = bench_with("1-0")
    before = bench.state()
    command, pieces = command_of(["XADD", key, entry_id, "x" * 2**20])
    frame = frame_of(*pieces)
    for _ in range(ENTRY_BYTES_MAX // 2**20 + 1):
        frame.add_span(frame.start(3), frame.size(3))  # the same mebibyte again and again
    with pytest.raises(CommandError, match="Elements are too large to be stored"):
        bench.engine.execute(command, frame)
    assert bench.state() == before
