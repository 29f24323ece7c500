"""Changes: planned by asking, shown in full, refused where nothing may be written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from penstock.core.stream_id import SMALLEST, StreamID
from penstock.web import changes
from penstock.web.asking import Server
from penstock.web.changes import (
    Change,
    carry_out,
    plan_ack,
    plan_add,
    plan_claim,
    plan_delete,
    plan_reset,
    plan_trim_before,
    plan_trim_to_length,
)
from penstock.web.facts import StreamFacts, one_stream
from penstock.web.groups import group_or_refuse
from penstock.web.replies import Refused
from tests.web.conftest import Live

Plan = Callable[[Server, StreamFacts], Awaitable[Change]]


@pytest.fixture
def stream(live: Live) -> Live:
    for number in range(1, 11):
        live.client.xadd("s", {"n": number}, id=f"{number}-0")
    live.client.xgroup_create("s", "g", id="0")
    live.client.xreadgroup("g", "ann", {"s": ">"}, count=4)
    return live


def planned(live: Live, plan: Plan, do_it: bool = True) -> Change:
    async def run(server: Server) -> Change:
        change = await plan(server, await one_stream(server, b"s"))
        if do_it:
            await carry_out(server, change)
        return change

    return live.ask(run, allow_writes=True)


def test_a_plan_changes_nothing_and_a_reading_dashboard_carries_nothing_out(stream: Live) -> None:
    async def run(server: Server) -> None:
        facts = await one_stream(server, b"s")
        change = await plan_trim_before(server, facts, StreamID(5, 0))
        with pytest.raises(Refused, match="--allow-writes"):
            await carry_out(server, change)

    stream.ask(run)
    assert stream.client.xlen("s") == 10


def test_a_trim_says_what_goes_and_who_has_not_read_it(stream: Live) -> None:
    change = planned(stream, lambda server, facts: plan_trim_before(server, facts, StreamID(7, 0)))
    assert change.command_lines == ["XTRIM s MINID = 7-0"]
    assert change.effects[0].startswith("deletes 6 of 10 entries, about ")
    assert "from 1-0 " in change.effects[1]
    assert "group g has not read past 4-0" in change.warnings[0]
    assert stream.client.xlen("s") == 4


@pytest.mark.parametrize("kept", [1, 3, 9])
def test_a_trim_to_a_length_names_the_id_that_stays(stream: Live, kept: int) -> None:
    change = planned(stream, lambda server, facts: plan_trim_to_length(server, facts, kept))
    assert change.command_lines == [f"XTRIM s MINID = {11 - kept}-0"]
    assert stream.client.xlen("s") == kept


def test_a_trim_to_a_length_counts_from_the_nearer_end(
    stream: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "COUNTED_MAX", 3)
    monkeypatch.setattr(changes, "COUNT_CHUNK", 2)
    assert (
        "8-0" in planned(stream, lambda s, f: plan_trim_to_length(s, f, 3), False).command_lines[0]
    )
    assert (
        "3-0" in planned(stream, lambda s, f: plan_trim_to_length(s, f, 8), False).command_lines[0]
    )
    with pytest.raises(Refused, match="neither end"):
        planned(stream, lambda s, f: plan_trim_to_length(s, f, 5), False)


def test_a_trim_of_nothing_says_so(stream: Live) -> None:
    change = planned(stream, lambda server, facts: plan_trim_before(server, facts, SMALLEST))
    assert change.effects == ("nothing: no entry lies before 0-0",)
    change = planned(stream, lambda server, facts: plan_trim_to_length(server, facts, 99))
    assert change.effects == ("nothing: there are 10 entries",)
    assert stream.client.xlen("s") == 10


def test_a_trim_to_nothing_empties_the_stream(stream: Live) -> None:
    planned(stream, lambda server, facts: plan_trim_to_length(server, facts, 0))
    assert stream.client.xlen("s") == 0


def test_entries_are_added_and_deleted(live: Live) -> None:
    live.client.xadd("s", {"n": "0"}, id="1-0")

    async def add(server: Server, facts: StreamFacts) -> Change:
        return plan_add(facts.name, [(b"a", b"x y"), (b"a", b"\xff")], "2-0")

    assert planned(live, add).command_lines == ['XADD s 2-0 a "x y" a \\xff']

    async def delete(server: Server, facts: StreamFacts) -> Change:
        return plan_delete(facts.name, [StreamID(1, 0)], facts.groups)

    planned(live, delete)
    assert [id_ for id_, _ in live.client.xrange("s")] == [b"2-0"]


def test_pending_entries_are_acknowledged_and_claimed(stream: Live) -> None:
    async def ack(server: Server, facts: StreamFacts) -> Change:
        return plan_ack(facts.name, b"g", [StreamID(1, 0), StreamID(2, 0)])

    async def claim(server: Server, facts: StreamFacts) -> Change:
        return plan_claim(facts.name, b"g", b"bob", [StreamID(3, 0)], 0)

    planned(stream, ack)
    planned(stream, claim)
    left = stream.client.xpending_range("s", "g", "-", "+", 10)
    assert [(row["message_id"], row["consumer"]) for row in left] == [
        (b"3-0", b"bob"),
        (b"4-0", b"ann"),
    ]


@pytest.mark.parametrize(
    ("position", "said", "at"),
    [
        (SMALLEST, "delivered again", b"0-0"),
        (None, "never delivered", b"10-0"),
        (StreamID(4, 0), "nothing", b"4-0"),
        (StreamID(2, 0), "delivered again", b"2-0"),
    ],
)
def test_a_reset_says_what_is_read_again_or_never(
    stream: Live, position: StreamID | None, said: str, at: bytes
) -> None:
    async def reset(server: Server, facts: StreamFacts) -> Change:
        return plan_reset(facts, group_or_refuse(facts, b"g"), position)

    change = planned(stream, reset)
    assert said in change.effects[-1]
    assert "4 pending entries stay" in change.warnings[0]
    assert stream.client.xinfo_groups("s")[0]["last-delivered-id"] == at


def test_changes_of_nothing_are_refused() -> None:
    with pytest.raises(Refused, match="needs a field"):
        plan_add(b"s", [])
    with pytest.raises(Refused, match="no entry is chosen"):
        plan_delete(b"s", [], [])
    with pytest.raises(Refused, match="no entry is chosen"):
        plan_ack(b"s", b"g", [])
    with pytest.raises(Refused, match="name the consumer"):
        plan_claim(b"s", b"g", b"", [StreamID(1, 0)], 0)
