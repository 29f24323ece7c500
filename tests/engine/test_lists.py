"""List commands: replies, nulls, errors, events, and the removal of empty lists.

LSET, LINSERT and LPOS are in test_list_edits.
"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core.check import check_list
from penstock.core.list_value import ListValue
from penstock.engine import events
from penstock.engine.commands import lists
from penstock.engine.execute import TABLE
from penstock.engine.keyspace import Watch
from penstock.errors import CommandError
from penstock.reply import NULL_ARRAY
from tests.support.engine.engines import NOT_A_NUMBER, SYNTAX, WRONG_TYPE, Bench, command_of
from tests.support.engine.streams import frame_of
from tests.support.servers.raw_redis import Refusal

NOT_POSITIVE = "ERR value is out of range, must be positive"
NO_KEYS_TEXT = "ERR numkeys should be greater than 0"
NO_COUNT_TEXT = "ERR count should be greater than 0"
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@pytest.fixture
def bench() -> Bench:
    """A list l of a b c d."""
    bench = Bench("7.0")
    bench.ask("RPUSH l a b c d")
    return bench


def elements(bench: Bench, key: str = "l") -> list[bytes] | None:
    """The elements of a list, after checking it; None if the key is missing."""
    value = bench.engine.context.keyspace.find(key.encode())
    if value is None:
        return None
    assert isinstance(value, ListValue)
    assert value.length > 0
    check_list(value, bench.engine.list_limits)
    return value.range(0, value.length - 1)


class Ear:
    """Collects events, without the name of the database."""

    def __init__(self, bench: Bench) -> None:
        self.heard: list[str] = []
        context = bench.engine.context
        context.event_kinds = events.parse_kinds_or_none("EAnm") or 0
        context.channels.by_pattern[b"*"] = {self: None}

    def message(self, channel: bytes, text: bytes) -> None:
        raise AssertionError("nothing is subscribed to by name")

    def shard_message(self, channel: bytes, text: bytes) -> None:
        raise AssertionError("events are not sent to shard channels")

    def pattern_message(self, _pattern: bytes, channel: bytes, text: bytes) -> None:
        self.heard.append(f"{channel.decode().split(':')[1]} {text.decode()}")


# --- Pushing --------------------------------------------------------------------------------------


def test_a_push_adds_one_after_the_other_and_returns_the_length(bench: Bench) -> None:
    assert bench.ask("LPUSH l 1 2") == 6
    assert bench.ask("RPUSH l 3 4") == 8
    assert elements(bench) == [b"2", b"1", b"a", b"b", b"c", b"d", b"3", b"4"]


def test_a_push_makes_the_list_but_not_with_x(bench: Bench) -> None:
    assert bench.ask("LPUSHX new a") == bench.ask("RPUSHX new a") == 0
    assert elements(bench, "new") is None
    assert bench.ask("LPUSH new a b") == 2
    assert bench.ask("LPUSHX new c d") == 4
    assert bench.ask("RPUSHX new e") == 5
    assert elements(bench, "new") == [b"d", b"c", b"b", b"a", b"e"]


def test_elements_may_be_any_bytes(bench: Bench) -> None:
    many = [b"", b"\x00\r\n\xff", b"007", b"7", b"-12", str(2**63).encode(), b"x" * 9000]
    assert bench.run("RPUSH", "k", *many) == len(many)
    assert elements(bench, "k") == many


def test_a_push_of_too_much_adds_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "PUSH_BYTES_MAX", 10)
    assert bench.ask("RPUSH l 12345 123456") == Refusal("ERR Elements are too large to be stored")
    assert bench.ask("RPUSH new 12345678901") == Refusal("ERR Elements are too large to be stored")
    assert (elements(bench), elements(bench, "new")) == ([b"a", b"b", b"c", b"d"], None)
    assert bench.ask("RPUSH l 12345 12345") == 6


def test_all_lists_of_an_engine_share_limits_that_can_change(bench: Bench) -> None:
    bench.engine.list_limits.set_listpack_size(2)
    bench.ask("RPUSH k a b c d e")
    value = bench.engine.context.keyspace.list_or_none(b"k")
    assert value is not None
    assert len(list(value.nodes())) == 3
    bench.engine.list_limits.set_listpack_size(-2)
    bench.ask("RPUSH k f g h")
    assert len(list(value.nodes())) == 3
    assert bench.engine.context.databases[5].new_list().limits is bench.engine.list_limits


# --- Popping --------------------------------------------------------------------------------------


def test_a_pop_takes_from_its_end(bench: Bench) -> None:
    assert bench.ask("LPOP l") == b"a"
    assert bench.ask("RPOP l") == b"d"
    assert elements(bench) == [b"b", b"c"]


def test_a_pop_with_a_count_answers_in_the_order_of_the_taking(bench: Bench) -> None:
    bench.ask("RPUSH l e f")
    assert bench.ask("LPOP l 2") == [b"a", b"b"]
    assert bench.ask("RPOP l 3") == [b"f", b"e", b"d"]
    assert bench.ask("LPOP l 1") == [b"c"]
    assert elements(bench) is None


def test_a_count_above_the_length_takes_all(bench: Bench) -> None:
    assert bench.ask(f"RPOP l {INT64_MAX}") == [b"d", b"c", b"b", b"a"]
    assert elements(bench) is None


def test_nothing_to_pop_is_a_null_a_null_array_or_an_empty_one(bench: Bench) -> None:
    assert bench.ask("LPOP new") is None
    assert bench.ask("LPOP new 1") is NULL_ARRAY
    assert bench.ask("RPOP new 0") is NULL_ARRAY
    assert bench.ask("RPOP l 0") == []
    assert elements(bench) == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("count", ["-1", "x", "1.0", "9223372036854775808", "01"])
def test_an_invalid_count_is_refused_for_any_key(bench: Bench, count: str) -> None:
    for key in ("l", "new", "string"):
        assert bench.ask(f"LPOP {key} {count}") == Refusal(NOT_POSITIVE)


def test_a_pop_has_one_count(bench: Bench) -> None:
    text = "ERR wrong number of arguments for '%s' command"
    assert bench.ask("LPOP l 1 2") == Refusal(text % "lpop")
    assert bench.ask("RPOP string 1 2") == Refusal(text % "rpop")


def test_an_emptied_list_is_gone_with_its_time_to_go(bench: Bench) -> None:
    keyspace = bench.engine.context.keyspace
    keyspace.set_expiry(b"l", bench.clock.at_ms + 1000)
    bench.ask("LPOP l 4")
    assert keyspace.expiry_or_none(b"l") is None
    bench.ask("RPUSH l a")
    bench.clock.at_ms += 5000
    assert elements(bench) == [b"a"]


def test_a_pop_from_several_lists_uses_the_first_that_has_elements(bench: Bench) -> None:
    bench.ask("RPUSH k x y")
    assert bench.ask("LMPOP 3 new l k LEFT") == [b"l", [b"a"]]
    assert bench.ask("lmpop 2 k l right count 1") == [b"k", [b"y"]]
    assert bench.ask("LMPOP 2 l k RIGHT COUNT 2") == [b"l", [b"d", b"c"]]
    assert bench.ask(f"LMPOP 2 l k LEFT COUNT {INT64_MAX}") == [b"l", [b"b"]]
    assert (elements(bench), elements(bench, "k")) == (None, [b"x"])
    assert bench.ask("LMPOP 1 l LEFT") is NULL_ARRAY


def test_a_list_before_a_key_of_another_type_is_popped_from(bench: Bench) -> None:
    assert bench.ask("LMPOP 2 l string LEFT") == [b"l", [b"a"]]
    assert bench.ask("LMPOP 2 new string LEFT") == Refusal(WRONG_TYPE)
    assert bench.ask("LMPOP 3 new string l LEFT") == Refusal(WRONG_TYPE)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        *((f"{count} l LEFT", NO_KEYS_TEXT) for count in ("0", "-1", "x", "1.0", INT64_MAX + 1)),
        *((f"{count} l LEFT", SYNTAX) for count in (2, 3, INT64_MAX)),
        *((f"1 l LEFT COUNT {count}", NO_COUNT_TEXT) for count in ("0", "-1", "x", INT64_MAX + 1)),
        ("1 l UP", SYNTAX),
        ("1 l LEFT COUNT", SYNTAX),
        ("1 l LEFT FOO", SYNTAX),
        ("1 l LEFT FOO 1", SYNTAX),
        ("1 l LEFT COUNT 1 COUNT 1", SYNTAX),
        ("1 l LEFT COUNT 1 x", SYNTAX),
        ("1 l LEFT COUNT 0 x", NO_COUNT_TEXT),
        ("1 string LEFT COUNT 0", NO_COUNT_TEXT),
        ("2 string LEFT COUNT x", SYNTAX),
        ("0 string UP", NO_KEYS_TEXT),
    ],
)
def test_arguments_are_checked_from_left_to_right_before_the_keys(
    bench: Bench, words: str, text: str
) -> None:
    """The timeout comes last, although it is the first argument."""
    assert bench.ask(f"LMPOP {words}") == Refusal(text)
    assert bench.ask(f"BLMPOP x {words}") == Refusal(text)
    assert elements(bench) == [b"a", b"b", b"c", b"d"]


# --- Reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (0, -1, "abcd"),
        (1, 2, "bc"),
        (-2, -1, "cd"),
        (-100, 0, "a"),
        (3, 100, "d"),
        (4, 100, ""),
        (2, 1, ""),
        (-1, -2, ""),
        (0, -5, ""),
        (INT64_MIN, INT64_MAX, "abcd"),
        (INT64_MAX, INT64_MIN, ""),
    ],
)
def test_a_range_and_a_trim_agree_on_the_elements_between(
    bench: Bench, start: int, end: int, found: str
) -> None:
    expected = [letter.encode() for letter in found]
    assert bench.run("LRANGE", "l", start, end) == expected
    assert bench.run("LTRIM", "l", start, end) == "OK"
    assert (elements(bench) or []) == expected


def test_an_index_counts_from_either_end(bench: Bench) -> None:
    found = [bench.run("LINDEX", "l", index) for index in (0, 3, -1, -4, 4, -5, INT64_MIN)]
    assert found == [b"a", b"d", b"d", b"a", None, None, None]


def test_a_missing_key_is_empty(bench: Bench) -> None:
    assert bench.ask("LLEN new") == 0
    assert bench.ask("LINDEX new x") is None
    assert bench.ask("LRANGE new 0 -1") == []
    assert bench.ask("LTRIM new 0 1") == "OK"
    assert bench.ask("LREM new 0 a") == 0
    assert bench.ask("LLEN l") == 4


# --- Removing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "removed", "left"),
    [(0, 3, "bc"), (1, 1, "baca"), (-1, 1, "abac"), (2, 2, "bca"), (-2, 2, "abc"), (9, 3, "bc")],
)
def test_a_count_says_how_many_equal_ones_go_and_from_where(
    bench: Bench, count: int, removed: int, left: str
) -> None:
    bench.ask("RPUSH k a b a c a")
    assert bench.run("LREM", "k", count, "a") == removed
    assert elements(bench, "k") == [letter.encode() for letter in left]


def test_numbers_are_equal_by_their_text(bench: Bench) -> None:
    bench.ask("RPUSH k 7 07 7")
    assert bench.ask("LREM k 0 07") == 1
    assert bench.ask(f"LREM k {INT64_MIN} 7") == 2
    assert elements(bench, "k") is None


# --- Moving ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "source", "target"),
    [
        ("LEFT LEFT", "bcd", "axy"),
        ("LEFT RIGHT", "bcd", "xya"),
        ("RIGHT LEFT", "abc", "dxy"),
        ("right Right", "abc", "xyd"),
    ],
)
def test_a_move_goes_from_an_end_to_an_end(
    bench: Bench, ends: str, source: str, target: str
) -> None:
    bench.ask("RPUSH k x y")
    assert bench.ask(f"LMOVE l k {ends}") in (b"a", b"d")
    assert b"".join(elements(bench) or []) == source.encode()
    assert b"".join(elements(bench, "k") or []) == target.encode()


def test_a_move_within_a_list_turns_it(bench: Bench) -> None:
    assert bench.ask("RPOPLPUSH l l") == b"d"
    assert elements(bench) == [b"d", b"a", b"b", b"c"]
    assert bench.ask("LMOVE l l LEFT RIGHT") == b"d"
    assert bench.ask("LMOVE l l RIGHT RIGHT") == b"d"
    assert elements(bench) == [b"a", b"b", b"c", b"d"]


def test_a_list_of_one_that_is_turned_keeps_its_key_and_its_time(bench: Bench) -> None:
    bench.ask("RPUSH k x")
    keyspace = bench.engine.context.keyspace
    keyspace.set_expiry(b"k", bench.clock.at_ms + 1000)
    assert bench.ask("LMOVE k k LEFT RIGHT") == b"x"
    assert keyspace.expiry_or_none(b"k") == bench.clock.at_ms + 1000


def test_the_last_element_takes_the_key_with_it(bench: Bench) -> None:
    bench.ask("RPUSH k x")
    assert bench.ask("RPOPLPUSH k new") == b"x"
    assert (elements(bench, "k"), elements(bench, "new")) == (None, [b"x"])
    assert bench.ask("RPOPLPUSH k new") is None
    assert bench.ask("LMOVE k new LEFT LEFT") is None


def test_words_for_the_ends_are_checked_before_the_keys(bench: Bench) -> None:
    assert bench.ask("LMOVE new new LEFT LIFT") == Refusal(SYNTAX)
    assert bench.ask("LMOVE string l UP LEFT") == Refusal(SYNTAX)


# --- Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        *("LPUSH string a", "RPUSHX string a", "LPOP string", "RPOP string 0", "LLEN string"),
        *("LINDEX string x", "LRANGE string 0 1", "LREM string 0 a", "LTRIM string 0 1"),
        *("LMOVE string l LEFT LEFT", "LMOVE l string LEFT LEFT", "RPOPLPUSH l string"),
        *("BLPOP new string l 0", "BRPOP string 0", "BLMOVE l string LEFT LEFT 0"),
        *("BLMOVE string l LEFT LEFT 0", "BRPOPLPUSH l string 0"),
        *("LSET string x y", "LINSERT string AFTER a b", "LPOS string a", "LMPOP 1 string LEFT"),
        *("BLMPOP 0 2 new string LEFT",),
    ],
)
def test_a_key_of_another_type_is_refused_and_nothing_changes(bench: Bench, line: str) -> None:
    dirty = bench.engine.context.dirty
    assert bench.ask(line) == Refusal(WRONG_TYPE)
    assert elements(bench) == [b"a", b"b", b"c", b"d"]
    assert bench.engine.context.dirty == dirty


@pytest.mark.parametrize(
    "line",
    [
        *("LINDEX l x", "LRANGE new x 0", "LRANGE string 0 1.0", "LREM string x a"),
        *("LTRIM new 0 x", f"LRANGE l 0 {INT64_MAX + 1}", "LTRIM l +1 2"),
    ],
)
def test_numbers_are_checked_before_the_key(bench: Bench, line: str) -> None:
    assert bench.ask(line) == Refusal(NOT_A_NUMBER)
    assert elements(bench) == [b"a", b"b", b"c", b"d"]


def test_every_list_command_counts_its_words(bench: Bench) -> None:
    names = [name for name, row in TABLE.items() if row.group == "list"]
    assert len(names) >= 22
    for name in names:
        text = f"ERR wrong number of arguments for '{name.lower()}' command"
        assert bench.ask(name) == Refusal(text)


# --- Events ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "told", "changes"),
    [
        ("RPUSH new a b c", ["new new", "rpush new"], 3),
        ("LPUSHX l x y", ["lpush l"], 2),
        ("LPUSHX new x", [], 0),
        ("LPOP l", ["lpop l"], 1),
        ("RPOP l 3", ["rpop l"], 3),
        ("LPOP l 9", ["lpop l", "del l"], 4),
        ("LPOP l 0", [], 0),
        ("LREM l 0 a", ["lrem l"], 1),
        ("LREM l 0 x", [], 0),
        ("LTRIM l 0 -1", ["ltrim l"], 0),
        ("LTRIM l 1 2", ["ltrim l"], 2),
        ("LTRIM l 9 9", ["ltrim l", "del l"], 4),
        ("LMOVE l new LEFT RIGHT", ["new new", "rpush new", "lpop l"], 1),
        ("LMOVE one new RIGHT LEFT", ["new new", "lpush new", "rpop one", "del one"], 1),
        ("LMOVE one one RIGHT LEFT", ["lpush one", "rpop one"], 1),
        ("BLPOP new one 0", ["lpop one", "del one"], 1),
        ("BRPOPLPUSH l one 0", ["lpush one", "rpop l"], 1),
        ("LLEN new", ["keymiss new"], 0),
        ("LINDEX new 0", ["keymiss new"], 0),
        ("LRANGE new 0 1", ["keymiss new"], 0),
        ("LPOP new", [], 0),
        ("LSET l 0 x", ["lset l"], 1),
        ("LSET l 0 a", ["lset l"], 1),
        ("LSET l 4 x", [], 0),
        ("LSET new 0 x", [], 0),
        ("LINSERT l BEFORE a x", ["linsert l"], 1),
        ("LINSERT l BEFORE x y", [], 0),
        ("LINSERT new BEFORE x y", [], 0),
        ("LPOS l a", [], 0),
        ("LPOS new a", ["keymiss new"], 0),
        ("LMPOP 2 new l LEFT", ["lpop l"], 1),
        ("LMPOP 1 l RIGHT COUNT 9", ["rpop l", "del l"], 4),
        ("LMPOP 1 new LEFT", [], 0),
        ("BLMPOP 0 1 l LEFT COUNT 2", ["lpop l"], 2),
        ("LRANGE l 0 1", [], 0),
    ],
)
def test_events_and_counted_changes(bench: Bench, line: str, told: list[str], changes: int) -> None:
    """As Redis 7.0 publishes and counts them."""
    bench.ask("RPUSH one x")
    ear = Ear(bench)
    before = bench.engine.context.dirty
    bench.ask(line)
    assert (ear.heard, bench.engine.context.dirty - before) == (told, changes)


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("RPUSH l x", True),
        ("LPOP l", True),
        ("LPOP l 0", False),
        ("LTRIM l 0 -1", True),
        ("LREM l 0 x", False),
        ("LMOVE l k LEFT LEFT", True),
        ("LMOVE k l LEFT LEFT", True),
        ("LMOVE new l LEFT LEFT", False),
        ("LLEN l", False),
        ("LSET l 0 a", True),
        ("LSET l 9 a", False),
        ("LINSERT l AFTER a x", True),
        ("LINSERT l AFTER x x", False),
        ("LMPOP 2 l k LEFT", True),
        ("LMPOP 2 k l LEFT", False),
    ],
)
def test_a_change_breaks_the_watches_of_its_keys(bench: Bench, line: str, broken: bool) -> None:
    bench.ask("RPUSH k x")
    context = bench.engine.context
    watch = Watch()
    context.keyspace.watch(b"l", watch)
    context.watching = 1
    bench.ask(line)
    assert watch.broken == broken


def test_keys_are_found_in_front_of_the_timeout() -> None:
    def places(line: str) -> Any:
        command, pieces = command_of(line.split())
        return command.key_places(frame_of(*pieces))

    assert places("BLPOP a b c 0") == [1, 2, 3]
    assert places("BRPOP a 0") == [1]
    assert places("BLMOVE a b LEFT LEFT 0") == places("RPOPLPUSH a b") == [1, 2]


def test_keys_are_found_after_their_number() -> None:
    def places(line: str) -> Any:
        command, pieces = command_of(line.split())
        return command.key_places(frame_of(*pieces))

    assert places("LMPOP 2 a b LEFT") == [2, 3]
    assert places("BLMPOP 0 2 a b LEFT COUNT 3") == [3, 4]
    assert places("LMPOP 3 a b LEFT") == [2, 3, 4]  # as in Redis: nothing else is checked
    for line in ("LMPOP 0 a LEFT", "LMPOP 3 a LEFT", "LMPOP x a LEFT", "BLMPOP 0 3 a LEFT"):
        with pytest.raises(CommandError):
            places(line)
