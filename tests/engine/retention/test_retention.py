"""Retention: rules, where they cut a stream, and the pass that applies them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from penstock.core import stream_id
from penstock.engine.retention.amounts import amount_or_none, ms_or_none, ms_text
from penstock.engine.retention.policy import parse_policies, policy_of
from penstock.engine.retention.sweep import ROWS_A_STEP, Sweep
from penstock.errors import CommandError
from tests.support.campaign import cases, seed
from tests.support.engine.engines import START_MS, Bench, assert_refused

DAY_MS = 86_400_000


def sweep(bench: Bench, rules: str, consumer_idle_ms: int = 0) -> Sweep:
    """One whole pass."""
    work = Sweep(bench.engine)
    return again(work, rules, consumer_idle_ms)


def again(work: Sweep, rules: str, consumer_idle_ms: int = 0) -> Sweep:
    work.policies = parse_policies(rules.split())
    work.consumer_idle_ms = consumer_idle_ms
    work.begin()
    while not work.is_over:
        work.step()
    return work


def filled(count: int = 1000, name: str = "s") -> Bench:
    """A stream with an entry each second, the last one now; 10 entries to a node."""
    bench = Bench()
    bench.engine.limits.entries_max = 10
    for number in range(count):
        at_ms = START_MS - 1000 * (count - 1 - number)
        bench.run("XADD", name, f"{at_ms}-0", "n", number)
    return bench


def length(bench: Bench, name: str = "s") -> int:
    found: int = bench.run("XLEN", name)
    return found


# --- Rules ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "amount"),
    [("0", 0), ("12", 12), ("1k", 1000), ("1KB", 1024), ("3m", 3_000_000), ("1gb", 1 << 30)],
)
def test_amounts_have_the_units_of_redis_conf(text: str, amount: int) -> None:
    assert amount_or_none(text) == amount


@pytest.mark.parametrize("text", ["", "x", "1d", "-1", "1.5", "1 k", "٣"])
def test_other_amounts_are_refused(text: str) -> None:
    assert amount_or_none(text) is None


@pytest.mark.parametrize(
    ("text", "ms"), [("1ms", 1), ("90s", 90_000), ("2h", 7_200_000), ("7d", 7 * DAY_MS)]
)
def test_times_need_a_unit(text: str, ms: int) -> None:
    assert ms_or_none(text) == ms
    assert ms_or_none(ms_text(ms)) == ms


@pytest.mark.parametrize("text", ["", "1", "1y", "-1d", "1.5d", "d"])
def test_other_times_are_refused(text: str) -> None:
    assert ms_or_none(text) is None


def test_a_rule_ends_where_a_word_is_no_option() -> None:
    rules = "orders:* AGE 7d bytes 1gb length 1m Acked YES idle-group 30d force yes logs length 0"
    first, second = parse_policies(rules.split())
    assert first.text() == (
        "orders:* age 1w bytes 1073741824 length 1000000 acked yes idle-group 30d force yes"
    )
    assert second.text() == "logs length 0"
    assert parse_policies(first.text().split()) == (first,)
    assert policy_of((first, second), b"logs") is second
    assert policy_of((first, second), b"orders:eu") is first
    assert policy_of((first, second), b"orders") is None


def test_entries_that_are_delayed_need_a_rule_of_their_own() -> None:
    rules = "* age 1d orders:* age 1d *:delayed age 9d"
    every, orders, named = parse_policies(rules.split())
    assert policy_of((every, orders), b"orders:delayed") is None
    assert policy_of((every, orders, named), b"orders:delayed") is named
    assert policy_of((every, orders, named), b"orders:dead") is every


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("s", "retention of s: no options"),
        ("s t length 1", "retention of s: no options"),
        ("s age", "age has no value"),
        ("s age 7", "age must be a time such as 30s"),
        ("s age 0d", "age must be a time"),
        ("s length -1", "length must be a number"),
        ("s length 1e3", "length must be a number"),
        ("s bytes 99999999999999999999", "bytes must be a number"),
        ("s acked maybe", "acked must be yes or no"),
        ("s length 1 length 2", "length is given twice"),
        ("s acked no", "give at least one of"),
        ("s force yes", "give at least one of"),
        ("s acked yes force yes", "force needs a limit"),
        ("s length 1 idle-group 1d", "idle-group needs acked yes"),
    ],
)
def test_bad_rules_are_refused_with_their_reason(rules: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        parse_policies(rules.split())


# --- Limits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ("length 995", 1000),
        ("length 990", 990),
        ("length 985", 990),
        ("length 0", 0),
        ("age 100s", 110),
        ("age 99s", 100),
        ("age 1d", 1000),
        ("age 1s length 500", 10),
        ("acked yes", 1000),  # there is no group
    ],
)
def test_whole_nodes_go(rule: str, left: int) -> None:
    bench = filled()
    sweep(bench, f"s {rule}")
    assert length(bench) == left
    bench.state()


def test_bytes_are_those_of_the_nodes() -> None:
    bench = filled()
    before = dict(zip(*[iter(bench.ask("PENSTOCK RETENTION s bytes 1"))] * 2, strict=True))
    half = before[b"bytes"] // 2
    sweep(bench, f"s bytes {half}")
    after = dict(zip(*[iter(bench.ask("PENSTOCK RETENTION s bytes 1"))] * 2, strict=True))
    assert half - before[b"bytes"] // 50 < after[b"bytes"] <= half + before[b"bytes"] // 50
    assert before[b"removed-entries"] == 990  # the last node has more than one byte


def test_the_first_rule_that_matches_holds_and_other_keys_stay() -> None:
    bench = filled()
    for number in range(300):
        bench.run("SET", f"s{number}", "a string")
    bench.ask("SELECT 0")
    sweep(bench, "t length 1 s length 500 * length 1")
    assert length(bench) == 500


def test_every_database_is_swept() -> None:
    bench = filled(100)
    bench.ask("SWAPDB 0 7")
    sweep(bench, "* length 10")
    bench.ask("SWAPDB 0 7")
    assert length(bench) == 10


# --- Groups -----------------------------------------------------------------------------------------


def with_groups(read: int, acked: int) -> Bench:
    """Group g has read and acknowledged some of 1000 entries, group h all of them."""
    bench = filled()
    for name in ("g", "h"):
        bench.run("XGROUP", "CREATE", "s", name, 0)
        bench.run("XREADGROUP", "GROUP", name, "c", "COUNT", read, "STREAMS", "s", ">")
    bench.run("XREADGROUP", "GROUP", "h", "c", "STREAMS", "s", ">")
    ids = [entry[0] for entry in bench.run("XRANGE", "s", "-", "+")]
    if acked:
        bench.run("XACK", "s", "g", *ids[:acked])
    bench.run("XACK", "s", "h", *ids)
    return bench


@pytest.mark.parametrize(
    ("read", "acked", "left"),
    [(1000, 1000, 0), (1000, 500, 500), (1000, 505, 500), (500, 500, 500), (1000, 0, 1000)],
)
def test_acked_removes_what_every_group_has_acknowledged(read: int, acked: int, left: int) -> None:
    bench = with_groups(read, acked)
    sweep(bench, "s acked yes")
    assert length(bench) == left


def test_limits_remove_nothing_that_a_group_needs_unless_forced() -> None:
    bench = with_groups(600, 300)
    sweep(bench, "s length 100 acked yes")
    assert length(bench) == 700
    sweep(bench, "s length 100 acked yes force yes")
    assert length(bench) == 100
    assert bench.ask("XPENDING s g")[0] == 0  # no row is left without its entry


def test_limits_without_acked_leave_pending_rows_as_xtrim_does() -> None:
    bench = with_groups(600, 300)
    sweep(bench, "s length 100")
    assert length(bench) == 100
    assert bench.ask("XPENDING s g")[0] == 300


def test_more_rows_than_a_step_takes_go_before_their_entries() -> None:
    bench = with_groups(600, 0)
    work = Sweep(bench.engine)
    work.policies = parse_policies(["s", "length", "0", "force", "yes"])
    work.begin()
    while not work.is_over:
        work.step()
        first = bench.ask("XPENDING s g - + 1")
        assert not first or bench.run("XRANGE", "s", first[0][0], first[0][0])
    assert length(bench) == 0
    assert ROWS_A_STEP < 600


def test_a_group_that_nobody_reads_holds_up_nothing_after_a_while() -> None:
    bench = with_groups(1000, 500)
    rule = "s acked yes idle-group 1d"
    bench.ask("XREADGROUP GROUP h d STREAMS s >")
    sweep(bench, rule)
    assert length(bench) == 500
    bench.clock.at_ms += DAY_MS
    bench.ask("XREADGROUP GROUP h d STREAMS s >")
    sweep(bench, rule)
    assert length(bench) == 0


def test_a_group_without_consumers_is_as_old_as_the_first_look_at_it() -> None:
    bench = with_groups(1000, 1000)
    bench.ask("XGROUP CREATE s fresh 0")
    rule = "s acked yes idle-group 1d"
    work = sweep(bench, rule)
    bench.clock.at_ms += DAY_MS - 1
    again(work, rule)
    assert length(bench) == 1000
    bench.clock.at_ms += 1
    bench.ask("XREADGROUP GROUP g c STREAMS s >")
    again(work, rule)
    assert length(bench) == 0


def test_idle_consumers_without_entries_go() -> None:
    bench = with_groups(1000, 1000)
    bench.ask("XGROUP CREATECONSUMER s g empty")
    bench.ask("XADD s * n 1")
    bench.ask("XREADGROUP GROUP g busy STREAMS s >")
    bench.clock.at_ms += DAY_MS
    bench.ask("XREADGROUP GROUP h c STREAMS s >")
    sweep(bench, "", DAY_MS)
    names = [row[1] for row in bench.ask("XINFO CONSUMERS s g")]
    assert names == [b"busy"]
    assert [row[1] for row in bench.ask("XINFO CONSUMERS s h")] == [b"c"]


def test_random_groups_lose_nothing_they_need() -> None:
    dice = random.Random(seed())
    for _ in range(cases(200)):
        bench = Bench()
        bench.engine.limits.entries_max = dice.choice([1, 3, 10])
        for number in range(dice.randrange(1, 60)):
            bench.run("XADD", "s", f"{number + 1}-0", "n", number)
        for name in ("g", "h")[: dice.randrange(3)]:
            bench.run("XGROUP", "CREATE", "s", name, 0)
            bench.run(
                "XREADGROUP",
                "GROUP",
                name,
                "c",
                "COUNT",
                dice.randrange(1, 60),
                "STREAMS",
                "s",
                ">",
            )
            for number in range(60):
                if dice.random() < 0.7:
                    bench.run("XACK", "s", name, f"{number}-0")
        needed = {
            (group[1], entry)
            for group in bench.ask("XINFO GROUPS s")
            for entry in needed_ids(bench, group[1])
        }
        sweep(bench, "s length 1 acked yes")
        left = {entry[0] for entry in bench.run("XRANGE", "s", "-", "+")}
        lost = {(group, entry) for group, entry in needed if entry not in left}
        assert not lost, f"PENSTOCK_SEED={seed()}"
        bench.state()


def needed_ids(bench: Bench, group: bytes) -> list[bytes]:
    facts = facts_of(bench, group)
    pending = [row[0] for row in bench.run("XPENDING", "s", group, "-", "+", 1000)]
    after = b"(" + facts["last-delivered-id"]
    return pending + [entry[0] for entry in bench.run("XRANGE", "s", after, "+")]


# --- What is said ----------------------------------------------------------------------------------


def facts_of(bench: Bench, group: bytes) -> dict[str, Any]:
    for row in bench.ask("PENSTOCK GROUPS s"):
        facts = {name.decode(): value for name, value in zip(row[::2], row[1::2], strict=True)}
        if facts["name"] == group:
            return facts
    raise AssertionError(group)


def test_the_lag_is_counted_where_xinfo_does_not_know_it() -> None:
    bench = with_groups(600, 300)
    ids = [entry[0] for entry in bench.run("XRANGE", "s", "-", "+")]
    bench.run("XDEL", "s", ids[299], ids[310], ids[700], ids[800])
    bench.clock.at_ms += 5000
    assert facts_of(bench, b"g") == {
        "name": b"g",
        "consumers": 1,
        "idle": 5000,
        "last-delivered-id": ids[599],
        "lag": 398,
        "oldest-unread": ids[600],
        "pending": 300,
        "oldest-pending": ids[300],
        "oldest-pending-idle": 5000,
        "orphans": 1,
        "needed-from": ids[300],
    }
    assert facts_of(bench, b"h")["lag"] == 0
    assert facts_of(bench, b"h")["oldest-unread"] is None


@pytest.mark.parametrize("position", ["0", "$", "1", f"{START_MS - 500_000}-0"])
def test_the_lag_of_any_position_is_that_of_a_range(position: str) -> None:
    bench = filled()
    bench.run("XGROUP", "CREATE", "s", "g", position)
    after = facts_of(bench, b"g")["last-delivered-id"]
    assert facts_of(bench, b"g")["lag"] == len(bench.run("XRANGE", "s", b"(" + after, "+"))


def test_what_if_changes_nothing() -> None:
    bench = with_groups(600, 300)
    before = bench.state()
    reply = bench.ask("PENSTOCK RETENTION s length 100 acked yes")
    facts = dict(zip(reply[::2], reply[1::2], strict=True))
    assert facts[b"removed-entries"] == 300
    assert facts[b"held-by"] == b"g"
    assert stream_id.parse(facts[b"first-kept"]) > stream_id.SMALLEST
    assert bench.state() == before


def test_bad_calls_are_refused() -> None:
    bench = filled(10)
    for line, text in (
        ("PENSTOCK GROUPS missing", "ERR no such key"),
        ("PENSTOCK RETENTION missing length 1", "ERR no such key"),
        (
            "PENSTOCK RETENTION s length 1 other length 2",
            "ERR 'other' is no option of a retention policy",
        ),
        (
            "PENSTOCK RETENTION s length x",
            "ERR retention of *: length must be a number such as 1000, 1m, 64mb, 1gb, not 'x'",
        ),
        (
            "PENSTOCK GROUPS string",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
    ):
        assert_refused(bench, line, text)
