"""Where versions of Redis differ, the engine follows the chosen version."""

from __future__ import annotations

import pytest

from penstock.engine.compat import DEFAULT
from penstock.engine.execute import Engine
from penstock.errors import ConfigError
from penstock.reply import NULL_ARRAY
from tests.support.engine.effects import Recorder
from tests.support.engine.engines import (
    INVALID_ID,
    START_MS,
    WRONG_TYPE,
    Bench,
    assert_refused,
    command_of,
    grouped,
)
from tests.support.engine.streams import frame_of
from tests.support.servers.raw_redis import Refusal

KV = [b"k", b"v"]
PLUS_IN_GROUP = (
    "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this"
    " consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return"
    " an empty result set."
)


def test_the_default_version() -> None:
    assert Engine().context.compat is DEFAULT


@pytest.mark.parametrize("version", ["6.2", "9", "", "7"])
def test_an_unknown_version_is_refused(version: str) -> None:
    with pytest.raises(ConfigError, match=r"one of '7\.0', '7\.2', '7\.4'"):
        Engine(compat_version=version)


# --- 7.2: separate times for asking and receiving -------------------------------------------------


def test_a_reader_who_gets_nothing_is_no_consumer_before_7_2() -> None:
    bench = grouped(version="7.0")
    assert bench.ask("XREADGROUP GROUP g a STREAMS s >") is NULL_ARRAY
    assert bench.ask("XINFO CONSUMERS s g") == []


def test_a_reader_who_gets_nothing_is_a_consumer_since_7_2() -> None:
    bench = grouped(version="7.2")
    assert bench.ask("XREADGROUP GROUP g a STREAMS s >") is NULL_ARRAY
    assert bench.ask("XINFO CONSUMERS s g") == [
        [b"name", b"a", b"pending", 0, b"idle", 0, b"inactive", -1]
    ]


def test_an_empty_read_updates_the_seen_time_but_not_the_active_time_since_7_2() -> None:
    bench = grouped(version="7.2")
    bench.ask("XADD s 1-0 k v")
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    bench.clock.at_ms += 300
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    bench.clock.at_ms += 10
    assert bench.ask("XINFO CONSUMERS s g") == [
        [b"name", b"a", b"pending", 1, b"idle", 10, b"inactive", 310]
    ]


def test_an_empty_read_leaves_no_trace_before_7_2() -> None:
    bench = grouped(version="7.0")
    bench.ask("XADD s 1-0 k v")
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    bench.clock.at_ms += 300
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    assert bench.ask("XINFO CONSUMERS s g") == [[b"name", b"a", b"pending", 1, b"idle", 300]]


def test_a_full_description_tells_the_time_of_activity_since_7_2() -> None:
    bench = grouped(version="7.2")
    bench.ask("XGROUP CREATECONSUMER s g a")
    groups = bench.ask("XINFO STREAM s FULL")[-1]
    assert groups[0][-1] == [
        [b"name", b"a", b"seen-time", START_MS, b"active-time", -1, b"pel-count", 0, b"pending", []]
    ]


# --- Texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "line", "shown"),
    [
        ("7.0", "XREAD STREAMS a b 0", "XREAD list of streams: for each stream key an ID or '$'"),
        ("7.2", "XREAD STREAMS a b 0", "'xread' list of streams: for each stream key an ID or '$'"),
        (
            "7.4",
            "XREAD STREAMS a b 0",
            "'xread' list of streams: for each stream key an ID, '+', or '$'",
        ),
        (
            "7.0",
            "XREADGROUP GROUP g c STREAMS a b >",
            "XREAD list of streams: for each stream key an ID or '$'",
        ),
        (
            "7.2",
            "XREADGROUP GROUP g c STREAMS a b >",
            "'xreadgroup' list of streams: for each stream key an ID or '>'",
        ),
        (
            "7.4",
            "XREADGROUP GROUP g c STREAMS a b >",
            "'xreadgroup' list of streams: for each stream key an ID or '>'",
        ),
    ],
)
def test_keys_without_ids_are_refused_with_the_version_s_text(
    version: str, line: str, shown: str
) -> None:
    """Found by the random campaign: 7.0 says XREAD, whichever command it was."""
    assert_refused(grouped(version=version), line, f"ERR Unbalanced {shown} must be specified.")


def test_a_time_to_wait_that_no_clock_can_reach_is_refused_since_7_2() -> None:
    """Redis adds the current time to it; 7.0 did not check that the sum fits."""
    line = "XREAD BLOCK 9223372036854775807 STREAMS s 9"
    assert_refused(grouped(version="7.2"), line, "ERR timeout is out of range")
    assert grouped(version="7.0").park(line).timeout_ms == 2**63 - 1


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("7.0", "NOGROUP the consumer group this client was blocked on no longer exists"),
        ("7.2", "NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"),
    ],
)
def test_a_reader_blocked_in_a_destroyed_group_gets_an_error(version: str, text: str) -> None:
    bench = grouped(version=version)
    reader = bench.park("XREADGROUP GROUP g a BLOCK 0 STREAMS s >")
    assert bench.ask("XGROUP DESTROY s g") == 1
    assert (reader.woken, reader.got) == (1, Refusal(text))


NO_GROUP = "NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"


@pytest.mark.parametrize(
    ("version", "instead", "text"),
    [
        ("7.0", None, "UNBLOCKED the stream key no longer exists"),
        ("7.0", b"a string", "UNBLOCKED the stream key no longer exists"),
        ("7.2", None, NO_GROUP),
        ("7.2", b"a string", WRONG_TYPE),
        ("7.4", None, NO_GROUP),
        ("7.4", b"a string", WRONG_TYPE),
    ],
)
def test_a_reader_blocked_in_a_group_of_a_removed_stream_gets_an_error(
    version: str, instead: bytes | None, text: str
) -> None:
    bench = grouped(version=version)
    bench.ask("XGROUP CREATE t g 0 MKSTREAM")
    reader = bench.park("XREADGROUP GROUP g a BLOCK 0 STREAMS t s > >")
    bench.replace("s", instead)
    assert (reader.woken, reader.got) == (1, Refusal(text))


# --- 7.4: the last entry --------------------------------------------------------------------------


@pytest.fixture
def bench() -> Bench:
    bench = Bench("7.4")
    for entry_id in ("1-0", "1-1", "2-0"):
        bench.run("XADD", "s", entry_id, "k", "v")
    return bench


def test_plus_reads_the_last_entry_of_each_stream(bench: Bench) -> None:
    bench.ask("XADD t 9-0 k v")
    assert bench.ask("XREAD STREAMS s t missing + + +") == [
        [b"s", [[b"2-0", KV]]],
        [b"t", [[b"9-0", KV]]],
    ]
    assert bench.ask("XREAD COUNT 5 STREAMS s +") == [[b"s", [[b"2-0", KV]]]]


def test_plus_finds_the_last_entry_that_is_still_there(bench: Bench) -> None:
    bench.ask("XDEL s 2-0")
    assert bench.ask("XREAD STREAMS s +") == [[b"s", [[b"1-1", KV]]]]


@pytest.mark.parametrize("line", ["XTRIM s MAXLEN 0", "XDEL s 1-0 1-1 2-0"])
def test_plus_waits_for_the_first_new_entry_when_there_is_none(bench: Bench, line: str) -> None:
    bench.ask(line)
    assert bench.ask("XREAD STREAMS s +") is NULL_ARRAY
    reader = bench.park("XREAD BLOCK 0 STREAMS s +")
    bench.ask("XADD s 5-0 k v")
    assert reader.got == [[b"s", [[b"5-0", KV]]]]


def test_plus_is_the_last_entry_for_a_waiter_too() -> None:
    """A transaction may add several entries before a reader is served."""
    bench = Bench("7.4")
    reader = bench.park("XREAD BLOCK 0 STREAMS s t + $")
    for entry_id in (b"1-0", b"2-0"):
        command, words = command_of([b"XADD", b"s", entry_id, b"k", b"v"])
        bench.engine.run(command, frame_of(*words))
    assert reader.woken == 0
    bench.engine.serve_waiters()
    assert reader.got == [[b"s", [[b"2-0", KV]]]]


def test_plus_waits_for_a_stream_that_is_not_there(bench: Bench) -> None:
    reader = bench.park("XREAD BLOCK 0 STREAMS new +")
    bench.ask("XADD new 5-0 k v")
    assert reader.got == [[b"new", [[b"5-0", KV]]]]


def test_plus_is_no_id_before_7_4() -> None:
    for version in ("7.0", "7.2"):
        assert_refused(grouped(version=version), "XREAD STREAMS s +", INVALID_ID)
        assert_refused(grouped(version=version), "XREADGROUP GROUP g a STREAMS s +", INVALID_ID)


def test_plus_means_nothing_to_a_group(bench: Bench) -> None:
    assert_refused(grouped(version="7.4"), "XREADGROUP GROUP g a STREAMS s +", PLUS_IN_GROUP)


# --- 7.4, 8.0, 8.2: what a group has read -----------------------------------------------------------


def counts(bench: Bench) -> tuple[int | None, int | None]:
    """The entries-read and the lag of the only group."""
    [row] = bench.ask("XINFO GROUPS s")
    return row[row.index(b"entries-read") + 1], row[row.index(b"lag") + 1]


@pytest.mark.parametrize(
    ("version", "lags"),
    [("7.0", [3, 3, 3]), ("7.2", [3, 3, 3]), ("7.4", [3, 1, 0]), ("8.0", [3, 1, 0])],
)
def test_entries_trimmed_unread_are_no_lag_since_7_4(version: str, lags: list[int]) -> None:
    bench = grouped(version=version)
    for n in range(1, 6):
        bench.ask(f"XADD s {n}-0 k v")
    bench.ask("XREADGROUP GROUP g a COUNT 2 STREAMS s >")
    seen = []
    for length in (3, 1, 0):
        bench.ask(f"XTRIM s MAXLEN {length}")
        seen.append(counts(bench)[1])
    assert seen == lags


@pytest.mark.parametrize(
    ("version", "expected"), [("7.0", (2, 3)), ("7.4", (2, 3)), ("8.0", (5, 0)), ("8.2", (5, 0))]
)
def test_a_group_that_a_trim_has_overtaken_counts_again_since_8_0(
    version: str, expected: tuple[int, int]
) -> None:
    """The sequence of redis/redis issue 13957."""
    bench = grouped("1-0", "2-0", "3-0", "4-0", "5-0", version=version)
    bench.ask("XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    bench.ask("XTRIM s MAXLEN 1")
    bench.ask("XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    assert counts(bench) == expected


def test_a_group_counts_on_while_its_last_entry_is_the_first() -> None:
    bench = grouped("1-0", "2-0", "3-0", version="8.0")
    bench.ask("XGROUP SETID s g 2-0 ENTRIESREAD 7")
    bench.ask("XTRIM s MAXLEN 2")
    bench.ask("XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    assert counts(bench) == (8, -5)


@pytest.mark.parametrize(
    ("version", "expected"), [("7.0", (3, 0)), ("7.4", (None, None)), ("8.0", (None, None))]
)
def test_a_deletion_between_the_position_and_the_next_entry_hides_the_count_since_7_4(
    version: str, expected: tuple[int | None, int | None]
) -> None:
    bench = grouped("1-0", "2-0", "3-0", version=version)
    bench.ask("XGROUP SETID s g 1-0 ENTRIESREAD 2")
    bench.ask("XDEL s 2-0")
    bench.ask("XSETID s 9-0")
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    assert counts(bench) == expected


@pytest.mark.parametrize("version", ["8.2", "8.10"])
@pytest.mark.parametrize(
    "line", ["XGROUP CREATE s new 1-0 ENTRIESREAD 100", "XGROUP SETID s g 1-0 ENTRIESREAD 4"]
)
def test_entries_read_is_at_most_what_was_added_since_8_2(version: str, line: str) -> None:
    bench = grouped("1-0", "2-0", "3-0", version=version)
    assert bench.ask(line) == "OK"
    row = bench.ask("XINFO GROUPS s")[-1]
    assert (row[9], row[11]) == (3, 0)


def test_a_new_stream_has_entries_read_zero_since_8_2() -> None:
    bench = Bench("8.2")
    bench.ask("XGROUP CREATE s g 0 MKSTREAM ENTRIESREAD 100")
    assert counts(bench) == (0, 0)


def test_entries_read_may_be_too_large_before_8_2() -> None:
    bench = grouped("1-0", "2-0", "3-0", version="8.0")
    bench.ask("XGROUP SETID s g 2-0 ENTRIESREAD 100")
    assert counts(bench) == (100, -97)


def test_a_lowered_count_is_logged_as_it_is() -> None:
    recorder = Recorder("8.2", START_MS)
    for line in (
        "XADD s 1-0 k v",
        "XGROUP CREATE s g 0 ENTRIESREAD 9",
        "XGROUP SETID s g $ ENTRIESREAD 9",
    ):
        recorder.ask(line)
    assert recorder.take().count(b"ENTRIESREAD\r\n$1\r\n1\r\n") == 2


# --- 7.2: who is active ------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "inactive"), [("", 0), ("NOACK ", -1)])
def test_a_read_without_pending_entries_is_no_activity(options: str, inactive: int) -> None:
    """Found by the random campaign against 8.0."""
    bench = grouped("1-0", version="7.2")
    bench.ask(f"XREADGROUP GROUP g a {options}STREAMS s >")
    [row] = bench.ask("XINFO CONSUMERS s g")
    assert row[row.index(b"inactive") + 1] == inactive


# --- 7.4: cursors and counts -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cursor", "before", "since"),
    [
        *((b"", True, False), (b" 1", False, True), (b"\t1", False, True), (b" ", False, False)),
        *((b"-1", True, False), (b"-0", True, True), (b"-1\0", True, False), (b" -1", False, True)),
        *((b"-9223372036854775808", True, False), (b"-9223372036854775809", True, True)),
        *((b"1 ", False, False), (b"\0" + b"1", True, False), (b"-" + b"9" * 6000, False, False)),
    ],
)
def test_a_cursor_is_a_number_since_7_4(cursor: bytes, before: bool, since: bool) -> None:
    """Found by the random campaign against 8.0; the same table as of live 7.0 and 8.0."""
    for version, accepted in (("7.2", before), ("7.4", since), ("8.0", since)):
        reply = Bench(version).run("SCAN", cursor)
        assert (reply != Refusal("ERR invalid cursor")) == accepted, version


def test_lrem_refuses_the_smallest_number_since_7_4() -> None:
    """Found by the random campaign against 8.0."""
    smallest = -(2**63)
    text = f"ERR value is out of range, value must between {smallest + 1} and {2**63 - 1}"
    assert Bench("7.2").run("LREM", "m", smallest, "") == 0
    assert Bench("7.4").run("LREM", "m", smallest, "") == Refusal(text)
    assert Bench("7.4").run("LREM", "m", smallest + 1, "") == 0
