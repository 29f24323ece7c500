"""PENSTOCK APPENDBATCH: all of a batch or nothing, exactly once."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core.check import check_stream
from tests.support.engine.effects import Recorder, Replay
from tests.support.engine.engine_state import engine_state
from tests.support.engine.engines import SYNTAX, WRONG_TYPE, Bench
from tests.support.servers.raw_redis import Refusal
from tests.support.spark.row_blobs import Row, append_batch, blob_of

TWO_ROWS = blob_of(["k", "a"], ["k", "b", "l", ""])
ONE_ROW = blob_of(["k", "c"])
BATCH_ID = "ERR batch id must be a number from 0"
NUMKEYS = "ERR numkeys must count record, stream and staging: 3 or more"


@pytest.fixture
def bench() -> Bench:
    """Two staging keys: one with three rows in two blobs, one with a single row."""
    bench = Bench()
    bench.run("RPUSH", "p0", TWO_ROWS, ONE_ROW)
    bench.run("RPUSH", "p1", blob_of(["k", "d"]))
    return bench


def values(bench: Bench, stream: str = "s") -> list[Any]:
    """The fields of all entries."""
    check_stream(bench.stream(stream))
    return [entry[1] for entry in bench.ask(f"XRANGE {stream} - +")]


def test_all_rows_are_appended_in_the_order_of_the_keys(bench: Bench) -> None:
    assert bench.run(*append_batch(7, "r", "s", "p0", "p1")) == 4
    expected = [[b"k", b"a"], [b"k", b"b", b"l", b""], [b"k", b"c"], [b"k", b"d"]]
    assert values(bench) == expected
    assert bench.ask("GET r") == b"7"
    assert bench.ask("EXISTS p0 p1") == 0


def test_ids_continue_after_the_existing_ones(bench: Bench) -> None:
    bench.ask("XADD s 1800000000000-5 k v")
    bench.run(*append_batch(0, "r", "s", "p1"))
    assert [entry[0] for entry in bench.ask("XRANGE s - +")][-1] == b"1800000000000-6"


@pytest.mark.parametrize("batch", [6, 7])
def test_a_batch_that_was_recorded_is_only_cleared_away(bench: Bench, batch: int) -> None:
    bench.ask("SET r 7")
    assert bench.run(*append_batch(batch, "r", "s", "p0", "gone", "p1")) == 0
    assert bench.ask("EXISTS s p0 p1") == 0
    assert bench.ask("GET r") == b"7"


def test_the_next_batch_is_appended(bench: Bench) -> None:
    assert bench.run(*append_batch(0, "r", "s", "p0")) == 3
    assert bench.run(*append_batch(1, "r", "s", "p1")) == 1
    assert bench.stream().length == 4


def test_the_record_stays_for_ever(bench: Bench) -> None:
    bench.ask("SET r 3 EX 100")
    bench.run(*append_batch(4, "r", "s", "p0"))
    assert bench.ask("TTL r") == -1


def test_a_batch_without_rows_is_recorded_and_makes_no_stream(bench: Bench) -> None:
    bench.run("RPUSH", "empty", blob_of())
    assert bench.run(*append_batch(1, "r", "s", "empty")) == 0
    assert bench.ask("GET r") == b"1"
    assert bench.ask("EXISTS s empty") == 0


@pytest.mark.parametrize(
    ("trim", "left"),
    [
        ("MAXLEN 2", 2),
        ("MAXLEN = 0", 0),
        ("MAXLEN ~ 2", 2),
        ("MAXLEN ~ 1 LIMIT 0", 2),
        ("MINID 9999999999999", 0),
        ("MINID ~ 1700000000000-3", 2),
        ("MINID 0", 4),
    ],
)
def test_the_stream_is_trimmed_behind_the_last_row(bench: Bench, trim: str, left: int) -> None:
    bench.engine.limits.entries_max = 2
    assert bench.run(*append_batch(1, "r", "s", "p0", "p1", trim=trim)) == 4
    assert bench.stream().length == left


def test_an_approximate_trim_has_no_limit_unless_one_is_given() -> None:
    for trim, left in (("MAXLEN ~ 10", 10), ("MAXLEN ~ 10 LIMIT 50", 250)):
        bench = Bench()
        bench.engine.limits.entries_max = 1  # so that XTRIM would stop after 100 entries
        bench.run("RPUSH", "p", blob_of(*[["k", "v"]] * 300))
        assert bench.run(*append_batch(1, "r", "s", "p", trim=trim)) == 300
        assert bench.stream().length == left


# --- Refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("x 3 r s p0", BATCH_ID),
        ("-1 3 r s p0", BATCH_ID),
        ("9223372036854775808 3 r s p0", BATCH_ID),
        ("1 2 r s p0", NUMKEYS),
        ("1 x r s p0", NUMKEYS),
        ("1 4 r s p0", SYNTAX),
        ("1 3 r s p0 p1", SYNTAX),
        ("1 3 r s p0 MAXLEN", SYNTAX),
        ("1 3 r s p0 MAXLEN x", "ERR value is not an integer or out of range"),
        (
            "1 3 r s p0 MAXLEN 5 LIMIT 3",
            SYNTAX + ", LIMIT cannot be used without the special ~ option",
        ),
        ("1 3 r r p0", "ERR record, stream and staging must be different keys"),
        ("1 4 r s p0 p0", "ERR record, stream and staging must be different keys"),
        ("1 3 p1 s p0", WRONG_TYPE),
        ("1 3 r p1 p0", WRONG_TYPE),
        ("1 3 r string p0", WRONG_TYPE),
        ("1 4 r s p0 string", WRONG_TYPE),
        ("1 3 string s p0", "ERR value is not an integer or out of range"),
        (
            "1 4 r s p0 gone",
            "ERR no such staging key: 'gone'; it has expired, or the batch was given up",
        ),
        (
            "1 4 r s p0 bad",
            "ERR staging key 'bad' holds no rows: byte 0: expected an array, found 110",
        ),
        ("1 4 r s p0 number", "ERR staging key 'number' holds a number instead of rows"),
        (
            "1 3 r last p0",
            "ERR The stream has exhausted the last possible ID, unable to add more items",
        ),
    ],
)
def test_a_refused_command_changes_nothing(bench: Bench, line: str, text: str) -> None:
    bench.run("RPUSH", "bad", ONE_ROW, "none")
    bench.run("RPUSH", "number", ONE_ROW, 17)
    bench.ask("XADD last 18446744073709551615-18446744073709551613 k v")
    before = engine_state(bench.engine)
    assert bench.ask(f"PENSTOCK APPENDBATCH {line}") == Refusal(text)
    assert engine_state(bench.engine) == before


def test_the_last_two_ids_are_given_out() -> None:
    bench = Bench()
    bench.ask("XADD s 18446744073709551615-18446744073709551613 k v")
    bench.run("RPUSH", "p", TWO_ROWS)
    assert bench.run(*append_batch(1, "r", "s", "p")) == 2


# --- Waiters, watchers and listeners ---------------------------------------------------------------


def test_waiting_readers_are_served_once_with_all_of_it(bench: Bench) -> None:
    reader = bench.park("XREAD BLOCK 0 STREAMS s $")
    bench.run(*append_batch(1, "r", "s", "p0"))
    assert reader.woken == 1
    [[key, entries]] = reader.got
    assert (key, len(entries)) == (b"s", 3)


def test_every_change_is_published(bench: Bench) -> None:
    told = bench.listen()
    bench.run(*append_batch(1, "r", "s", "p0", "p1", trim="MAXLEN 1"))
    assert told.take() == [
        *("new s", "xadd s", "xadd s", "xadd s", "xadd s", "xtrim s"),
        *("new r", "set r", "del p0", "del p1"),
    ]


def test_every_entry_is_published_even_if_entries_added_is_at_its_limit(bench: Bench) -> None:
    bench.ask("XGROUP CREATE s g 0 MKSTREAM")
    bench.ask("XSETID s 0-0 ENTRIESADDED 9223372036854775807")
    told = bench.listen()
    bench.run(*append_batch(1, "r", "s", "p0"))
    assert told.take()[:3] == ["xadd s"] * 3


def test_watches_on_each_key_break(bench: Bench) -> None:
    watches = [bench.watch(key) for key in ("r", "s", "p0")]
    bench.run(*append_batch(1, "r", "s", "p0"))
    assert all(watch.broken for watch in watches)


def test_the_changes_are_counted_as_those_of_the_effects(bench: Bench) -> None:
    before = bench.engine.context.dirty
    bench.run(*append_batch(1, "r", "s", "p0", "p1", trim="MAXLEN 1"))
    assert bench.engine.context.dirty - before == 4 + 3 + 1 + 2


def test_the_effects_of_large_rows_do_the_same_again() -> None:
    recorder = Recorder()
    rows: list[Row] = [[f"name{n % 7}", b"x" * (n * 37 % 5000), "n", str(n)] for n in range(500)]
    recorder.run("RPUSH", "p", blob_of(*rows[:300]), blob_of(*rows[300:]))
    recorder.run(*append_batch(5, "r", "s", "p", trim="MAXLEN ~ 100"))
    recorder.take()
    replay = Replay()
    replay.feed(recorder.data)
    assert replay.state() == engine_state(recorder.engine)
