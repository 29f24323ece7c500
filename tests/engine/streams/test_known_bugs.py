"""Bugs that other servers have had with streams, one test each. Numbers are issues of redis/redis."""

from __future__ import annotations

import pytest

from penstock.core.stream import Stream
from penstock.persist.rdb.dump import dump_value, restore_value
from penstock.persist.rdb.value import ValueLimits
from penstock.reply import NULL_ARRAY
from tests.support.campaign import SOAK
from tests.support.engine.effects import Recorder, Replay
from tests.support.engine.engine_state import engine_state
from tests.support.engine.engines import Bench, grouped
from tests.support.engine.streams import ids_of

READERS = 1000
MANY = 1_000_000 if SOAK else 10_000
LEVEL = "8.10"


def replayed(recorder: Recorder) -> Replay:
    """A second engine with the effects of the first. Both have the same data."""
    replay = Replay(LEVEL)
    replay.feed(recorder.take())
    assert replay.state() == engine_state(recorder.engine)
    return replay


def reloaded(bench: Bench, key: str = "s") -> Stream:
    """A stream as it comes back from a DUMP."""
    version = bench.engine.context.compat.rdb_version
    limits = ValueLimits(bench.engine.limits, bench.engine.list_limits)
    value = restore_value(dump_value(bench.stream(key), version), version, limits)
    assert isinstance(value, Stream)
    return value


def test_autoclaim_reports_more_deleted_entries_than_its_count_in_parts() -> None:
    """CVE-2022-31144: the array of deleted ids was too small."""
    bench = grouped(*(f"{n}-0" for n in range(1, 51)))
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    bench.ask("XTRIM s MAXLEN 0")
    cursor, seen = b"0-0", []
    for _ in range(10):
        cursor, claimed, deleted = bench.run("XAUTOCLAIM", "s", "g", "b", 0, cursor, "COUNT", 7)
        assert claimed == []
        assert len(deleted) <= 7
        seen += deleted
        if cursor == b"0-0":
            break
    assert seen == [b"%d-0" % n for n in range(1, 51)]


@pytest.mark.parametrize("count", [2**63 - 1, 2**63 // 10, 2**63 // 16, 2**63 // 16 + 1, 2**62])
def test_a_huge_count_of_autoclaim_neither_wraps_nor_allocates(count: int) -> None:
    """CVE-2022-35951: ten times COUNT overflowed."""
    bench = grouped("1-0", "2-0")
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    before = bench.state()
    assert "ERR" in str(bench.ask(f"XAUTOCLAIM s g b 0 0 COUNT {count}"))
    assert bench.state() == before


@pytest.mark.parametrize("count", [8, 9, 1000, MANY])
@pytest.mark.parametrize("option", ["KEEPREF", "DELREF", "ACKED"])
def test_xackdel_takes_any_number_of_ids(count: int, option: str) -> None:
    """CVE-2025-62507: more than 8 ids overflowed the stack."""
    bench = grouped(*(f"{n}-0" for n in range(1, 21)))
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    ids = [f"{n}-0" for n in range(1, count + 1)]
    known = min(count, 20)
    reply = bench.run("XACKDEL", "s", "g", option, "IDS", count, *ids)
    assert reply == [1] * known + [-1] * (count - known)
    assert bench.ask("XLEN s") == 20 - known


def test_deleting_and_trimming_by_id_leaves_a_stream_that_can_be_loaded() -> None:
    """15808: a node of tombstones was left behind, which the loader refuses."""
    bench = Bench(LEVEL)
    for n in range(1, 5):
        bench.ask(f"XADD s {n}-0 k v")
    bench.ask("XDEL s 2-0 3-0")
    for trim in ("MINID 2-0", "MINID 4-0", "MINID 5-0"):
        bench.ask(f"XTRIM s {trim}")
        assert ids_of(reloaded(bench)) == ids_of(bench.stream())


@pytest.mark.parametrize(
    "lines",
    [
        ["COPY s t"],
        ["RENAME s t"],
        ["MOVE s 1"],
        ["SWAPDB 0 1"],
        ["COPY s t", "DEL s"],
        ["COPY s t", "RENAME t s"],
    ],
    ids=" ".join,
)
def test_the_names_of_messages_follow_their_stream(lines: list[str]) -> None:
    """14895, 14897, 14869: names were lost, or the server crashed, with SWAPDB, FLUSHDB and loading."""
    recorder = Recorder(LEVEL)
    first = recorder.ask("XADD s IDMP p m * k v")
    for line in lines:
        recorder.ask(line)
    replayed(recorder)
    found = 0
    for number, keyspace in enumerate(recorder.engine.context.databases):
        recorder.select(number)
        for key in list(keyspace.values):
            assert recorder.run("XADD", key, "IDMP", "p", "m", "*", "k", "v") == first
            known = reloaded(recorder, key.decode()).idempotency
            assert known is not None
            assert list(known.producers) == [b"p"]
            found += 1
    assert found


@pytest.mark.parametrize("line", ["FLUSHDB", "FLUSHALL", "DEL s", "SWAPDB 0 1"])
def test_a_stream_that_was_removed_takes_its_names_along(line: str) -> None:
    """14895: names of a removed stream were found again."""
    recorder = Recorder(LEVEL)
    first = recorder.ask("XADD s IDMP p m * k v")
    recorder.ask(line)
    recorder.clock.at_ms += 1
    assert recorder.ask("XADD s IDMP p m * k v") != first
    assert recorder.ask("XLEN s") == 1
    replayed(recorder)


def test_a_message_whose_entry_was_deleted_is_still_a_duplicate() -> None:
    """14908: as in Redis. The producer asks whether its message has arrived, and it has."""
    bench = Bench(LEVEL)
    first = bench.ask("XADD s IDMP p m * k v")
    bench.run("XDEL", "s", first)
    assert bench.ask("XADD s IDMP p m * k new") == first
    assert bench.ask("XLEN s") == 0


def test_an_approximate_trim_of_acknowledged_entries_makes_progress() -> None:
    """14656: `~` with ACKED trimmed nothing."""
    bench = Bench(LEVEL)
    bench.engine.limits.entries_max = 10
    for n in range(1, 101):
        bench.ask(f"XADD s {n}-0 k v")
    bench.ask("XGROUP CREATE s g 0")
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    lengths = []
    for last in (35, 70, 100):
        bench.run("XACK", "s", "g", *(f"{n}-0" for n in range(1, last + 1)))
        bench.ask("XTRIM s MAXLEN ~ 0 ACKED")
        lengths.append(bench.ask("XLEN s"))
    assert lengths == [65, 30, 0]


def test_a_trim_with_delref_leaves_no_records_of_entries_that_are_gone() -> None:
    """15581: records of entries that were deleted by id before stayed for ever."""
    bench = grouped(*(f"{n}-0" for n in range(1, 7)), version=LEVEL)
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    bench.ask("XDEL s 1-0 3-0")
    bench.ask("XTRIM s MINID 5-0 DELREF")
    assert [row[0] for row in bench.ask("XPENDING s g - + 9")] == [b"5-0", b"6-0"]


def test_removing_the_records_of_an_entry_that_is_gone_is_logged() -> None:
    """15569: XDELEX DELREF removed them in memory only, so they came back with a restart."""
    recorder = Recorder(LEVEL)
    for line in ("XADD s 1-0 k v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g a STREAMS s >"):
        recorder.ask(line)
    recorder.ask("XDEL s 1-0")
    assert recorder.ask("XDELEX s DELREF IDS 1 1-0") == [-1]
    assert recorder.ask("XPENDING s g")[0] == 0
    replayed(recorder)


@pytest.mark.parametrize(
    "line",
    [
        "XREADGROUP GROUP g new STREAMS s >",
        "XREADGROUP GROUP g new CLAIM 100000 STREAMS s >",
        "XREADGROUP GROUP g new NOACK STREAMS s >",
        "XREADGROUP GROUP g new STREAMS s 0",
        "XCLAIM s g new 0 9-9",
        "XAUTOCLAIM s g new 100000 0",
    ],
)
def test_a_consumer_that_got_nothing_survives_a_restart(line: str) -> None:
    """14963: the consumer was created, but not logged."""
    recorder = Recorder(LEVEL)
    recorder.ask("XGROUP CREATE s g 0 MKSTREAM")
    recorder.ask(line)
    replay = replayed(recorder)
    assert replay.ask([b"XINFO", b"CONSUMERS", b"s", b"g"])[0][1] == b"new"


@pytest.mark.parametrize(
    "lines",
    [
        ["XGROUP CREATE s g $ MKSTREAM"],
        ["XADD s 5-5 k v", "XDEL s 5-5"],
        ["XADD s MAXLEN 0 5-5 k v"],
        ["XADD s 5-5 k v", "XSETID s 9-9", "XTRIM s MAXLEN 0"],
    ],
    ids=lambda lines: lines[-1],
)
def test_an_empty_stream_and_its_last_id_survive(lines: list[str]) -> None:
    """6644, 5426: both were lost in a rewrite."""
    recorder = Recorder(LEVEL)
    for line in lines:
        recorder.ask(line)
    replayed(recorder)
    assert reloaded(recorder).last_id == recorder.stream().last_id


def test_a_thousand_blocked_readers_are_served_once_each() -> None:
    """12301, 12998, 6703: loops, timeouts that began again, empty replies."""
    bench = grouped()
    line = "XREADGROUP GROUP g c{} COUNT 1 BLOCK 5000 {} STREAMS s >"
    readers = [bench.park(line.format(n, "CLAIM 60000" if n % 2 else "")) for n in range(READERS)]
    for n in range(1, READERS // 2 + 1):
        bench.ask(f"XADD s {n}-0 k v")
    bench.ask("XADD s MAXLEN 0 9999-0 k v")  # added and removed: nobody may get an empty reply
    served = [reader for reader in readers if reader.woken]
    assert [reader.woken for reader in served] == [1] * (READERS // 2)
    assert all(reader.got[0][1] for reader in served)
    assert [reader.timeout_ms for reader in readers if not reader.woken] == [5000] * (READERS // 2)
    assert bench.ask("XPENDING s g")[0] == READERS // 2


def test_a_thousand_readers_with_claim_share_what_becomes_idle() -> None:
    """12301: each that finds nothing waits on, and none runs in a loop."""
    bench = grouped(*(f"{n}-0" for n in range(1, 11)))
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    line = "XREADGROUP GROUP g c{} COUNT 1 BLOCK 0 CLAIM 500 STREAMS s >"
    readers = [bench.park(line.format(n)) for n in range(READERS)]
    bench.clock.at_ms += 500
    bench.engine.retry(readers[0])
    assert [reader.woken for reader in readers] == [1] * 10 + [0] * (READERS - 10)


def test_a_group_can_be_removed_before_its_stream() -> None:
    """8932: UNLINK of a stream with an empty tree of groups stopped the server."""
    bench = grouped("1-0")
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    assert [bench.ask("XGROUP DESTROY s g"), bench.ask("UNLINK s")] == [1, 1]


def test_the_position_of_a_group_survives_each_command() -> None:
    """7105, 7140, 5433: position or consumers were lost after a restart."""
    recorder = Recorder(LEVEL)
    lines = ["XADD s 1-0 k v", "XADD s 2-0 k v", "XADD s 3-0 k v", "XGROUP CREATE s g 0"]
    lines += ["XREADGROUP GROUP g a COUNT 1 STREAMS s >"]
    lines += ["XREADGROUP GROUP g b NOACK COUNT 1 STREAMS s >"]
    lines += ["XREADGROUP GROUP g c CLAIM 0 COUNT 1 STREAMS s >", "XNACK s g FAIL IDS 1 1-0"]
    lines += ["XREADGROUP GROUP g d CLAIM 0 STREAMS s >", "XACKDEL s g ACKED IDS 1 3-0"]
    lines += ["XGROUP DELCONSUMER s g b", "XGROUP SETID s g 1-0 ENTRIESREAD 1"]
    replay = Replay(LEVEL)
    for line in lines:
        recorder.ask(line)
        replay.feed(recorder.take())
        assert replay.state() == engine_state(recorder.engine), line


def test_a_consumer_named_streams_reads_the_keys_that_are_named() -> None:
    """Redis of August 2026: keys were looked for behind the first word STREAMS; options before GROUP."""
    bench = grouped("1-0")
    bench.ask("XADD other 1-0 k v")
    bench.ask("XGROUP CREATE other g 0")
    line = "XREADGROUP CLAIM 5 COUNT 9 GROUP g STREAMS STREAMS s >"
    assert [key for key, _ in bench.ask(line)] == [b"s"]
    assert bench.ask("XPENDING other g") == [0, None, None, NULL_ARRAY]
