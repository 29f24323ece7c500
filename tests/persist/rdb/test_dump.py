"""DUMP and RESTORE: their replies, data and effects."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.persist.aof.journal import Journal
from tests.support.rdb.dump_payloads import DumpBench, body_of, sealed
from tests.support.servers.raw_redis import Refusal, encode

WRONG = Refusal("ERR DUMP payload version or checksum are wrong")
BAD = Refusal("ERR Bad data format")
SEVENTEEN = sealed(b"\x00\xc0\x11")


@pytest.fixture
def bench() -> DumpBench:
    return DumpBench("7.0")


def test_a_payload_is_type_value_version_and_checksum(bench: DumpBench) -> None:
    bench.ask("SET n 17")
    assert bench.ask("DUMP n") == SEVENTEEN
    assert SEVENTEEN[:5].hex(" ") == "00 c0 11 0a 00"
    assert bench.ask("DUMP nothing") is None


@pytest.mark.parametrize(
    ("level", "version"),
    [("7.0", 10), ("7.2", 11), ("7.4", 12), ("8.4", 12), ("8.6", 13), ("8.8", 14), ("8.10", 15)],
)
def test_a_level_writes_its_version_and_takes_no_newer_one(level: str, version: int) -> None:
    bench = DumpBench(level)
    bench.ask("SET n 17")
    assert bench.ask("DUMP n")[3:5] == bytes([version, 0])
    assert bench.run("RESTORE", "a", 0, sealed(b"\x00\xc0\x11", version)) == "OK"
    assert bench.run("RESTORE", "b", 0, sealed(b"\x00\xc0\x11", version + 1)) == WRONG


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["k", "x", SEVENTEEN], Refusal("ERR value is not an integer or out of range")),
        (["k", -1, SEVENTEEN], Refusal("ERR Invalid TTL value, must be >= 0")),
        (["k", -1, b"nonsense"], Refusal("ERR Invalid TTL value, must be >= 0")),
        (["k", 0, SEVENTEEN, "REPLACE", "WHAT"], Refusal("ERR syntax error")),
        (["k", 0, SEVENTEEN, "IDLETIME"], Refusal("ERR syntax error")),
        (
            ["k", 0, SEVENTEEN, "IDLETIME", -1],
            Refusal("ERR Invalid IDLETIME value, must be >= 0"),
        ),
        (["k", 0, SEVENTEEN, "IDLETIME", 1, "FREQ", 1], Refusal("ERR syntax error")),
        (
            ["k", 0, SEVENTEEN, "FREQ", 256],
            Refusal("ERR Invalid FREQ value, must be >= 0 and <= 255"),
        ),
        (["there", "x", b"nonsense"], Refusal("BUSYKEY Target key name already exists.")),
        (["k", 0, b""], WRONG),
        (["k", 0, b"123456789"], WRONG),
        (["k", 0, SEVENTEEN[:-1] + b"!"], WRONG),
        (["k", 0, sealed(b"")], BAD),
        (["k", 0, sealed(b"\x63")], BAD),
        (["k", 0, sealed(b"\x02\x01\x01a")], BAD),
        (["k", 0, sealed(b"\x12\x00")], BAD),
        (["k", 0, sealed(b"\x00\x05abc")], BAD),
        (["k", 0, sealed(b"\x00\x01ab")], BAD),
    ],
)
def test_what_is_refused_changes_nothing(bench: DumpBench, words: list[Any], said: Refusal) -> None:
    bench.ask("SET there 1")
    assert bench.run("RESTORE", *words) == said
    assert bench.ask("EXISTS k") == 0
    assert bench.ask("GET there") == b"1"


@pytest.mark.parametrize("options", [["IDLETIME", 5], ["FREQ", 7], ["IDLETIME", 3, "IDLETIME", 4]])
def test_idletime_and_freq_are_accepted_and_ignored(bench: DumpBench, options: list[Any]) -> None:
    assert bench.run("RESTORE", "k", 0, SEVENTEEN, *options) == "OK"
    assert bench.ask("GET k") == b"17"


def test_a_restored_key_is_notified_and_counted(bench: DumpBench) -> None:
    told = bench.listen()
    bench.run("RESTORE", "k", 0, SEVENTEEN)
    assert told.take() == ["new k", "restore k"]
    assert bench.engine.context.dirty == 1
    bench.run("RESTORE", "k", 5000, SEVENTEEN, "REPLACE")
    assert told.take() == ["new k", "restore k"]
    assert bench.ask("PTTL k") == 5000
    bench.run("RESTORE", "k", 0, SEVENTEEN, "REPLACE")
    assert bench.ask("PTTL k") == -1


def test_a_ttl_in_the_past_removes_the_replaced_key(bench: DumpBench) -> None:
    told = bench.listen()
    assert bench.run("RESTORE", "k", 1000, SEVENTEEN, "ABSTTL") == "OK"
    assert bench.run("RESTORE", "k", 2**63 - 1, SEVENTEEN) == "OK"
    assert told.take() == []
    bench.ask("SET k 1")
    told.take()
    assert bench.run("RESTORE", "k", 1000, SEVENTEEN, "ABSTTL", "REPLACE") == "OK"
    assert told.take() == ["del k"]
    assert bench.ask("EXISTS k") == 0


def test_it_is_recorded_with_its_absolute_time(bench: DumpBench) -> None:
    journal = Journal()
    bench.engine.context.effects = journal
    bench.run("RESTORE", "k", 5000, SEVENTEEN, "IDLETIME", 3)
    when = b"%d" % (bench.clock.at_ms + 5000)
    bench.run("RESTORE", "k", 0, SEVENTEEN, "REPLACE")
    bench.run("RESTORE", "k", 1, SEVENTEEN, "ABSTTL", "REPLACE")
    bench.run("RESTORE", "k", 1, SEVENTEEN, "ABSTTL", "REPLACE")
    assert journal.take() == b"".join(
        map(
            encode,
            [
                [b"SELECT", b"0"],
                [b"RESTORE", b"k", when, SEVENTEEN, b"ABSTTL"],
                [b"RESTORE", b"k", b"0", SEVENTEEN, b"ABSTTL", b"REPLACE"],
                [b"DEL", b"k"],
            ],
        )
    )


def test_a_recorded_restore_is_replayed_at_any_time(bench: DumpBench) -> None:
    bench.engine.context.replaying = True
    assert bench.run("RESTORE", "k", 1000, sealed(b"\x00\xc0\x11", 13), "ABSTTL") == "OK"
    assert bench.engine.context.keyspace.expiry_or_none(b"k") == 1000


def test_blocked_readers_are_served_by_a_restored_stream(bench: DumpBench) -> None:
    bench.ask("XADD s 5-0 k v")
    payload = bench.ask("DUMP s")
    bench.ask("DEL s")
    reader = bench.park("XREAD BLOCK 0 STREAMS s 0")
    bench.run("RESTORE", "s", 0, payload)
    assert reader.got == [[b"s", [[b"5-0", [b"k", b"v"]]]]]


def test_a_stream_comes_back_with_its_groups(bench: DumpBench) -> None:
    for number in range(1, 200):
        bench.ask(f"XADD s {number}-0 k {'v' * (number % 90)}")
    bench.ask("XGROUP CREATE s g 0")
    bench.ask("XREADGROUP GROUP g alice COUNT 20 STREAMS s >")
    bench.ask("XDEL s 7-0 190-0")
    before = bench.ask("XINFO STREAM s FULL COUNT 0")
    payload = bench.ask("DUMP s")
    assert bench.run("RESTORE", "s", 0, payload, "REPLACE") == "OK"
    assert bench.ask("XINFO STREAM s FULL COUNT 0") == before
    assert body_of(bench.ask("DUMP s")) == body_of(payload)


def test_producers_and_returned_entries_come_back() -> None:
    bench = DumpBench("8.8")
    for name in ("a", "b", "a"):
        bench.ask(f"XADD s IDMP p {name} * k v")
    bench.ask("XGROUP CREATE s g 0")
    bench.ask("XREADGROUP GROUP g alice STREAMS s >")
    bench.ask(f"XNACK s g FAIL IDS 1 {bench.clock.at_ms}-1")
    before = bench.ask("XINFO STREAM s FULL COUNT 0")
    payload = bench.ask("DUMP s")
    assert payload[0] == 27
    assert bench.run("RESTORE", "s", 0, payload, "REPLACE") == "OK"
    assert bench.ask("XINFO STREAM s FULL COUNT 0") == before
    assert bench.ask("DUMP s") == payload
    assert bench.ask("XADD s IDMP p b * k v") == b"%d-1" % bench.clock.at_ms
