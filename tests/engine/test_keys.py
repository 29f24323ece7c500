"""Commands on keys of any type: removing, renaming, copying, moving, flushing, and their events."""

from __future__ import annotations

import pytest

from penstock.core.list_value import ListValue
from penstock.engine.keyspace import Watch
from tests.support.engine.engines import NOT_A_NUMBER, SYNTAX, Bench
from tests.support.engine.keyspace_events import EventRecorder
from tests.support.servers.raw_redis import Refusal

SAME = Refusal("ERR source and destination objects are the same")
OUT_OF_RANGE = Refusal("ERR DB index is out of range")
NO_KEY = Refusal("ERR no such key")


@pytest.fixture
def bench() -> Bench:
    """A string k with an expiry time, a stream s with a group, a string t in database 1."""
    bench = Bench()
    bench.ask("DEL string")
    bench.ask("SET k v EX 10")
    bench.ask("XADD s 1-0 f v")
    bench.ask("XADD s 2-0 f v")
    bench.ask("XGROUP CREATE s g 0")
    bench.ask("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")
    select(bench, 1)
    bench.ask("SET t v")
    select(bench, 0)
    return bench


def select(bench: Bench, number: int) -> None:
    context = bench.engine.context
    context.keyspace = context.databases[number]


def keys(bench: Bench, number: int = 0) -> list[bytes]:
    return sorted(bench.engine.context.databases[number].values)


# --- Removing and reading --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["DEL", "UNLINK"])
def test_keys_of_all_types_are_removed(bench: Bench, name: str) -> None:
    ear = EventRecorder(bench.engine, "KA")
    assert bench.ask(f"{name} k missing s k") == 2
    assert keys(bench) == []
    assert ear.take_events() == ["0:k del", "0:s del"]


@pytest.mark.parametrize("name", ["EXISTS", "TOUCH"])
def test_a_key_that_is_named_twice_counts_twice(bench: Bench, name: str) -> None:
    ear = EventRecorder(bench.engine, "KAm")
    assert bench.ask(f"{name} k missing s k") == 3
    assert ear.take_events() == ["0:missing keymiss"]


def test_types(bench: Bench) -> None:
    assert [bench.ask(f"TYPE {key}") for key in ("k", "s", "missing")] == [
        "string",
        "stream",
        "none",
    ]


def test_expired_keys_are_neither_removed_nor_counted(bench: Bench) -> None:
    bench.clock.at_ms += 10_001
    ear = EventRecorder(bench.engine, "KA")
    assert bench.ask("DBSIZE") == 2
    assert bench.ask("DEL k") == 0
    assert ear.take_events() == ["0:k expired"]
    assert bench.ask("DBSIZE") == 1


# --- Renaming --------------------------------------------------------------------------------------


def test_rename_takes_value_and_time_along(bench: Bench) -> None:
    bench.ask("SET target old EX 99")
    ear = EventRecorder(bench.engine, "KAn")
    assert bench.ask("RENAME k target") == "OK"
    assert ear.take_events() == ["0:target new", "0:k rename_from", "0:target rename_to"]
    assert (bench.ask("GET target"), bench.ask("TTL target")) == (b"v", 10)
    assert keys(bench) == [b"s", b"target"]


def test_rename_to_itself_does_nothing(bench: Bench) -> None:
    ear = EventRecorder(bench.engine, "KA")
    assert (bench.ask("RENAME k k"), bench.ask("RENAMENX k k")) == ("OK", 0)
    assert (bench.ask("RENAME missing missing"), bench.ask("RENAMENX missing k")) == (
        NO_KEY,
        NO_KEY,
    )
    assert ear.take_events() == []


def test_renamenx_replaces_nothing(bench: Bench) -> None:
    assert bench.ask("RENAMENX k s") == 0
    assert bench.ask("RENAMENX k new") == 1
    assert keys(bench) == [b"new", b"s"]


# --- Copying ---------------------------------------------------------------------------------------


def test_a_copied_stream_is_the_same_and_its_own(bench: Bench) -> None:
    description = bench.ask("XINFO STREAM s FULL")
    assert bench.ask("COPY s copy") == 1
    assert bench.ask("XINFO STREAM copy FULL") == description
    bench.ask("XADD copy 3-0 f v")
    bench.ask("XDEL copy 1-0")
    bench.ask("XACK copy g 1-0")
    bench.ask("XREADGROUP GROUP g bob STREAMS copy >")
    assert bench.ask("XINFO STREAM s FULL") == description
    bench.state()  # checks both


def test_copy_keeps_the_expiry_time_and_replaces_only_with_the_option(bench: Bench) -> None:
    ear = EventRecorder(bench.engine, "KAnm")
    assert bench.ask("COPY k s") == 0
    assert bench.ask("COPY missing s REPLACE") == 0
    assert ear.take_events() == ["0:missing keymiss"]
    assert bench.ask("COPY k s REPLACE") == 1
    assert ear.take_events() == ["0:s new", "0:s copy_to"]
    assert (bench.ask("TYPE s"), bench.ask("TTL s")) == ("string", 10)


def test_copy_into_another_database(bench: Bench) -> None:
    ear = EventRecorder(bench.engine, "KAn")
    assert bench.ask("COPY k k DB 1") == 1
    assert bench.ask("copy k t db 1") == 0
    assert bench.ask("COPY k t REPLACE DB 1") == 1
    assert ear.take_events() == ["1:k new", "1:k copy_to", "1:t new", "1:t copy_to"]
    assert keys(bench, 1) == [b"k", b"t"]
    assert bench.engine.context.keyspace.index == 0


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("COPY k k", SAME),
        ("COPY missing missing DB 0", SAME),
        ("COPY k n DB", Refusal(SYNTAX)),
        ("COPY k n DB 16", OUT_OF_RANGE),
        ("COPY k n DB -1 BOGUS", OUT_OF_RANGE),
        ("COPY k n DB x", Refusal(NOT_A_NUMBER)),
        ("COPY k n BOGUS", Refusal(SYNTAX)),
        ("MOVE k 0", SAME),
        ("MOVE k 16", OUT_OF_RANGE),
        ("MOVE missing x", Refusal(NOT_A_NUMBER)),
        (
            "MOVE k 9999999999",
            Refusal("ERR value is out of range, value must between -2147483648 and 2147483647"),
        ),
        ("SWAPDB x y", Refusal("ERR invalid first DB index")),
        ("SWAPDB 99 9999999999", Refusal("ERR invalid second DB index")),
        ("SWAPDB 0 16", OUT_OF_RANGE),
        ("FLUSHDB NOW", Refusal(SYNTAX)),
        ("FLUSHALL ASYNC SYNC", Refusal(SYNTAX)),
    ],
)
def test_refusals_change_nothing(bench: Bench, line: str, refusal: Refusal) -> None:
    before = bench.state(), keys(bench), keys(bench, 1)
    assert bench.ask(line) == refusal
    assert (bench.state(), keys(bench), keys(bench, 1)) == before


# --- Databases -------------------------------------------------------------------------------------


def test_move_takes_value_and_time_along(bench: Bench) -> None:
    ear = EventRecorder(bench.engine, "KAn")
    assert bench.ask("MOVE k 1") == 1
    assert ear.take_events() == ["1:k new", "0:k move_from", "1:k move_to"]
    assert bench.ask("MOVE missing 1") == 0
    bench.ask("SET t mine")
    assert bench.ask("MOVE t 1") == 0
    select(bench, 1)
    assert (bench.ask("GET k"), bench.ask("TTL k"), bench.ask("GET t")) == (b"v", 10, b"v")


def test_swapped_databases_keep_their_times(bench: Bench) -> None:
    assert bench.ask("SWAPDB 0 1") == "OK"
    assert (keys(bench, 0), keys(bench, 1)) == ([b"t"], [b"k", b"s"])
    bench.clock.at_ms += 10_001
    assert bench.engine.expire_due(10) == 1
    assert keys(bench, 1) == [b"s"]
    assert bench.ask("SWAPDB 0 0") == "OK"


def test_flushing(bench: Bench) -> None:
    assert bench.ask("FLUSHDB ASYNC") == "OK"
    assert (keys(bench, 0), keys(bench, 1)) == ([], [b"t"])
    assert bench.ask("FLUSHALL sync") == "OK"
    assert keys(bench, 1) == []
    bench.clock.at_ms += 10_001
    assert bench.engine.expire_due(10) == 0


@pytest.mark.parametrize(
    ("line", "database", "key", "broken"),
    [
        ("DEL k", 0, "k", True),
        ("DEL missing", 0, "missing", False),
        ("RENAME k n", 0, "k", True),
        ("RENAME k n", 0, "n", True),
        ("MOVE k 1", 1, "k", True),
        ("COPY k n DB 1", 1, "n", True),
        ("COPY k n DB 1", 0, "k", False),
        ("EXPIRE k 5", 0, "k", True),
        ("TTL k", 0, "k", False),
        ("FLUSHDB", 0, "k", True),
        ("FLUSHDB", 0, "missing", False),
        ("FLUSHDB", 1, "t", False),
        ("FLUSHALL", 1, "t", True),
        ("SWAPDB 1 0", 0, "t", True),
        ("SWAPDB 1 0", 1, "t", True),
        ("SWAPDB 1 0", 1, "missing", False),
        ("SWAPDB 0 0", 0, "k", False),
    ],
)
def test_a_change_breaks_watches_on_its_key(
    bench: Bench, line: str, database: int, key: str, broken: bool
) -> None:
    watch = Watch()
    bench.engine.context.databases[database].watch(key.encode(), watch)
    bench.engine.context.watching = 1
    bench.ask(line)
    assert watch.broken == broken


# --- OBJECT ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "encoding", "references"),
    [
        ("5", b"int", 2**31 - 1),
        ("9999", b"int", 2**31 - 1),
        ("10000", b"int", 1),
        ("-1", b"int", 1),
        ("9223372036854775807", b"int", 1),
        ("9223372036854775808", b"embstr", 1),
        ("05", b"embstr", 1),
        ("x" * 44, b"embstr", 1),
        ("x" * 45, b"raw", 1),
    ],
)
def test_encodings_of_strings(value: str, encoding: bytes, references: int) -> None:
    bench = Bench("7.0")
    bench.run("SET", "n", value)
    assert bench.ask("OBJECT ENCODING n") == encoding
    assert bench.ask("OBJECT REFCOUNT n") == references


def test_no_integer_is_shared_since_8_2() -> None:
    """Found by the random campaign against 8.2."""
    for version, references in (("8.0", 2**31 - 1), ("8.2", 1)):
        bench = Bench(version)
        bench.ask("SET n 5")
        assert bench.ask("OBJECT REFCOUNT n") == references


def test_untracked_numbers_are_refused(bench: Bench) -> None:
    assert bench.ask("OBJECT ENCODING s") == b"stream"
    assert bench.ask("OBJECT FREQ s").line.startswith("ERR An LFU maxmemory policy is not selected")
    assert bench.ask("OBJECT IDLETIME s").line.startswith("ERR idle time not tracked")
    for question in ("ENCODING", "REFCOUNT", "FREQ", "IDLETIME"):
        assert bench.ask(f"OBJECT {question} missing") is None
    assert bench.ask("OBJECT HELP")[0].startswith("OBJECT <subcommand>")


def put_list(bench: Bench, *elements: bytes) -> ListValue:
    value = ListValue()
    for element in elements:
        value.push_right(element)
    bench.engine.context.keyspace.put(b"l", value)
    return value


@pytest.mark.parametrize(
    ("version", "elements", "encoding"),
    [
        ("7.0", [b"a"], b"quicklist"),
        ("7.2", [b"a"], b"listpack"),
        ("7.4", [b"x" * 5000] * 2, b"quicklist"),
        ("7.4", [b"x" * 9000], b"quicklist"),
    ],
)
def test_encodings_of_lists(version: str, elements: list[bytes], encoding: bytes) -> None:
    bench = Bench(version)
    put_list(bench, *elements)
    assert bench.ask("OBJECT ENCODING l") == encoding
    assert bench.ask("OBJECT REFCOUNT l") == 1


def test_lists_are_copied_and_found_by_their_type(bench: Bench) -> None:
    original = put_list(bench, b"a", b"b")
    assert (bench.ask("TYPE l"), bench.ask("COPY l m")) == ("list", 1)
    original.push_right(b"c")
    copied = bench.engine.context.keyspace.find(b"m")
    assert isinstance(copied, ListValue)
    assert copied.range(0, copied.length - 1) == [b"a", b"b"]
    assert sorted(bench.ask("SCAN 0 TYPE list")[1]) == [b"l", b"m"]


# --- Blocked readers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        *("DEL s", "UNLINK s", "EXPIRE s -1", "RENAME s other", "MOVE s 1", "FLUSHDB", "FLUSHALL"),
        *("SWAPDB 0 1", "SET s v", "MSET s v", "SETEX s 9 v", "RENAME k s", "COPY k s REPLACE"),
    ],
)
@pytest.mark.parametrize("version", ["7.0", "7.2", "7.4"])
def test_a_group_s_reader_gets_an_error_when_its_stream_is_removed(version: str, line: str) -> None:
    bench = Bench(version)
    bench.ask("XGROUP CREATE s g $ MKSTREAM")
    bench.ask("SET k v")
    readers = [bench.park("XREADGROUP GROUP g ann BLOCK 0 STREAMS s >") for _ in range(2)]
    plain = bench.park("XREAD BLOCK 0 STREAMS s $")
    bench.ask(line)
    if version == "7.0":
        text = "UNBLOCKED the stream key no longer exists"
    elif bench.ask("TYPE s") == "string":
        text = "WRONGTYPE Operation against a key holding the wrong kind of value"
    else:
        text = "NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"
    assert [reader.got for reader in readers] == [Refusal(text)] * 2
    assert plain.woken == 0
    bench.ask("DEL s")
    bench.ask("XADD s 5-0 k v")
    assert plain.woken == 1


def test_an_expired_stream_frees_its_readers() -> None:
    bench = Bench()
    bench.ask("XGROUP CREATE s g $ MKSTREAM")
    bench.ask("EXPIRE s 5")
    reader = bench.park("XREADGROUP GROUP g ann BLOCK 0 STREAMS s >")
    bench.clock.at_ms += 5001
    bench.engine.expire_due(10)
    assert reader.got.line.startswith("NOGROUP ")


@pytest.mark.parametrize("line", ["RENAME other s", "COPY other s REPLACE", "SWAPDB 0 1"])
def test_a_stream_that_arrives_whole_serves_its_waiters(line: str) -> None:
    bench = Bench()
    select(bench, 1 if "SWAPDB" in line else 0)
    name = "s" if "SWAPDB" in line else "other"
    bench.run("XADD", name, "7-0", "k", "v")
    bench.run("XGROUP", "CREATE", name, "g", "0")
    select(bench, 0)
    bench.ask("XGROUP CREATE s g $ MKSTREAM")
    readers = [
        bench.park("XREADGROUP GROUP g ann BLOCK 0 STREAMS s >"),
        bench.park("XREAD BLOCK 0 STREAMS s $"),
    ]
    bench.ask(line)
    assert [reader.got for reader in readers] == [[[b"s", [[b"7-0", [b"k", b"v"]]]]]] * 2


def test_a_stream_without_the_group_is_no_stream_to_its_reader() -> None:
    bench = Bench("7.0")
    bench.ask("XADD other 7-0 k v")
    bench.ask("XGROUP CREATE s g $ MKSTREAM")
    reader = bench.park("XREADGROUP GROUP g ann BLOCK 0 STREAMS s >")
    bench.ask("RENAME other s")
    gone = "NOGROUP the consumer group this client was blocked on no longer exists"
    assert reader.got == Refusal(gone)


def test_a_waiter_in_another_database_is_served_by_a_move() -> None:
    bench = Bench()
    select(bench, 1)
    reader = bench.park("XREAD BLOCK 0 STREAMS s 0")
    select(bench, 0)
    bench.ask("XADD s 1-0 k v")
    assert reader.woken == 0
    bench.ask("MOVE s 1")
    assert reader.got == [[b"s", [[b"1-0", [b"k", b"v"]]]]]
    assert bench.engine.context.keyspace.index == 0


@pytest.mark.parametrize("version", ["7.0", "7.2"])
def test_a_reader_is_served_though_another_of_its_keys_is_of_another_type(version: str) -> None:
    bench = Bench(version)
    reader = bench.park("XREAD BLOCK 0 STREAMS s t $ $")
    bench.ask("SET s v")
    assert reader.woken == 0
    bench.ask("XADD t 1-0 k v")
    assert reader.got == [[b"t", [[b"1-0", [b"k", b"v"]]]]]
