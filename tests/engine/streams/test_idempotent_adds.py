"""XADD with IDMP and IDMPAUTO, XCFGSET, XIDMPRECORD on an engine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine.engines import (
    INVALID_ID,
    NO_SUCH_KEY,
    NOT_A_NUMBER,
    START_MS,
    SYNTAX,
    WRONG_TYPE,
    Bench,
    assert_refused,
)
from tests.support.servers.raw_redis import Refusal

FIRST = b"%d-0" % START_MS
DURATION_RANGE = "ERR IDMP-DURATION must be between 1 and 86400 seconds"
SIZE_RANGE = "ERR IDMP-MAXSIZE must be between 1 and 10000 entries"


@pytest.fixture
def bench() -> Bench:
    """A stream to which producer p has added message m."""
    bench = Bench()
    assert bench.ask("XADD s IDMP p m * k v") == FIRST
    return bench


def about(bench: Bench, key: str = "s") -> dict[str, Any]:
    """What XINFO STREAM says about producers, without the prefixes."""
    reply = bench.ask(f"XINFO STREAM {key}")
    pairs = dict(zip(reply[::2], reply[1::2], strict=True))
    names = ("pids-tracked", "iids-tracked", "iids-added", "iids-duplicates")
    return {name: pairs[name.encode()] for name in names}


def counts(bench: Bench, key: str = "s") -> list[int]:
    return list(about(bench, key).values())


# --- XADD -----------------------------------------------------------------------------------------


def test_a_message_sent_twice_is_added_once(bench: Bench) -> None:
    bench.clock.at_ms += 5
    assert bench.ask("XADD s IDMP p m * other fields") == FIRST
    assert bench.ask("XLEN s") == 1
    assert counts(bench) == [1, 1, 1, 1]


def test_names_belong_to_their_producer(bench: Bench) -> None:
    assert bench.ask("XADD s IDMP q m * k v") != FIRST
    assert bench.ask("XADD s IDMP p n * k v") != FIRST
    assert counts(bench) == [2, 3, 3, 0]


def test_a_duplicate_trims_nothing_and_wakes_nobody(bench: Bench) -> None:
    reader = bench.park("XREAD BLOCK 0 STREAMS s $")
    assert bench.ask("XADD s IDMP p m MAXLEN 0 * k v") == FIRST
    assert (bench.ask("XLEN s"), reader.woken) == (1, 0)


def test_a_name_expires_with_its_duration(bench: Bench) -> None:
    bench.clock.at_ms += 100_000
    assert bench.ask("XADD s IDMP p m * k v") == FIRST
    bench.clock.at_ms += 1
    assert bench.ask("XADD s IDMP p m * k v") != FIRST


def test_the_oldest_name_of_a_producer_goes_first() -> None:
    bench = Bench()
    bench.ask("XADD s * k v")
    bench.ask("XCFGSET s IDMP-MAXSIZE 2")
    ids = [bench.ask(f"XADD s IDMP p {name} * k v") for name in "abc"]
    assert bench.ask("XADD s IDMP p b * k v") == ids[1]
    assert bench.ask("XADD s IDMP p c * k v") == ids[2]
    assert bench.ask("XADD s IDMP p a * k v") not in ids


def test_idmpauto_names_a_message_after_its_fields_in_any_order() -> None:
    bench = Bench()
    first = bench.ask("XADD s IDMPAUTO p * a 1 b 2")
    assert bench.ask("XADD s IDMPAUTO p * b 2 a 1") == first
    others = ["a 2 b 1", "a 1", "a 1 b 2 b 2", "ab 1 b 2", "a 1b 2"]
    assert first not in [bench.ask(f"XADD s IDMPAUTO p * {fields} x y") for fields in others[:4]]
    assert bench.ask("XADD s IDMPAUTO q * a 1 b 2") != first


def test_a_fields_border_matters_to_idmpauto() -> None:
    bench = Bench()
    assert bench.ask("XADD s IDMPAUTO p * ab c") != bench.ask("XADD s IDMPAUTO p * a bc")


def test_a_refused_add_remembers_nothing(bench: Bench) -> None:
    assert isinstance(bench.ask("XADD s IDMP p n MAXLEN x * k v"), Refusal)
    assert isinstance(bench.ask("XADD s IDMP p n * k v k"), Refusal)
    assert counts(bench) == [1, 1, 1, 0]


def test_nomkstream_makes_neither_stream_nor_name() -> None:
    bench = Bench()
    assert bench.ask("XADD s NOMKSTREAM IDMP p m * k v") is None
    assert bench.ask("EXISTS s") == 0


@pytest.mark.parametrize("name", [b"\x00\xff", b"m" * 65536, b"*", b"IDMP"])
def test_any_bytes_are_a_name(bench: Bench, name: bytes) -> None:
    added = bench.run("XADD", "s", "IDMP", name, name, "*", "k", "v")
    assert bench.run("XADD", "s", "IDMP", name, name, "*", "k", "w") == added


MULTIPLE = "ERR syntax error, IDMP/IDMPAUTO specified multiple times"
LIMIT_ALONE = "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
ONLY_AUTO = "ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("IDMP p m IDMP p m *", MULTIPLE),
        ("IDMP p m IDMPAUTO p *", MULTIPLE),
        ("IDMPAUTO p IDMPAUTO p *", MULTIPLE),
        ("IDMP p m 1-1", ONLY_AUTO),
        ("IDMPAUTO p 99999999999999-*", ONLY_AUTO),
        ("IDMP p m LIMIT 5 *", LIMIT_ALONE),
    ],
)  # fmt: skip
def test_an_invalid_add_changes_nothing(bench: Bench, words: str, text: str) -> None:
    assert_refused(bench, f"XADD s {words} k v", text)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["IDMP", "", "m"], "ERR syntax error, IDMP requires a non-empty producer ID"),
        (["IDMP", "p", ""], "ERR syntax error, IDMP requires a non-empty idempotent ID"),
        (["IDMPAUTO", ""], "ERR syntax error, IDMPAUTO requires a non-empty producer ID"),
    ],
)
def test_an_empty_name_is_refused(bench: Bench, words: list[str], text: str) -> None:
    before = bench.state()
    assert bench.run("XADD", "s", *words, "*", "k", "v") == Refusal(text)
    assert bench.state() == before


def test_older_levels_do_not_know_producers() -> None:
    bench = Bench("8.4")
    assert bench.ask("XADD s IDMP p m * k v") == Refusal(INVALID_ID)
    bench.ask("XADD s 1-0 k v")
    assert b"idmp-duration" not in bench.ask("XINFO STREAM s")


# --- XCFGSET --------------------------------------------------------------------------------------


def test_other_settings_forget_all_names(bench: Bench) -> None:
    assert bench.ask("XCFGSET s IDMP-DURATION 100 IDMP-MAXSIZE 100") == "OK"
    assert counts(bench) == [1, 1, 1, 0]
    assert bench.ask("XCFGSET s idmp-maxsize 99") == "OK"
    assert counts(bench) == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("s", "ERR At least one parameter must be specified"),
        ("missing", NO_SUCH_KEY),
        ("string", WRONG_TYPE),
        ("s IDMP-DURATION", SYNTAX),
        ("s FOO 5", SYNTAX),
        ("s IDMP-DURATION 0", DURATION_RANGE),
        ("s IDMP-DURATION 86401", DURATION_RANGE),
        ("s IDMP-DURATION -1", DURATION_RANGE),
        ("s IDMP-DURATION x", NOT_A_NUMBER),
        ("s IDMP-MAXSIZE 0", SIZE_RANGE),
        ("s IDMP-MAXSIZE 10001", SIZE_RANGE),
        ("s IDMP-DURATION 5 IDMP-MAXSIZE 0", SIZE_RANGE),
        ("s IDMP-DURATION 5 IDMP-DURATION 5", "ERR IDMP-DURATION specified multiple times"),
        ("s IDMP-MAXSIZE 5 IDMP-MAXSIZE 5", "ERR IDMP-MAXSIZE specified multiple times"),
    ],
)
def test_invalid_settings_change_nothing(bench: Bench, words: str, text: str) -> None:
    assert_refused(bench, f"XCFGSET {words}", text)


# --- XIDMPRECORD ----------------------------------------------------------------------------------


def test_a_recorded_name_stops_duplicates(bench: Bench) -> None:
    entry = FIRST.decode()
    assert bench.ask(f"XIDMPRECORD s q old {entry}") == "OK"
    assert bench.ask("XADD s IDMP q old * k v") == FIRST
    assert bench.ask(f"XIDMPRECORD s q old {entry}") == "OK"
    assert counts(bench) == [2, 2, 2, 1]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("s p n 1-1", "ERR No such message in stream"),
        ("s p n oops", INVALID_ID),
        ("missing p n 1-1", NO_SUCH_KEY),
        ("string p n 1-1", WRONG_TYPE),
        ("missing p n oops", INVALID_ID),
    ],
)
def test_an_invalid_record_changes_nothing(bench: Bench, words: str, text: str) -> None:
    assert_refused(bench, f"XIDMPRECORD {words}", text)


def test_a_name_stays_with_its_entry(bench: Bench) -> None:
    bench.ask("XADD s 99999999999999-0 k v")
    text = "ERR IID already exists for this producer with a different stream ID"
    assert_refused(bench, "XIDMPRECORD s p m 99999999999999-0", text)


def test_empty_names_are_refused_after_the_id(bench: Bench) -> None:
    assert bench.run("XIDMPRECORD", "s", "", "", "oops") == Refusal(INVALID_ID)
    texts = [bench.run("XIDMPRECORD", "missing", *names, "1-1") for names in (("", ""), ("p", ""))]
    assert texts == [
        Refusal("ERR producer ID must be non-empty"),
        Refusal("ERR idempotent ID must be non-empty"),
    ]
