"""Expiry times: setting them, reading them, and expiring."""

from __future__ import annotations

import pytest

from tests.support.engine.engines import NOT_A_NUMBER, START_MS, Bench
from tests.support.engine.keyspace_events import EventRecorder
from tests.support.servers.raw_redis import Refusal

NX_WITH_OTHERS = "ERR NX and XX, GT or LT options at the same time are not compatible"
GT_WITH_LT = "ERR GT and LT options at the same time are not compatible"
MAX_S = (2**63 - 1) // 1000


@pytest.fixture
def bench() -> Bench:
    """A key without an expiry time, and one that expires in 10 seconds."""
    bench = Bench()
    bench.ask("SET stays v")
    bench.ask("SET goes v EX 10")
    return bench


@pytest.mark.parametrize(
    "line",
    [
        "EXPIRE stays 5",
        "PEXPIRE stays 5000",
        f"EXPIREAT stays {START_MS // 1000 + 5}",
        f"PEXPIREAT stays {START_MS + 5000}",
    ],
)
def test_a_time_can_be_given_in_four_ways(bench: Bench, line: str) -> None:
    assert bench.ask(line) == 1
    assert bench.ask("TTL stays") == 5
    assert bench.ask("PTTL stays") == 5000
    assert bench.ask("EXPIRETIME stays") == START_MS // 1000 + 5
    assert bench.ask("PEXPIRETIME stays") == START_MS + 5000


@pytest.mark.parametrize("name", ["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"])
def test_a_key_without_expiry_and_a_missing_key_have_different_replies(
    bench: Bench, name: str
) -> None:
    assert bench.ask(f"{name} stays") == -1
    assert bench.ask(f"{name} missing") == -2


def test_seconds_are_rounded(bench: Bench) -> None:
    bench.ask("PEXPIRE stays 1499")
    bench.ask("PEXPIRE goes 1500")
    assert (bench.ask("TTL stays"), bench.ask("TTL goes")) == (1, 2)


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("EXPIRE stays 20 NX", 1),
        ("EXPIRE goes 20 NX", 0),
        ("EXPIRE stays 20 XX", 0),
        ("EXPIRE goes 20 XX", 1),
        ("EXPIRE stays 20 GT", 0),
        ("EXPIRE goes 20 GT", 1),
        ("EXPIRE goes 10 GT", 0),
        ("EXPIRE goes 5 GT", 0),
        ("EXPIRE stays 20 LT", 1),
        ("EXPIRE goes 20 LT", 0),
        ("EXPIRE goes 10 LT", 0),
        ("EXPIRE goes 5 LT", 1),
        ("EXPIRE stays 5 XX LT", 0),
        ("expire goes 5 xx lt lt", 1),
        ("EXPIRE missing 5", 0),
        ("EXPIRE goes -1 GT", 0),
        ("EXPIRE goes 5 NX XX", Refusal(NX_WITH_OTHERS)),
        ("EXPIRE goes 5 GT NX", Refusal(NX_WITH_OTHERS)),
        ("EXPIRE goes 5 LT GT", Refusal(GT_WITH_LT)),
        ("EXPIRE goes 5 SOON", Refusal("ERR Unsupported option SOON")),
        ("EXPIRE goes x SOON", Refusal("ERR Unsupported option SOON")),
        ("EXPIRE goes x", Refusal(NOT_A_NUMBER)),
    ],
)
def test_conditions(bench: Bench, line: str, reply: object) -> None:
    key, before = line.split()[1], bench.ask(f"PTTL {line.split()[1]}")
    assert bench.ask(line) == reply
    assert (bench.ask(f"PTTL {key}") != before) == (reply == 1)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("expire", MAX_S),
        ("expire", MAX_S + 1),
        ("expire", -MAX_S - 1),
        ("expire", 2**63 - 1),
        ("pexpire", 2**63 - 1),
        ("expireat", MAX_S + 1),
        ("expireat", -(2**63)),
    ],
)
def test_a_time_beyond_64_bits_is_refused_for_any_key(bench: Bench, name: str, number: int) -> None:
    refusal = Refusal(f"ERR invalid expire time in '{name}' command")
    assert bench.run(name, "stays", number) == refusal
    assert bench.run(name, "missing", number) == refusal
    assert bench.ask("TTL stays") == -1


def test_the_last_time_of_all_is_taken(bench: Bench) -> None:
    assert bench.run("PEXPIREAT", "stays", 2**63 - 1) == 1
    assert bench.ask("PEXPIRETIME stays") == 2**63 - 1
    assert bench.run("PEXPIREAT", "goes", -(2**63)) == 1
    assert bench.ask("EXISTS goes") == 0


@pytest.mark.parametrize(
    "line", ["EXPIRE stays 0", "PEXPIRE stays -1", f"PEXPIREAT stays {START_MS}"]
)
def test_a_time_that_is_over_removes_the_key(bench: Bench, line: str) -> None:
    ear = EventRecorder(bench.engine, "KA")
    assert bench.ask(line) == 1
    assert ear.take_events() == ["0:stays del"]
    assert bench.ask("EXISTS stays") == 0


def test_persist_lets_a_key_stay(bench: Bench) -> None:
    ear = EventRecorder(bench.engine, "KA")
    assert [bench.ask(f"PERSIST {key}") for key in ("goes", "goes", "stays", "missing")] == [
        1,
        0,
        0,
        0,
    ]
    assert ear.take_events() == ["0:goes persist"]
    assert bench.ask("TTL goes") == -1


def test_a_key_is_there_in_its_last_millisecond_and_gone_in_the_next(bench: Bench) -> None:
    ear = EventRecorder(bench.engine, "KAm")
    bench.clock.at_ms += 10_000
    assert (bench.ask("GET goes"), bench.ask("PTTL goes")) == (b"v", 0)
    bench.clock.at_ms += 1
    assert bench.ask("GET goes") is None
    assert ear.take_events() == ["0:goes expired", "0:goes keymiss"]


def test_a_sweep_removes_expired_keys_and_nothing_else(bench: Bench) -> None:
    bench.clock.at_ms += 10_000
    assert bench.engine.expire_due(10) == 0
    bench.clock.at_ms += 1
    assert bench.engine.expire_due(10) == 1
    assert bench.engine.expired_keys == 1
    assert bench.ask("KEYS *") == [b"string", b"stays"]


@pytest.mark.parametrize(
    "line", ["SET goes v", "GETSET goes v", "RENAME stays goes", "COPY stays goes REPLACE"]
)
def test_a_replaced_key_stays(bench: Bench, line: str) -> None:
    bench.ask(line)
    bench.clock.at_ms += 20_000
    assert bench.engine.expire_due(10) == 0
    assert bench.ask("GET goes") == b"v"
