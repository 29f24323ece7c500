"""Strings: reading, writing, counting, and parts of them."""

from __future__ import annotations

import pytest

from penstock.engine.commands import substrings
from tests.support.engine.engines import NOT_A_NUMBER, START_MS, SYNTAX, WRONG_TYPE, Bench
from tests.support.engine.keyspace_events import EventRecorder
from tests.support.servers.raw_redis import Refusal

HOUR_MS = 3_600_000
OVERFLOW = "ERR increment or decrement would overflow"
NO_FLOAT = "ERR value is not a valid float"
TOO_LONG = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"


def invalid_time(command: str) -> Refusal:
    return Refusal(f"ERR invalid expire time in '{command}' command")


@pytest.fixture
def bench() -> Bench:
    """A string k, a string with an expiry time, and a stream s."""
    bench = Bench()
    bench.ask("SET k old")
    bench.ask("SET going old PX 3600000")
    bench.ask("XADD s 1-0 k v")
    return bench


# --- SET --------------------------------------------------------------------------------------------


def test_a_string_is_kept_byte_for_byte(bench: Bench) -> None:
    value = bytes(range(256))
    assert bench.run("SET", b"\x00\xff", value) == "OK"
    assert bench.run("GET", b"\x00\xff") == value
    assert bench.ask("GET missing") is None
    assert bench.ask("GET s") == Refusal(WRONG_TYPE)


@pytest.mark.parametrize(
    ("line", "reply", "value"),
    [
        ("SET k new", "OK", b"new"),
        ("SET k new NX", None, b"old"),
        ("SET k new XX", "OK", b"new"),
        ("SET missing new XX", None, None),
        ("SET missing new NX", "OK", b"new"),
        ("SET k new GET", b"old", b"new"),
        ("SET k new NX GET", b"old", b"old"),
        ("SET missing new NX GET", None, b"new"),
        ("SET missing new XX GET", None, None),
        ("set k new nx xx", Refusal(SYNTAX), b"old"),
        ("SET k new XX NX", Refusal(SYNTAX), b"old"),
        ("SET k new PERSIST", Refusal(SYNTAX), b"old"),
        ("SET k new EX", Refusal(SYNTAX), b"old"),
        ("SET k new EX 5 PX 5", Refusal(SYNTAX), b"old"),
        ("SET k new KEEPTTL EX 5", Refusal(SYNTAX), b"old"),
        ("SET k new EX abc BOGUS", Refusal(SYNTAX), b"old"),
        ("SET k new EX abc", Refusal(NOT_A_NUMBER), b"old"),
        ("SET k new EX 0", invalid_time("set"), b"old"),
        ("SET k new PX -1", invalid_time("set"), b"old"),
        ("SET k new EX 9223372036854775807", invalid_time("set"), b"old"),
        ("SET k new PX 9223372036854775807", invalid_time("set"), b"old"),
        ("SET s new GET", Refusal(WRONG_TYPE), Refusal(WRONG_TYPE)),
        ("SET s new", "OK", b"new"),
    ],
)
def test_set_obeys_its_options(bench: Bench, line: str, reply: object, value: object) -> None:
    assert bench.ask(line) == reply
    assert bench.run("GET", line.split()[1]) == value


def test_a_refused_time_is_found_before_the_wrong_type(bench: Bench) -> None:
    assert bench.ask("SET s v GET EX 0") == invalid_time("set")


def test_set_removes_the_expiry_time_unless_an_option_says_otherwise(bench: Bench) -> None:
    bench.ask("SET going new KEEPTTL")
    assert bench.ask("PTTL going") == HOUR_MS
    bench.ask("SET going new EX 10 EX 20")
    assert bench.ask("TTL going") == 20
    bench.ask("SET going new")
    assert bench.ask("TTL going") == -1


def test_a_time_that_is_over_makes_a_key_that_the_next_look_removes() -> None:
    bench = Bench("7.0")
    assert bench.ask("SET k v PXAT 1") == "OK"
    assert bench.ask("DBSIZE") == 2
    assert bench.ask("GET k") is None
    assert bench.ask("DBSIZE") == 1


@pytest.mark.parametrize(
    ("line", "ttl"),
    [
        ("SETEX n 5 v", 5000),
        ("PSETEX n 5 v", 5),
        ("SET n v EX 5", 5000),
        ("SET n v PX 5", 5),
        (f"SET n v EXAT {START_MS // 1000 + 5}", 5000),
        (f"SET n v PXAT {START_MS + 5}", 5),
        ("SETNX n v", -1),
    ],
)
def test_a_string_can_be_made_for_a_time(bench: Bench, line: str, ttl: int) -> None:
    bench.ask(line)
    assert bench.ask("GET n") == b"v"
    assert bench.ask("PTTL n") == ttl


@pytest.mark.parametrize("name", ["setex", "psetex"])
def test_no_string_is_made_for_no_time(bench: Bench, name: str) -> None:
    assert bench.ask(f"{name} k 0 v") == invalid_time(name)
    assert bench.ask(f"{name} k -1 v") == invalid_time(name)
    assert bench.ask(f"{name} k x v") == Refusal(NOT_A_NUMBER)
    assert bench.ask("GET k") == b"old"


def test_setnx_changes_no_existing_key(bench: Bench) -> None:
    assert [bench.ask(f"SETNX {key} v") for key in ("k", "s", "n")] == [0, 0, 1]


# --- Reading and changing at once --------------------------------------------------------------------


def test_getset_tells_the_old_value_and_lets_the_key_stay(bench: Bench) -> None:
    assert bench.ask("GETSET going new") == b"old"
    assert (bench.ask("GET going"), bench.ask("TTL going")) == (b"new", -1)
    assert bench.ask("GETSET missing new") is None
    assert bench.ask("GETSET s new") == Refusal(WRONG_TYPE)
    assert bench.ask("TYPE s") == "stream"


def test_getdel_removes_strings_only(bench: Bench) -> None:
    assert bench.ask("GETDEL k") == b"old"
    assert bench.ask("GETDEL k") is None
    assert bench.ask("GETDEL s") == Refusal(WRONG_TYPE)
    assert bench.ask("EXISTS k s") == 1


@pytest.mark.parametrize(
    ("options", "reply", "ttl"),
    [
        ("", b"old", HOUR_MS),
        ("PERSIST", b"old", -1),
        ("EX 7", b"old", 7000),
        ("PX 7", b"old", 7),
        (f"PXAT {START_MS + 9}", b"old", 9),
        ("EXAT 1", b"old", -2),
        ("PX 0", invalid_time("getex"), HOUR_MS),
        ("EX x", Refusal(NOT_A_NUMBER), HOUR_MS),
        ("KEEPTTL", Refusal(SYNTAX), HOUR_MS),
        ("NX", Refusal(SYNTAX), HOUR_MS),
        ("PERSIST EX 5", Refusal(SYNTAX), HOUR_MS),
    ],
)
def test_getex_reads_and_sets_the_time(bench: Bench, options: str, reply: object, ttl: int) -> None:
    assert bench.ask(f"GETEX going {options}") == reply
    assert bench.ask("PTTL going") == ttl


def test_getex_looks_at_the_key_before_it_looks_at_the_time(bench: Bench) -> None:
    assert bench.ask("GETEX missing EX 0") is None
    assert bench.ask("GETEX s EX 0") == Refusal(WRONG_TYPE)


def test_several_strings_at_once(bench: Bench) -> None:
    assert bench.ask("MSET a 1 b 2 a 3") == "OK"
    assert bench.ask("MGET a b missing s a") == [b"3", b"2", None, None, b"3"]
    assert bench.ask("MSETNX c 1 a 1") == 0
    assert bench.ask("MSETNX c 1 d 2 c 3") == 1
    assert bench.ask("MGET a c d") == [b"3", b"3", b"2"]
    for name in ("mset", "msetnx"):
        refusal = Refusal(f"ERR wrong number of arguments for '{name}' command")
        assert bench.ask(f"{name} a 1 b") == refusal
        assert bench.ask(f"{name} a") == refusal


# --- Numbers -----------------------------------------------------------------------------------------


def test_counting(bench: Bench) -> None:
    lines = ["INCR n", "INCRBY n 10", "DECR n", "DECRBY n 5", "DECRBY n -1"]
    assert [bench.ask(line) for line in lines] == [1, 11, 10, 5, 6]
    assert bench.ask("GET n") == b"6"


def test_counting_keeps_the_time_to_go(bench: Bench) -> None:
    bench.ask("SET n 5 EX 100")
    bench.ask("INCR n")
    bench.ask("INCRBYFLOAT n 1.5")
    bench.ask("APPEND n 0")
    bench.ask("SETRANGE n 0 9")
    assert (bench.ask("GET n"), bench.ask("TTL n")) == (b"9.50", 100)


@pytest.mark.parametrize("text", ["abc", "1.0", "+1", "01", "9223372036854775808", " 1", "-0"])
def test_a_value_that_is_no_integer_is_not_incremented(bench: Bench, text: str) -> None:
    bench.run("SET", "n", text)
    assert bench.ask("INCR n") == Refusal(NOT_A_NUMBER)
    assert bench.run("INCRBY", "missing", text) == Refusal(NOT_A_NUMBER)
    assert bench.ask("EXISTS missing") == 0


def test_counting_ends_at_64_bits(bench: Bench) -> None:
    bench.ask("SET n 9223372036854775806")
    assert bench.ask("INCR n") == 2**63 - 1
    assert bench.ask("INCR n") == Refusal(OVERFLOW)
    assert bench.ask("DECRBY n -9223372036854775808") == Refusal("ERR decrement would overflow")
    bench.ask("SET n -9223372036854775808")
    assert bench.ask("DECR n") == Refusal(OVERFLOW)
    assert bench.ask("GET n") == b"-9223372036854775808"


@pytest.mark.parametrize(
    ("value", "amount", "total"),
    [
        ("10.5", "0.1", b"10.6"),
        ("5.0e3", "2.0e2", b"5200"),
        ("0.1", "0.2", b"0.3"),
        ("3", "-3", b"0"),
        ("0", "-1e-30", b"0"),
        ("1", "1e-17", b"1.00000000000000001"),
        ("1e20", "0.5", b"100000000000000000000"),
        ("0x10", ".5", b"16.5"),
    ],
)
def test_fractions_are_added_as_in_a_long_double(
    bench: Bench, value: str, amount: str, total: bytes
) -> None:
    bench.run("SET", "n", value)
    assert bench.run("INCRBYFLOAT", "n", amount) == total
    assert bench.ask("GET n") == total


def test_an_increment_that_is_no_number_is_refused(bench: Bench) -> None:
    assert bench.ask("INCRBYFLOAT k 1") == Refusal(NO_FLOAT)
    assert bench.ask("INCRBYFLOAT missing 1x") == Refusal(NO_FLOAT)
    assert bench.ask("INCRBYFLOAT missing nan") == Refusal(NO_FLOAT)
    assert bench.ask("INCRBYFLOAT s x") == Refusal(WRONG_TYPE)
    infinite = Refusal("ERR increment would produce NaN or Infinity")
    assert bench.ask("INCRBYFLOAT missing inf") == infinite
    assert bench.ask("EXISTS missing") == 0


# --- Parts -------------------------------------------------------------------------------------------


def test_append_and_strlen(bench: Bench) -> None:
    assert bench.ask("APPEND k er") == 5
    assert bench.run("APPEND", "new", "") == 0
    assert bench.ask("EXISTS new") == 1
    assert [bench.ask(f"STRLEN {key}") for key in ("k", "new", "missing")] == [5, 0, 0]
    assert bench.ask("STRLEN s") == Refusal(WRONG_TYPE)


@pytest.mark.parametrize(
    ("start", "end", "part"),
    [
        (0, -1, b"Hello"),
        (1, 3, b"ell"),
        (-3, -2, b"ll"),
        (-2, -3, b""),
        (3, 1, b""),
        (-100, -50, b"H"),
        (-50, -100, b""),
        (0, -100, b"H"),
        (3, 100, b"lo"),
        (5, 9, b""),
        (-(2**63), 2**63 - 1, b"Hello"),
    ],
)
def test_a_part_of_a_string(bench: Bench, start: int, end: int, part: bytes) -> None:
    bench.ask("SET h Hello")
    assert bench.run("GETRANGE", "h", start, end) == part
    assert bench.run("SUBSTR", "h", start, end) == part
    assert bench.run("GETRANGE", "missing", start, end) == b""


def test_writing_over_a_part(bench: Bench) -> None:
    assert bench.ask("SETRANGE k 1 xyz") == 4
    assert bench.ask("GET k") == b"oxyz"
    assert bench.ask("SETRANGE k 1 a") == 4
    assert bench.ask("GET k") == b"oayz"
    assert bench.ask("SETRANGE new 2 x") == 3
    assert bench.ask("GET new") == b"\0\0x"
    assert bench.run("SETRANGE", "k", 10, "") == 4
    assert bench.run("SETRANGE", "missing", 10, "") == 0
    assert bench.ask("EXISTS missing") == 0
    assert bench.ask("SETRANGE k -1 x") == Refusal("ERR offset is out of range")


def test_no_string_grows_beyond_the_limit(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bench.ask("SETRANGE k 536870912 x") == Refusal(TOO_LONG)
    assert bench.ask("SETRANGE k 9223372036854775807 x") == Refusal(TOO_LONG)
    monkeypatch.setattr(substrings, "STRING_BYTES_MAX", 5)
    assert bench.ask("APPEND k abc") == Refusal(TOO_LONG)
    assert bench.ask("APPEND k ab") == 5
    assert bench.ask("SETRANGE k 4 x") == 5


# --- Events -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("SET k v", ["0:k set"]),
        ("SET n v EX 9", ["0:n new", "0:n set", "0:n expire"]),
        ("SET n v XX", []),
        ("SET n v GET", ["0:n keymiss", "0:n new", "0:n set"]),
        ("GETSET k v", ["0:k set"]),
        ("GETDEL k", ["0:k del"]),
        ("GETEX k EX 5", ["0:k expire"]),
        ("GETEX k EXAT 5", ["0:k del"]),
        ("GETEX k PERSIST", []),
        ("GETEX going PERSIST", ["0:going persist"]),
        ("MSET k v n v", ["0:k set", "0:n new", "0:n set"]),
        ("MGET k n s", ["0:n keymiss"]),
        ("DECRBY n 5", ["0:n new", "0:n incrby"]),
        ("INCRBYFLOAT n 5", ["0:n new", "0:n incrbyfloat"]),
        ("APPEND k x", ["0:k append"]),
        ("SETRANGE n 1 x", ["0:n new", "0:n setrange"]),
        ("SETEX k 5 v", ["0:k set", "0:k expire"]),
        ("GET n", ["0:n keymiss"]),
        ("GET k", []),
    ],
)
def test_changes_are_published(bench: Bench, line: str, told: list[str]) -> None:
    ear = EventRecorder(bench.engine, "KAnm")
    bench.ask(line)
    assert ear.take_events() == told
