"""Changes of groups: the plan, and the state of the server afterwards."""

from __future__ import annotations

import pytest

from penstock.client.xinfo import ConsumerInfo
from penstock.core.stream_id import SMALLEST, StreamID
from penstock.web.changes.entry_changes import Change
from penstock.web.changes.group_changes import (
    plan_ack,
    plan_claim,
    plan_create,
    plan_delete_consumers,
    plan_destroy,
    plan_reset,
)
from penstock.web.model.facts import StreamFacts
from penstock.web.model.groups import consumers_of, group_or_refuse, position_of
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient
from tests.web.changes.planned import planned
from tests.web.conftest import Live


def test_pending_entries_are_acknowledged_and_claimed(stream_of_ten: Live) -> None:
    async def ack(server: ServerClient, facts: StreamFacts) -> Change:
        return plan_ack(facts.name, b"g", [StreamID(1, 0), StreamID(2, 0)])

    async def claim(server: ServerClient, facts: StreamFacts) -> Change:
        return plan_claim(facts.name, b"g", b"bob", [StreamID(3, 0)], 0)

    planned(stream_of_ten, ack)
    planned(stream_of_ten, claim)
    left = stream_of_ten.client.xpending_range("s", "g", "-", "+", 10)
    assert [(row["message_id"], row["consumer"]) for row in left] == [
        (b"3-0", b"bob"),
        (b"4-0", b"ann"),
    ]


@pytest.mark.parametrize(
    ("position", "said", "at"),
    [
        (SMALLEST, "delivered again", b"0-0"),
        (None, "never delivered", b"10-0"),
        (StreamID(2, 0), "delivered again", b"2-0"),
    ],
)
def test_a_reset_shows_what_is_read_again_or_skipped(
    stream_of_ten: Live, position: StreamID | None, said: str, at: bytes
) -> None:
    async def reset(server: ServerClient, facts: StreamFacts) -> Change:
        return plan_reset(facts, group_or_refuse(facts, b"g"), position)

    change = planned(stream_of_ten, reset)
    assert change.command_lines == [f"XGROUP SETID s g {at.decode()}"]
    assert said in change.effects[-1]
    assert "4 pending entries stay" in change.warnings[0]
    assert stream_of_ten.client.xinfo_groups("s")[0]["last-delivered-id"] == at


def test_a_reset_to_the_same_position_sends_nothing(stream_of_ten: Live) -> None:
    async def reset(server: ServerClient, facts: StreamFacts) -> Change:
        return plan_reset(facts, group_or_refuse(facts, b"g"), StreamID(4, 0))

    before = stream_of_ten.client.xinfo_groups("s")
    change = planned(stream_of_ten, reset)
    assert (change.commands, change.effects) == ((), ("nothing to do: g is at 4-0 already",))
    assert stream_of_ten.client.xinfo_groups("s") == before


@pytest.mark.parametrize(
    ("position", "said", "at", "lag"),
    [
        (SMALLEST, "all 10 entries", b"0-0", 10),
        (None, "new entries only; the last id is 10-0", b"10-0", 0),
        (StreamID(4, 0), "entries after 4-0", b"4-0", None),
    ],
)
def test_a_group_is_created_at_a_position(
    stream_of_ten: Live, position: StreamID | None, said: str, at: bytes, lag: int | None
) -> None:
    async def create(server: ServerClient, facts: StreamFacts) -> Change:
        return plan_create(facts, b"new one", position)

    change = planned(stream_of_ten, create)
    word = "$" if position is None else str(position)
    assert change.command_lines == [f'XGROUP CREATE s "new one" {word}']
    assert said in change.effects[-1]
    made = stream_of_ten.client.xinfo_groups("s")[1]
    assert (made["name"], made["last-delivered-id"], made["lag"]) == (b"new one", at, lag)
    assert bool(change.warnings) == (lag is None)


def test_a_group_is_deleted_with_its_pending_entries(stream_of_ten: Live) -> None:
    async def destroy(server: ServerClient, facts: StreamFacts) -> Change:
        return plan_destroy(facts, group_or_refuse(facts, b"g"))

    change = planned(stream_of_ten, destroy)
    assert change.command_lines == ["XGROUP DESTROY s g"]
    assert "with 4 pending entries and 1 consumers" in change.effects[0]
    assert "NOGROUP" in change.warnings[0]
    assert stream_of_ten.client.xinfo_groups("s") == []
    assert stream_of_ten.client.xlen("s") == 10


def test_deleting_a_consumer_shows_its_pending_entries(stream_of_ten: Live) -> None:
    stream_of_ten.client.xgroup_createconsumer("s", "g", "idle one")

    async def delete(server: ServerClient, facts: StreamFacts) -> Change:
        return plan_delete_consumers(b"s", b"g", await consumers_of(server, b"s", b"g"))

    change = planned(stream_of_ten, delete)
    assert change.command_lines == [
        "XGROUP DELCONSUMER s g ann",
        'XGROUP DELCONSUMER s g "idle one"',
    ]
    assert change.effects == (
        "deletes ann with 4 pending entries",
        'deletes "idle one" with no pending entries',
    )
    assert "claim them for another consumer first" in change.warnings[0]
    assert stream_of_ten.client.xpending("s", "g")["pending"] == 0
    assert stream_of_ten.client.xinfo_consumers("s", "g") == []


def test_changes_without_a_group_or_consumer_are_refused(stream_of_ten: Live) -> None:
    async def twice(server: ServerClient, facts: StreamFacts) -> Change:
        return plan_create(facts, b"g", None)

    async def nameless(server: ServerClient, facts: StreamFacts) -> Change:
        return plan_create(facts, b"", None)

    with pytest.raises(Refused, match="has a group g already"):
        planned(stream_of_ten, twice)
    with pytest.raises(Refused, match="name the group"):
        planned(stream_of_ten, nameless)
    with pytest.raises(Refused, match="no consumer is selected"):
        plan_delete_consumers(b"s", b"g", [])
    with pytest.raises(Refused, match="no entry is selected"):
        plan_ack(b"s", b"g", [])
    with pytest.raises(Refused, match="name the consumer"):
        plan_claim(b"s", b"g", b"", [StreamID(1, 0)], 0)


def test_an_active_consumer_is_created_again() -> None:
    dead = ConsumerInfo(b"dead", 1, 10**9, 10**9)
    alive = ConsumerInfo(b"alive", 0, 5, 5)
    assert "created again" in plan_delete_consumers(b"s", b"g", [alive]).warnings[0]
    assert not any(
        "created again" in text for text in plan_delete_consumers(b"s", b"g", [dead]).warnings
    )


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("start", SMALLEST),
        ("end", None),
        ("5-3", StreamID(5, 3)),
        ("@5000", StreamID(4999, 2**64 - 1)),
        ("1970-01-01T00:00:05", StreamID(4999, 2**64 - 1)),
        ("2s", StreamID(7999, 2**64 - 1)),
    ],
)
def test_a_time_is_the_position_before_its_first_entry(
    text: str, position: StreamID | None
) -> None:
    assert position_of(text, now_ms=10_000) == position
