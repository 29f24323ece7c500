"""A base of commands: what is written at each level, and that a replay of it has the same data."""

from __future__ import annotations

import random
import re

import pytest

from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.engine import compat
from penstock.engine.execute import Engine
from penstock.persist.aof.commands_out import RUN_MAX, write_commands
from tests.support.campaign import cases
from tests.support.engine.effects import Replay, texts_of
from tests.support.engine.engine_state import engine_state
from tests.support.engine.engines import START_MS, Bench
from tests.support.random.rdb_workload import workload
from tests.support.random.stream_extras import add_producers, add_returned

NAMES_SINCE = (8, 6)
RETURNED_SINCE = (8, 8)
LEVELS = list(compat.LEVELS)


def bench_with(*lines: str) -> Bench:
    bench = Bench("8.10")
    bench.engine.context.keyspace.clear()
    for line in lines:
        bench.ask(line)
    return bench


def commands_of(bench: Bench, level: str) -> bytes:
    pieces: list[bytes] = []
    write_commands(pieces.append, bench.engine.context.databases, compat.LEVELS[level])
    return b"".join(pieces)


def words_of(bench: Bench, level: str, *names: str) -> list[str]:
    """The commands with these names."""
    return [line for line in texts_of(commands_of(bench, level)) if line.split()[0] in names]


def replayed(bench: Bench, level: str) -> Engine:
    """An engine that has run the commands."""
    replay = Replay(level, ours=False)
    replay.feed(commands_of(bench, level))
    return replay.engine


def kept(engine: Engine) -> list[str]:
    """All data of an engine that commands can express: no tombstones, and no counters of names."""
    lines = [line for line in engine_state(engine) if not line.startswith("  node")]
    for keyspace in engine.context.databases:
        for key, value in sorted(keyspace.values.items()):
            if isinstance(value, Stream):
                lines.append(f"{keyspace.index} {key!r} {value.range().entries()}")
            elif isinstance(value, ListValue):
                lines.append(f"{keyspace.index} {key!r} {value.range(0, value.length - 1)}")
    return [line for line in lines if not re.match(r"  producers added=", line)]


# --- Producers ------------------------------------------------------------------------------------

NAMED = ("XADD s IDMP q b * k v", "XADD s IDMP p b * k v", "XADD s IDMP p a * k v")


def test_names_are_recorded_in_their_order() -> None:
    bench = bench_with(*NAMED)
    assert words_of(bench, "8.6", "XCFGSET", "XIDMPRECORD") == [
        "XCFGSET s IDMP-DURATION 100 IDMP-MAXSIZE 100",
        f"XIDMPRECORD s q b {START_MS}-0",
        f"XIDMPRECORD s p b {START_MS}-1",
        f"XIDMPRECORD s p a {START_MS}-2",
    ]
    assert kept(replayed(bench, "8.6")) == kept(bench.engine)


def test_below_8_6_names_are_left_out() -> None:
    bench = bench_with(*NAMED, "XCFGSET s IDMP-DURATION 5")
    assert words_of(bench, "8.4", "XCFGSET", "XIDMPRECORD") == []
    assert len(words_of(bench, "8.4", "XADD")) == 3


@pytest.mark.parametrize(
    ("settings", "written"),
    [
        ("IDMP-DURATION 100", False),
        ("IDMP-DURATION 5", True),
        ("IDMP-MAXSIZE 10000", True),
    ],
)
def test_settings_are_written_unless_they_are_the_defaults(settings: str, written: bool) -> None:
    bench = bench_with("XADD s 1-0 k v", f"XCFGSET s {settings}")
    assert bool(words_of(bench, "8.6", "XCFGSET")) == written
    assert kept(replayed(bench, "8.6")) == kept(bench.engine)


def test_settings_are_written_if_the_server_has_other_defaults() -> None:
    """The log may be read by a server that has not."""
    bench = bench_with("XADD s 1-0 k v")
    bench.engine.limits.idempotency = type(bench.engine.limits.idempotency)(7, 7)
    bench.ask("XADD t 1-0 k v")
    assert words_of(bench, "8.6", "XCFGSET") == [
        "XCFGSET s IDMP-DURATION 100 IDMP-MAXSIZE 100",
        "XCFGSET t IDMP-DURATION 7 IDMP-MAXSIZE 7",
    ]


@pytest.mark.parametrize(
    "removal", ["XDEL s 1700000000000-1", "XTRIM s MAXLEN 0", "XTRIM s MAXLEN 1"]
)
def test_a_name_outlives_its_entry(removal: str) -> None:
    """Redis 8.6 leaves out such names, and would add the message again."""
    bench = bench_with(*NAMED, removal, "XADD s 1800000000000-0 k v")
    engine = replayed(bench, "8.6")
    assert kept(engine) == kept(bench.engine)
    before = [line for line in kept(bench.engine) if " is " in line]
    assert len(before) == 3
    lines = texts_of(commands_of(bench, "8.6"))
    records = [at for at, line in enumerate(lines) if line.startswith("XIDMPRECORD")]
    assert max(records) < lines.index("XTRIM s MAXLEN 0")


def test_the_counters_of_names_are_not_written() -> None:
    bench = bench_with(*NAMED, NAMED[0], "XADD t 1-0 k v")
    engine = replayed(bench, "8.6")
    known = engine.context.databases[0].values[b"s"].idempotency
    assert (known.added, known.duplicates) == (3, 0)


# --- Returned entries -----------------------------------------------------------------------------

RETURNED = (
    *(f"XADD s {number}-0 k v" for number in range(1, 7)),
    "XGROUP CREATE s g 0",
    "XREADGROUP GROUP g alice STREAMS s >",
    "XNACK s g FAIL IDS 2 5-0 2-0 RETRYCOUNT 9",
    "XNACK s g FATAL IDS 1 3-0",
    "XNACK s g FAIL IDS 1 1-0 RETRYCOUNT 9",
)


def test_returned_entries_with_equal_counts_share_a_command_and_keep_their_order() -> None:
    bench = bench_with(*RETURNED)
    assert words_of(bench, "8.8", "XNACK") == [
        "XNACK s g FAIL IDS 2 5-0 2-0 RETRYCOUNT 9 FORCE",
        f"XNACK s g FAIL IDS 1 3-0 RETRYCOUNT {2**63 - 1} FORCE",
        "XNACK s g FAIL IDS 1 1-0 RETRYCOUNT 9 FORCE",
    ]
    assert kept(replayed(bench, "8.8")) == kept(bench.engine)
    assert len(words_of(bench, "8.8", "XCLAIM")) == 2


def test_below_8_8_a_consumer_without_a_name_claims_them() -> None:
    bench = bench_with(*RETURNED)
    assert words_of(bench, "8.6", "XNACK") == []
    claims = words_of(bench, "8.6", "XCLAIM")
    assert claims[2:] == [
        "XCLAIM s g  0 5-0 TIME 0 RETRYCOUNT 9 FORCE JUSTID",
        "XCLAIM s g  0 2-0 TIME 0 RETRYCOUNT 9 FORCE JUSTID",
        f"XCLAIM s g  0 3-0 TIME 0 RETRYCOUNT {2**63 - 1} FORCE JUSTID",
        "XCLAIM s g  0 1-0 TIME 0 RETRYCOUNT 9 FORCE JUSTID",
    ]
    engine = replayed(bench, "8.6")
    lines = [line.strip() for line in engine_state(engine)]
    assert "consumer ''" in lines
    assert "pending 5-0 to '' at 0 x9" in lines


def test_returned_entries_keep_their_order_if_some_are_deleted() -> None:
    bench = bench_with(*RETURNED, "XDEL s 2-0 6-0")
    assert kept(replayed(bench, "8.8")) == kept(bench.engine)
    (line,) = [line for line in kept(bench.engine) if "returned" in line]
    assert line.strip() == "returned 5-0 2-0 3-0 1-0"


def test_many_returned_entries_are_written_in_runs() -> None:
    bench = bench_with("XGROUP CREATE s g 0 MKSTREAM")
    for number in range(1, 2 * RUN_MAX + 2):
        bench.ask(f"XADD s {number}-0 k v")
        bench.ask(f"XNACK s g FAIL IDS 1 {number}-0 FORCE")
    assert [line.split()[5] for line in words_of(bench, "8.8", "XNACK")] == ["64", "64", "1"]
    assert kept(replayed(bench, "8.8")) == kept(bench.engine)


# --- Everything -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(cases(300)))
def test_a_replay_has_the_same_data(seed: int) -> None:
    dice = random.Random(seed)
    level = LEVELS[seed % len(LEVELS)]
    known = tuple(map(int, level.split(".")))
    bench = Bench(level)
    bench.engine.context.keyspace.clear()
    for words in workload(seed, level=level):
        if words[0] == b"SELECT":
            bench.engine.context.keyspace = bench.engine.context.databases[int(words[1])]
        else:
            bench.run(*words)
    for keyspace in bench.engine.context.databases:
        for value in keyspace.values.values():
            if isinstance(value, Stream) and known >= NAMES_SINCE:
                add_producers(dice, value, dice.choice([1, 100, START_MS]))
            if isinstance(value, Stream) and known >= RETURNED_SINCE:
                add_returned(dice, value)
    assert kept(replayed(bench, level)) == kept(bench.engine)
