"""SCAN, KEYS and RANDOMKEY: no key that exists throughout is missed, whatever changes meanwhile."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.key_map import PLACES
from tests.support.engine.engines import NOT_A_NUMBER, SYNTAX, Bench
from tests.support.engine.keyspace_events import EventRecorder
from tests.support.servers.raw_redis import Refusal


def empty_bench() -> Bench:
    bench = Bench()
    bench.ask("FLUSHALL")
    return bench


def filled(count: int) -> Bench:
    bench = empty_bench()
    for n in range(count):
        bench.run("SET", f"k{n}", "v")
    return bench


def scan(bench: Bench, options: str = "") -> list[list[bytes]]:
    """The keys that each call of a whole scan returns."""
    calls: list[list[bytes]] = []
    cursor = b"0"
    while not calls or cursor != b"0":
        cursor, found = bench.run("SCAN", cursor, *options.split())
        calls.append(found)
    return calls


# --- The guarantee ---------------------------------------------------------------------------------

CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "rename", "move"]), st.integers(0, 400)),
    max_size=80,
)


@given(
    staying=st.integers(0, 200),
    count=st.integers(1, 50),
    changes=st.lists(CHANGES, max_size=8),
    seed=st.integers(0, 2**32),
)
def test_a_key_that_stays_is_returned_once_whatever_comes_and_goes(
    staying: int, count: int, changes: list[list[tuple[str, int]]], seed: int
) -> None:
    """Keys are added, removed and renamed between calls, in segments of a few keys."""
    bench = empty_bench()
    bench.engine.context.keyspace.use_segments(4)
    names = [b"%d-%d" % (seed, n) for n in range(staying)]
    for name in names:
        bench.run("SET", name, "v")
    seen: list[bytes] = []
    cursor = b"0"
    while True:
        cursor, found = bench.run("SCAN", cursor, "COUNT", count)
        assert int(cursor) < PLACES
        seen += found
        if cursor == b"0":
            break
        for change, n in changes.pop() if changes else []:
            disturb(bench, change, n)
    stayed = [key for key in seen if key in set(names)]
    assert sorted(stayed) == sorted(names)


def disturb(bench: Bench, change: str, n: int) -> None:
    if change == "add":
        bench.run("SET", f"guest{n}", "v")
    elif change == "remove":
        bench.run("DEL", f"guest{n}", f"guest{n + 1}")
    elif change == "rename":
        bench.run("RENAME", f"guest{n}", f"guest{n + 7}")
    else:
        bench.run("MOVE", f"guest{n}", "1")


# --- Calls -----------------------------------------------------------------------------------------


def test_a_call_returns_about_as_many_keys_as_it_is_asked_for() -> None:
    bench = filled(500)
    assert [len(found) for found in scan(bench)] == [10] * 50
    assert [len(found) for found in scan(bench, "COUNT 300")] == [300, 200]
    assert len(scan(bench, "COUNT 1")) == 500
    assert len(scan(bench, "COUNT 9223372036854775807")) == 1


def test_a_scan_shows_the_keys_of_its_database() -> None:
    bench = filled(100)
    scan(bench)
    bench.ask("SWAPDB 0 1")
    assert scan(bench) == [[]]
    bench.ask("SWAPDB 0 1")
    bench.ask("MOVE k1 1")
    bench.ask("SET new v")
    assert sum(map(len, scan(bench))) == 100
    bench.ask("FLUSHDB")
    assert scan(bench) == [[]]


def test_scan_shows_what_it_is_asked_for() -> None:
    bench = filled(3)
    bench.ask("XADD stream 1-0 k v")
    bench.ask("SET over v PX 1")
    bench.clock.at_ms += 2
    ear = EventRecorder(bench.engine, "KA")
    assert sorted(bench.ask("SCAN 0")[1]) == [b"k0", b"k1", b"k2", b"stream"]
    assert ear.take_events() == ["0:over expired"]
    assert bench.ask("SCAN 0 TYPE Stream") == [b"0", [b"stream"]]
    assert bench.ask("scan 0 match k[12] count 50 type string")[1] in (
        [b"k1", b"k2"],
        [b"k2", b"k1"],
    )
    assert bench.ask("SCAN 0 TYPE hash") == [b"0", []]


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["x"], "ERR invalid cursor"),
        (["0 "], "ERR invalid cursor"),
        (["0x"], "ERR invalid cursor"),
        (["+"], "ERR invalid cursor"),
        (["18446744073709551616"], "ERR invalid cursor"),
        (["9" * 6000], "ERR invalid cursor"),
        (["x", "COUNT", "x"], "ERR invalid cursor"),
        (["0", "COUNT"], SYNTAX),
        (["0", "COUNT", "0"], SYNTAX),
        (["0", "COUNT", "x"], NOT_A_NUMBER),
        (["0", "BOGUS", "x"], SYNTAX),
    ],
)
def test_refusals(words: list[str], refusal: str) -> None:
    assert filled(1).run("SCAN", *words) == Refusal(refusal)


@pytest.mark.parametrize("cursor", [b"+0", b"-0", b"000", b"0\x00x"])
def test_a_cursor_is_read_as_c_would(cursor: bytes) -> None:
    assert filled(1).run("SCAN", cursor) == [b"0", [b"k0"]]


@pytest.mark.parametrize("cursor", [b"18446744073709551615", b"%d" % PLACES])
@pytest.mark.parametrize("count", [1, 100])
def test_behind_the_last_place_there_is_nothing(cursor: bytes, count: int) -> None:
    assert filled(50).run("SCAN", cursor, "COUNT", count) == [b"0", []]


# --- KEYS and RANDOMKEY ----------------------------------------------------------------------------


def test_keys_lists_what_a_pattern_matches_and_removes_nothing() -> None:
    bench = filled(3)
    bench.ask("SET over v PX 1")
    bench.clock.at_ms += 2
    ear = EventRecorder(bench.engine, "KA")
    assert bench.ask("KEYS *") == [b"k0", b"k1", b"k2"]
    assert bench.ask("KEYS k[^1]") == [b"k0", b"k2"]
    assert ear.take_events() == []
    assert bench.ask("DBSIZE") == 4


@pytest.mark.parametrize("count", [1, 10, 65, 1000])
def test_a_random_key_may_be_any(count: int) -> None:
    bench = filled(count)
    bench.engine.context.dice = random.Random(count).randrange
    missing = {b"k%d" % n for n in range(count)}
    # How many keys share a place depends on the secret of this process, and so does a key's chance.
    for _ in range(1000 * count):
        missing.discard(bench.ask("RANDOMKEY"))
        if not missing:
            break
    assert missing == set()


def test_the_dice_that_come_with_an_engine_are_fair_enough() -> None:
    bench = filled(10)
    drawn = [bench.ask("RANDOMKEY") for _ in range(1000)]
    assert all(50 < drawn.count(b"k%d" % n) < 200 for n in range(10))


def test_a_random_key_is_never_an_expired_one() -> None:
    bench = empty_bench()
    assert bench.ask("RANDOMKEY") is None
    for n in range(100):
        bench.run("SET", f"over{n}", "v", "PX", 1)
    bench.ask("SET k v")
    bench.clock.at_ms += 2
    assert bench.ask("RANDOMKEY") == b"k"
    bench.ask("DEL k")
    assert bench.ask("RANDOMKEY") is None
    assert bench.ask("DBSIZE") == 0
