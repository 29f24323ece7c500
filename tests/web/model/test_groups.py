"""Groups: consumers, pending entries, what blocks trimming."""

from __future__ import annotations

import pytest

from penstock.client.xinfo import ConsumerInfo, GroupInfo
from penstock.core.stream_id import StreamID
from penstock.web.charts import history as history_chart
from penstock.web.charts import timeline
from penstock.web.model import groups
from penstock.web.model.facts import StreamFacts, one_stream
from penstock.web.model.groups import (
    CONSUMERS_SHOWN_MAX,
    DEAD_IDLE_MS,
    Holder,
    OldestPending,
    busiest,
    consumer_state,
    consumers_of,
    foremost,
    free_text,
    holders,
    matching,
    oldest_pending,
    pending_of,
)
from penstock.web.model.history import GROUPS_MAX, SAMPLES_MAX, GroupHistory
from penstock.web.model.time_line import place
from penstock.web.server.asking import ServerClient
from tests.web.conftest import Live


def held(live: Live) -> tuple[StreamFacts, list[Holder]]:
    async def run(server: ServerClient) -> tuple[StreamFacts, list[Holder]]:
        facts = await one_stream(server, b"s")
        return facts, holders(facts, (await oldest_pending(server, facts)).entries)

    return live.ask(run)


def test_of_many_groups_those_with_the_largest_lags_are_shown() -> None:
    lags = [3, None, 7, 0, 7]
    known = [
        GroupInfo(f"g{number}".encode(), 1, 5 - number, StreamID(1, 0), 1, lag)
        for number, lag in enumerate(lags)
    ]
    assert busiest(known, 5) == known
    assert [one.name for one in busiest(known, 2)] == [b"g1", b"g2"]  # an unknown one may be large
    assert [one.name for one in busiest(known, 4)] == [b"g0", b"g1", b"g2", b"g4"]
    assert [one.name for one in matching(known, "G3")] == [b"g3"]


def stream(live: Live, count: int = 10) -> None:
    for number in range(1, count + 1):
        live.client.xadd("s", {"n": number}, id=f"{number}-0")


def test_the_group_that_needs_the_oldest_entry_blocks_trimming(live: Live) -> None:
    stream(live)
    live.client.xgroup_create("s", "slow", id="6-0")
    live.client.xgroup_create("s", "stuck", id="0")
    live.client.xreadgroup("stuck", "ann", {"s": ">"}, count=10)
    live.client.xack("s", "stuck", "1-0", "2-0")
    facts, found = held(live)
    assert [(holder.group, str(holder.id)) for holder in found] == [
        (b"stuck", "3-0"),
        (b"slow", "6-1"),
    ]
    assert "to ann, last" in found[0].reason
    assert "8 pending in total" in found[0].reason
    assert free_text(facts, found).startswith("Entries before 3-0 ")


def crowd(live: Live, count: int) -> None:
    """Groups with two pending entries each, and a last one with only the oldest entry."""
    stream(live)
    pipeline = live.client.pipeline(transaction=False)
    for number in range(count):
        pipeline.xgroup_create("s", f"g{number}", id="8-0")
        pipeline.xreadgroup(f"g{number}", "ann", {"s": ">"})
    pipeline.xgroup_create("s", "stuck", id="1-0")
    pipeline.xreadgroup("stuck", "ann", {"s": ">"}, count=1)
    pipeline.execute_command("XGROUP", "SETID", "s", "stuck", "$")
    pipeline.execute()


def test_of_very_many_groups_all_are_asked_for_their_oldest_entry(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "GROUPS_ASKED_AT_ONCE", 10)
    crowd(live, 25)
    facts, found = held(live)
    assert (found[0].group, str(found[0].id), len(found)) == (b"stuck", "2-0", 26)
    assert free_text(facts, found).startswith("Entries before 2-0 ")


def test_without_all_pending_entries_nothing_is_said_about_trimming(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "GROUPS_ASKED_AT_ONCE", 10)
    monkeypatch.setattr(groups, "GROUPS_ASKED_MAX", 15)
    crowd(live, 25)

    def asked(*shown: bytes) -> tuple[StreamFacts, OldestPending]:
        async def run(server: ServerClient) -> tuple[StreamFacts, OldestPending]:
            facts = await one_stream(server, b"s")
            return facts, await oldest_pending(server, facts, shown)

        return live.ask(run)

    facts, oldest = asked()
    assert (len(oldest.entries), oldest.unknown, b"stuck" in oldest.entries) == (15, 11, False)
    text = free_text(facts, holders(facts, oldest.entries), oldest.unknown)
    assert text.startswith("It is unknown what can be trimmed")
    assert b"stuck" in asked(b"stuck")[1].entries  # a group on the screen has its mark
    # That a group needs the oldest entry is certain.
    live.client.xgroup_create("s", "slow", id="0")
    facts = live.ask(lambda server: one_stream(server, b"s"))
    text = free_text(facts, holders(facts, oldest.entries), oldest.unknown)
    assert "still needs the oldest entry" in text


def test_a_group_that_has_read_everything_blocks_nothing(live: Live) -> None:
    stream(live)
    facts, found = held(live)
    assert "no group reads" in free_text(facts, found)
    live.client.xgroup_create("s", "g", id="$")
    facts, found = held(live)
    assert found == []
    assert "every group has read" in free_text(facts, found)


def test_a_group_at_the_start_blocks_everything(live: Live) -> None:
    stream(live)
    live.client.xgroup_create("s", "g", id="0")
    facts, found = held(live)
    assert [str(holder.id) for holder in found] == ["1-0"]
    assert "still needs the oldest entry" in free_text(facts, found)


def test_pending_entries_have_owner_and_fields(live: Live) -> None:
    stream(live, 3)
    live.client.xgroup_create("s", "g", id="0")
    live.client.xreadgroup("g", "ann", {"s": ">"}, count=2)
    live.client.xdel("s", "2-0")
    rows = live.ask(lambda server: pending_of(server, b"s", b"g"))
    assert [(str(row.id), row.consumer, row.deliveries, row.fields) for row in rows] == [
        ("1-0", b"ann", 1, [(b"n", b"1")]),
        ("2-0", b"ann", 1, None),
    ]
    later = live.ask(lambda server: pending_of(server, b"s", b"g", StreamID(1, 1)))
    assert [str(row.id) for row in later] == ["2-0"]
    (consumer,) = live.ask(lambda server: consumers_of(server, b"s", b"g"))
    assert (consumer.name, consumer.pending, consumer_state(consumer)) == (b"ann", 2, "alive")


def test_a_consumer_is_dead_if_idle_with_pending_entries() -> None:
    long = DEAD_IDLE_MS + 1
    assert consumer_state(ConsumerInfo(b"c", 3, long, long)) == "dead"
    assert consumer_state(ConsumerInfo(b"c", 0, long, long)) == "gone"
    assert consumer_state(ConsumerInfo(b"c", 3, 5, 5)) == "alive"
    assert consumer_state(ConsumerInfo(b"c", 3, 5, long)) == "reads, gets nothing"
    assert consumer_state(ConsumerInfo(b"c", 3, 5, None)) == "alive"


def test_the_consumers_with_the_most_pending_entries_are_shown() -> None:
    crowd = [ConsumerInfo(b"c%d" % number, number % 10, 0, None) for number in range(2000)]
    assert foremost(crowd[:CONSUMERS_SHOWN_MAX]) == crowd[:CONSUMERS_SHOWN_MAX]
    assert foremost(crowd) == [one for one in crowd if one.pending == 9]


def test_a_position_is_between_tail_and_head(live: Live) -> None:
    stream(live, 11)
    facts, _ = held(live)
    assert [place(facts, StreamID(ms, 0)) for ms in (0, 1, 6, 11, 99)] == [0.0, 0.0, 0.5, 1.0, 1.0]
    live.client.xgroup_create("s", "g", id="6-0")
    facts, _ = held(live)
    (mark,) = timeline(facts, {})["series"][0]["data"]
    assert mark == {"name": "g, position 6-0", "value": [6, 0], "share": 0.5}


def test_history_is_bounded_and_forgets_deleted_groups(live: Live) -> None:
    stream(live)
    live.client.xgroup_create("s", "g", id="0")
    facts, _ = held(live)
    history = GroupHistory()
    for second in range(SAMPLES_MAX + 5):
        history.note(facts, float(second))
        history.note(facts, second + 0.5)  # too soon
    samples = history.samples(b"s", b"g")
    assert (len(samples), samples[0].at, samples[-1].at) == (SAMPLES_MAX, 5.0, SAMPLES_MAX + 4.0)
    assert (samples[0].lag, samples[0].pending) == (10, 0)
    assert history_chart("lag", {b"g": samples}, False)["series"][0]["data"][0] == [5000.0, 10]
    live.client.xgroup_destroy("s", "g")
    history.note(held(live)[0], 10_000.0)
    assert history.samples(b"s", b"g") == []
    assert GROUPS_MAX * SAMPLES_MAX * 3 * 8 < 32 * 1024 * 1024
