"""Written data is read back unchanged, in pieces of any size, compressed or not."""

from __future__ import annotations

import io
import random

import pytest

from penstock.core import stream_id
from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.engine import compat
from penstock.persist.rdb.reader import RdbItem, RdbReader, load_databases
from penstock.persist.rdb.value import Value, ValueLimits
from penstock.persist.rdb.writer import VERSION_MIN, RdbWriter, version_needed
from tests.support.campaign import cases
from tests.support.engine.engines import START_MS, Bench
from tests.support.engine.streams import pending_of
from tests.support.random.stream_extras import add_producers, add_returned
from tests.support.rdb.by_hand import NODE_KEY, group_bytes, stream_bytes
from tests.support.rdb.whole_files import (
    Dribble,
    key,
    length,
    look,
    looks,
    rdb_file,
    read_all,
    write_all,
    write_items,
)

VERSIONS = {level.version: level.rdb_version for level in compat.LEVELS.values()}
NAMES_SINCE = 13
RETURNED_SINCE = 14
STRINGS = [
    b"", b"0", b"-1", b"127", b"128", b"-128", b"-129", b"32767", b"32768", b"-32769", b"2147483647",
    b"2147483648", b"-2147483648", b"-2147483649", b"007", b"-0", b"+1", b"-", b"1 ", b"x" * 20,
    b"x" * 21, b"ab" * 40, bytes(range(256)), b"\xff" * 63, b"\x00" * 64, b"z" * 16383, b"z" * 16384,
]  # fmt: skip


def list_of(*elements: bytes) -> ListValue:
    value = ListValue()
    for element in elements:
        value.push_right(element)
    return value


def workload(seed: int, version: str) -> Bench:
    """Streams with groups, pending entries and deletions, lists, strings, expiries, in two databases.

    They have everything that the version's snapshots can hold.
    """
    dice = random.Random(seed)
    bench = Bench(version)
    for number in range(dice.randint(1, 300)):
        fields = dice.choice(["temp 21 humid 63", "door open", f"n {number} big {'x' * 90}"])
        bench.ask(f"XADD s {number + 1}-{dice.randint(0, 3)} {fields}")
    bench.ask("XGROUP CREATE s g 0 ENTRIESREAD 7")
    bench.ask("XGROUP CREATE s 17 $")
    bench.ask("XGROUP CREATE empty g 0 MKSTREAM")
    for consumer in ("alice", "bob", "12345", "c" * 30):
        bench.clock.at_ms += dice.randint(0, 1000)
        bench.ask(f"XREADGROUP GROUP g {consumer} COUNT {dice.randint(1, 70)} STREAMS s >")
    for _ in range(dice.randint(0, 40)):
        bench.ask(f"XDEL s {dice.randint(1, 300)}-{dice.randint(0, 3)}")
    bench.ask("XAUTOCLAIM s g bob 0 0 COUNT 5")
    bench.ask(f"XTRIM s MAXLEN {dice.randint(0, 250)}")
    bench.ask("XGROUP CREATECONSUMER s 17 idle")
    for name in ("s", "empty"):
        if VERSIONS[version] >= NAMES_SINCE:
            add_producers(dice, bench.stream(name), START_MS)
        if VERSIONS[version] >= RETURNED_SINCE:
            add_returned(dice, bench.stream(name))
    for _ in range(dice.randint(0, 300)):
        bench.ask(f"RPUSH l {dice.choice(['7', 'job', 'x' * dice.randint(1, 300)])}")
    for number, text in enumerate(dice.sample(STRINGS, 5)):
        bench.run("SET", f"k{number}", text)
        if number % 2:
            bench.ask(f"PEXPIREAT k{number} {dice.randint(1_800_000_000_000, 2**45)}")
    bench.engine.context.keyspace = bench.engine.context.databases[5]
    bench.ask("SET elsewhere 1")
    bench.engine.context.keyspace = bench.engine.context.databases[0]
    return bench


@pytest.mark.parametrize("version", range(10, 16))
@pytest.mark.parametrize("compress", [True, False])
def test_strings_and_lists_come_back(version: int, compress: bool) -> None:
    values: list[Value] = [*STRINGS, list_of(*STRINGS), list_of(b"1"), list_of(*[b"7"] * 9_000)]
    items = [RdbItem(n % 16, b"key:%d" % n, n or None, value) for n, value in enumerate(values)]
    for deep in (True, False):
        assert looks(read_all(write_items(items, version, compress), deep)) == looks(items)


@pytest.mark.parametrize("seed", range(cases(400)))
def test_a_workload_comes_back(seed: int) -> None:
    level, version = list(VERSIONS.items())[seed % len(VERSIONS)]
    bench = workload(seed, level)
    data = write_all(bench.engine.context.databases, version, seed % 2 == 0)
    items = read_all(data, deep=True)
    assert looks(read_all(data, deep=False)) == looks(items)
    other = Bench(level, bench.clock.at_ms)
    for keyspace in other.engine.context.databases:
        keyspace.clear()
    limits = ValueLimits(other.engine.limits, other.engine.list_limits)
    reader = RdbReader(io.BytesIO(data), "a.rdb", limits, deep=True)
    assert load_databases(reader, other.engine.context.databases) == len(items)
    assert reader.vouched
    for name in ("s", "empty") if version > VERSION_MIN else ():  # which has no active times
        assert look(other.stream(name))[-2:] == look(bench.stream(name))[-2:]  # type: ignore[index]
    again = write_all(other.engine.context.databases, version, seed % 2 == 0)
    assert again == data
    assert other.state() == bench.state()  # this forgets the names that have expired
    assert other.ask("XINFO STREAM s FULL COUNT 0") == bench.ask("XINFO STREAM s FULL COUNT 0")


def test_the_oldest_written_version_lacks_only_the_active_time_of_consumers() -> None:
    bench = workload(1, "7.4")
    old = read_all(write_all(bench.engine.context.databases, 10))
    new = read_all(write_all(bench.engine.context.databases, 12))
    assert [item.key for item in old] == [item.key for item in new]
    assert looks(old) != looks(new)


def with_returned(*before: str) -> Bench:
    """A group g with 1-0 and 2-0 pending for alice, 4-0 and 3-0 returned, after some commands."""
    bench = Bench("8.8")
    bench.engine.context.keyspace.clear()
    for number in range(1, 5):
        bench.ask(f"XADD s {number}-0 k v")
    bench.ask("XGROUP CREATE s g 0")
    for line in before:
        bench.ask(line)
    bench.ask("XREADGROUP GROUP g alice COUNT 2 STREAMS s >")
    bench.ask("XREADGROUP GROUP g alice STREAMS s >")
    bench.ask("XNACK s g FAIL IDS 1 4-0 RETRYCOUNT 9")
    bench.ask("XNACK s g FATAL IDS 1 3-0")
    return bench


@pytest.mark.parametrize("version", range(10, 14))
def test_returned_entries_get_a_nameless_consumer_where_they_cannot_be_written(
    version: int,
) -> None:
    bench = with_returned()
    (item,) = read_all(write_all(bench.engine.context.databases, version))
    assert isinstance(item.value, Stream)
    assert item.value.groups is not None
    group = item.value.groups.find(b"g")
    assert group.returned == {}
    assert pending_of(group) == [
        ("1-0", b"alice", START_MS, 1),
        ("2-0", b"alice", START_MS, 1),
        ("3-0", b"", 0, 2**63 - 1),
        ("4-0", b"", 0, 9),
    ]
    nobody = group.consumer_or_none(b"")
    assert (nobody.seen_ms, nobody.active_ms, nobody.pending.count) == (0, -(version > 10), 2)
    assert group.consumer_or_none(b"alice").pending.count == 2


@pytest.mark.parametrize("version", range(10, 14))
def test_a_consumer_that_has_no_name_keeps_its_own_entries(version: int) -> None:
    bench = with_returned("XGROUP CREATECONSUMER s g _")
    group = bench.stream().groups.find(b"g")  # type: ignore[union-attr]
    nameless = group.create_consumer(b"", 7)
    bench.ask("XADD s 5-0 k v")
    group.deliver(bench.stream(), nameless, 0, 77, True)
    (item,) = read_all(write_all(bench.engine.context.databases, version))
    assert isinstance(item.value, Stream)
    assert item.value.groups is not None
    found = item.value.groups.find(b"g")
    assert pending_of(found)[2:] == [
        ("3-0", b"", 0, 2**63 - 1),
        ("4-0", b"", 0, 9),
        ("5-0", b"", 77, 1),
    ]
    assert (found.consumers.count, found.consumer_or_none(b"").seen_ms) == (3, 7)


@pytest.mark.parametrize("version", [14, 15])
def test_returned_entries_keep_their_order(version: int) -> None:
    (item,) = read_all(write_all(with_returned().engine.context.databases, version))
    assert isinstance(item.value, Stream)
    assert item.value.groups is not None
    group = item.value.groups.find(b"g")
    assert [str(stream_id.from_key(key)) for key in group.returned] == ["4-0", "3-0"]
    assert group.consumer_or_none(b"") is None


@pytest.mark.parametrize("version", range(10, 13))
def test_names_of_producers_are_left_out_where_they_cannot_be_written(version: int) -> None:
    bench = Bench("8.6")
    bench.engine.context.keyspace.clear()
    bench.ask("XADD s IDMP p a * k v")
    bench.ask("XCFGSET s IDMP-MAXSIZE 5")
    bench.ask("XADD s IDMP p a * k v")
    (item,) = read_all(write_all(bench.engine.context.databases, version))
    assert isinstance(item.value, Stream)
    assert (item.value.length, item.value.idempotency) == (2, None)
    assert item.value.idempotency_settings.size_max == 100


def test_producers_are_read_in_the_order_of_their_last_entry() -> None:
    """D2. The file has them in the order of their names, as in Redis."""
    bench = Bench("8.6")
    bench.engine.context.keyspace.clear()
    for producer in ("b", "c", "a", "b"):
        bench.clock.at_ms += 1
        bench.ask(f"XADD s IDMP {producer} {bench.clock.at_ms} * k v")
    (item,) = read_all(write_all(bench.engine.context.databases, 13))
    assert isinstance(item.value, Stream)
    assert item.value.idempotency is not None
    assert list(item.value.idempotency.producers) == [b"c", b"a", b"b"]


def test_settings_as_those_of_the_engine_are_not_stored_twice() -> None:
    bench = Bench("8.6")
    bench.engine.context.keyspace.clear()
    bench.ask("XADD s 1-0 k v")
    (item,) = read_all(write_all(bench.engine.context.databases, 13))
    assert isinstance(item.value, Stream)
    assert item.value.idempotency_settings is item.value.limits.idempotency
    assert item.value.idempotency is None


@pytest.mark.parametrize(
    ("lines", "version"),
    [
        (
            ["XADD s 1-0 k v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g c STREAMS s >"],
            VERSION_MIN,
        ),
        (["XADD s IDMP p a * k v"], NAMES_SINCE),
        (["XADD s 1-0 k v", "XCFGSET s IDMP-DURATION 5"], NAMES_SINCE),
        (
            ["XADD s 1-0 k v", "XGROUP CREATE s g 0", "XNACK s g FAIL IDS 1 1-0 FORCE"],
            RETURNED_SINCE,
        ),
    ],
)
def test_the_oldest_version_that_holds_everything(lines: list[str], version: int) -> None:
    bench = Bench("8.8")
    for line in lines:
        bench.ask(line)
    assert version_needed(bench.engine.context.databases) == version


@pytest.mark.parametrize("most", [1, 2, 3, 7, 100])
def test_a_file_that_comes_in_small_pieces_is_the_same_file(most: int) -> None:
    data = write_all(workload(2, "8.10").engine.context.databases, 15) + b"*1\r\n$4\r\nPING\r\n"
    reader = RdbReader(Dribble(data, most), "a.rdb")
    assert looks(reader.items()) == looks(read_all(data))
    assert b"*1\r\n$4\r\nPING\r\n".startswith(reader.rest())


def test_what_follows_a_file_is_kept() -> None:
    data = write_all(Bench().engine.context.databases)
    reader = RdbReader(io.BytesIO(data + b"*1\r\n"), "a.rdb")
    list(reader.items())
    assert reader.rest() == b"*1\r\n"
    assert reader.offset == len(data)
    assert reader.aux[b"redis-bits"] == b"64"


def test_a_value_larger_than_a_chunk_is_written_and_its_memory_freed() -> None:
    giant = b"0123456789abcdef" * (9 << 13)
    values: list[Value] = [b"a", giant, b"b", list_of(giant * 2), b"c"]
    items = [RdbItem(0, b"%d" % number, None, value) for number, value in enumerate(values)]
    for compress in (True, False):
        data = write_items(items, compress=compress)
        assert looks(read_all(data)) == looks(items)


def test_chunks_are_bytes_of_about_a_quarter_of_a_megabyte() -> None:
    chunks: list[bytes] = []
    writer = RdbWriter(chunks.append, 10, compress=False)
    writer.begin({})
    for number in range(1000):
        writer.key(b"%d" % number, b"x" * 1000, None)
    writer.end()
    assert all(type(chunk) is bytes and len(chunk) <= 256 * 1024 for chunk in chunks)
    assert len(chunks) < 8


@pytest.mark.parametrize("version", [10, 12, 13, 15])
def test_the_largest_counts_and_ids_come_back(version: int) -> None:
    bench = Bench("7.4")
    bench.ask(f"XADD s {2**64 - 1}-{2**64 - 2} k v")
    bench.ask(f"XSETID s {2**64 - 1}-{2**64 - 1} ENTRIESADDED {2**63 - 1}")
    bench.ask(f"XGROUP CREATE s g 0 ENTRIESREAD {2**63 - 1}")
    claim = f"XCLAIM s g c 0 {2**64 - 1}-{2**64 - 2} FORCE"
    bench.ask(f"{claim} TIME 0 RETRYCOUNT {2**63 - 1}")
    (item,) = [
        i for i in read_all(write_all(bench.engine.context.databases, version)) if i.key == b"s"
    ]
    assert look(item.value)[:7] == look(bench.stream())[:7]  # type: ignore[index]
    assert pending_of(item.value.groups.find(b"g"))[0][2:] == (0, 2**63 - 1)  # type: ignore[union-attr]


def test_a_count_beyond_the_maximum_is_read_as_the_maximum() -> None:
    """Redis lets a delivery count of 2**63 - 1 turn negative."""
    groups = group_bytes(19, [NODE_KEY], [(b"c", [NODE_KEY])])
    groups = groups.replace(
        b"\x00\x00\x03\x01\x01c", b"\x00\x00" + length(2**64 - 5) + b"\x01\x01c"
    )
    (item,) = read_all(rdb_file(key(19, b"s", stream_bytes(groups=groups))))
    assert pending_of(item.value.groups.find(b"g"))[0][3] == 2**63 - 1  # type: ignore[union-attr]
