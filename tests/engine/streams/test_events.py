"""Stream commands report their changes: events, broken watches, counted changes."""

from __future__ import annotations

import pytest

from tests.support.engine.engines import Bench
from tests.support.engine.stream_changes import (
    CHANGES,
    CHANGES_8_6,
    GROUPED,
    MADE_CONSUMER,
    PENDING,
    READ_UP,
    WOKEN,
    Change,
    commands,
)


def prepared(before: str, version: str = "7.0") -> Bench:
    bench = Bench(version)
    for line in commands(before):
        bench.ask(line)
    return bench


def outcome(bench: Bench, line: str) -> tuple[tuple[str, ...], int, bool]:
    told, watch, dirty = bench.listen(), bench.watch(), bench.engine.context.dirty
    bench.ask(line)
    return tuple(told.take()), bench.engine.context.dirty - dirty, watch.broken


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_command_publishes_its_events(change: Change) -> None:
    expected = (change.events, change.dirty, change.breaks_watch)
    assert outcome(prepared(change.before), change.line) == expected


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_without_listeners_a_command_counts_the_same(change: Change) -> None:
    bench = prepared(change.before)
    dirty = bench.engine.context.dirty
    bench.ask(change.line)
    assert bench.engine.context.dirty - dirty == change.dirty


@pytest.mark.parametrize(("before", "blocked", "change"), WOKEN, ids=str)
def test_a_served_reader_publishes_after_the_command_that_served_it(
    before: str, blocked: str, change: Change
) -> None:
    bench = prepared(before)
    reader = bench.park(blocked)
    assert outcome(bench, change.line) == (change.events, change.dirty, change.breaks_watch)
    assert reader.woken == 1


# --- Later versions -------------------------------------------------------------------------------


@pytest.mark.parametrize("change", CHANGES_8_6, ids=str)
def test_a_command_of_redis_8_publishes_its_events(change: Change) -> None:
    expected = (change.events, change.dirty, change.breaks_watch)
    assert outcome(prepared(change.before, "8.6"), change.line) == expected


def test_returned_entries_are_counted_and_publish_nothing() -> None:
    bench = prepared(PENDING, "8.8")
    assert outcome(bench, "XNACK s g FAIL IDS 3 1 2 9") == ((), 2, False)
    assert outcome(bench, "XNACK s g FAIL IDS 1 9") == ((), 0, False)


def test_a_consumer_created_by_an_empty_read_is_published_since_7_2() -> None:
    for line in (
        "XREADGROUP GROUP g b STREAMS s >",
        "XCLAIM s g b 0 9",
        "XAUTOCLAIM s g b 100000 0",
    ):
        assert outcome(prepared(READ_UP, "7.2"), line) == ((MADE_CONSUMER,), 1, False)


def test_a_woken_reader_runs_its_command_and_counts_since_7_2() -> None:
    bench = prepared(READ_UP, "7.2")
    bench.park("XREADGROUP GROUP g b BLOCK 0 STREAMS s >")
    assert outcome(bench, "XADD s 4 k v") == (("xadd s",), 2, True)


def test_history_is_no_change_since_7_4() -> None:
    line = "XREADGROUP GROUP g a STREAMS s 0"
    assert [outcome(prepared(PENDING, v), line)[1] for v in ("7.0", "7.2", "7.4")] == [1, 1, 0]
    assert outcome(prepared(GROUPED, "7.4"), line) == ((MADE_CONSUMER,), 1, False)
