"""Deleted data is freed later, and nobody can tell: replies, effects and data are those of an engine that
frees at once, whatever runs between two steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.garbage import Garbage
from penstock.core.groups.group import VAIN_SCANS_MAX
from tests.support.engine.effects import Recorder
from tests.support.engine.engine_state import engine_state

KEYS = st.sampled_from(["s", "t", "l"])
COMMANDS = st.one_of(
    st.builds("XADD {} * k v".format, KEYS),
    st.builds("XADD {} MAXLEN = {} * k v".format, KEYS, st.integers(0, 9)),
    st.builds("XTRIM {} MAXLEN {}".format, KEYS, st.integers(0, 9)),
    st.builds("XTRIM {} MAXLEN ~ {} LIMIT 3".format, KEYS, st.integers(0, 9)),
    st.builds("XTRIM {} MAXLEN {} DELREF".format, KEYS, st.integers(0, 9)),
    st.builds("XTRIM {} MINID {}".format, KEYS, st.integers(1_700_000_000_000, 1_700_000_000_030)),
    st.builds("XGROUP CREATE {} {} 0 MKSTREAM".format, KEYS, st.sampled_from("gh")),
    st.builds("XGROUP DESTROY {} {}".format, KEYS, st.sampled_from("gh")),
    st.builds("XGROUP DELCONSUMER {} {} {}".format, KEYS, *[st.sampled_from("gh")] * 2),
    st.builds(
        "XREADGROUP GROUP {} {} COUNT {} STREAMS {} >".format,
        *[st.sampled_from("gh")] * 2,
        st.integers(1, 9),
        KEYS,
    ),
    st.builds("XAUTOCLAIM {} g {} 0 0 COUNT 3".format, KEYS, st.sampled_from("gh")),
    st.builds("XPENDING {} g".format, KEYS),
    st.builds("XRANGE {} - +".format, KEYS),
    st.builds("RPUSH l {}".format, st.integers(0, 9)),
    st.builds("SET {} x".format, KEYS),
    st.builds("PEXPIRE {} 1".format, KEYS),
    st.builds("DEL {} {}".format, KEYS, KEYS),
    st.builds("UNLINK {}".format, KEYS),
    st.builds("RENAME {} {}".format, KEYS, KEYS),
    st.builds("COPY {} {} REPLACE".format, KEYS, KEYS),
    st.builds("MOVE {} 1".format, KEYS),
    st.sampled_from(["FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "SCAN 0", "DBSIZE"]),
)


def deferred(bench: Recorder) -> Garbage:
    """Let a bench free later, as a server does."""
    garbage: Garbage = bench.engine.context.garbage
    garbage.wake = lambda: None
    return garbage


@given(st.lists(st.tuples(COMMANDS, st.booleans()), max_size=60))
def test_freeing_later_changes_no_reply_no_effect_and_no_data(
    steps: list[tuple[str, bool]],
) -> None:
    direct, later = Recorder(), Recorder()
    garbage = deferred(later)
    for bench in (direct, later):
        bench.engine.limits.entries_max = 2
    for line, frees in steps:
        for bench in (direct, later):
            bench.clock.at_ms += 1
        assert later.ask(line) == direct.ask(line)
        assert later.take() == direct.take()
        if frees:
            garbage.free_some()
        assert later.state() == direct.state()
    garbage.free_all()
    assert engine_state(later.engine) == engine_state(direct.engine)


@pytest.mark.parametrize(
    "line",
    ["DEL s", "UNLINK s", "SET s x", "RENAME t s", "COPY t s REPLACE", "FLUSHALL", "FLUSHDB"],
)
def test_every_deletion_leaves_the_freeing_to_the_owner(line: str) -> None:
    bench = Recorder()
    garbage = deferred(bench)
    for _ in range(500):
        bench.ask("XADD s * k v")
    bench.ask("XADD t * k v")
    bench.ask(line)
    assert len(garbage) > 0
    garbage.free_all()
    assert len(garbage) == 0
    bench.state()


def test_an_expired_stream_is_freed_later() -> None:
    bench = Recorder()
    garbage = deferred(bench)
    bench.ask("XADD s * k v")
    bench.ask("PEXPIRE s 1")
    bench.clock.at_ms += 2
    assert bench.engine.expire_due(10) == 1
    assert len(garbage) == 1


def test_a_renamed_value_is_not_garbage() -> None:
    bench = Recorder()
    garbage = deferred(bench)
    bench.ask("XADD s 1-0 k v")
    bench.ask("RENAME s t")
    bench.ask("MOVE t 1")
    garbage.free_all()
    bench.select(1)
    assert bench.ask("XRANGE t - +") == [[b"1-0", [b"k", b"v"]]]


@pytest.mark.parametrize("entries", [9, 10, 11])
def test_a_consumer_with_most_of_the_records_leaves_those_of_the_others(entries: int) -> None:
    bench = Recorder()
    garbage = deferred(bench)
    for number in range(1, entries + 3):
        bench.ask(f"XADD s {number}-0 k v")
    bench.ask("XGROUP CREATE s g 0")
    bench.ask(f"XREADGROUP GROUP g c COUNT {entries} STREAMS s >")
    bench.ask("XREADGROUP GROUP g d STREAMS s >")
    bench.ask("XNACK s g FAIL IDS 1 1-0")
    assert bench.ask("XGROUP DELCONSUMER s g c") == entries - 1
    garbage.free_all()
    bench.state()
    last = entries + 2
    assert bench.ask("XPENDING s g") == [
        3,
        b"1-0",
        f"{last}-0".encode(),
        [[b"d", b"2"]],
    ]
    assert bench.ask(f"XACK s g 1-0 2-0 {last}-0") == 2


def test_an_autoclaim_over_many_orphans_stops_and_goes_on_from_its_cursor() -> None:
    bench = Recorder()
    orphans = 2 * VAIN_SCANS_MAX + 5
    for number in range(1, orphans + 1):
        bench.ask(f"XADD s {number}-0 k v")
    bench.ask("XGROUP CREATE s g 0")
    bench.ask("XREADGROUP GROUP g c STREAMS s >")
    bench.ask("XTRIM s MAXLEN 1")
    calls: list[Any] = []
    start, claimed = b"0-0", []
    while not calls or start != b"0-0":
        start, entries, deleted = bench.run("XAUTOCLAIM", "s", "g", "d", 0, start, "COUNT", 10**6)
        calls.append(len(deleted))
        claimed += entries
    assert calls == [VAIN_SCANS_MAX, VAIN_SCANS_MAX, 4]
    assert [entry[0] for entry in claimed] == [f"{orphans}-0".encode()]
    assert bench.ask("XPENDING s g")[0] == 1
