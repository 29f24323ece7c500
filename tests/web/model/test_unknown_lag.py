"""Reasons for an unknown lag, compared with what servers do."""

from __future__ import annotations

import pytest

from penstock.core.stream_id import StreamID
from penstock.web.model.facts import StreamFacts, one_stream
from penstock.web.model.unknown_lag import loses_lag_at, why_unknown
from tests.web.conftest import Live


def reasons(live: Live) -> list[str]:
    facts = live.ask(lambda server: one_stream(server, b"s"))
    return [why_unknown(facts, group) for group in facts.groups]


def test_a_known_lag_has_no_reason(stream_of_ten: Live) -> None:
    assert reasons(stream_of_ten) == [""]


def test_entries_deleted_ahead_of_a_group_are_the_reason_until_it_has_read_all(
    stream_of_ten: Live,
) -> None:
    client = stream_of_ten.client
    client.xdel("s", "7-0")
    assert reasons(stream_of_ten)[0].startswith(
        "Entries ahead of the group were deleted, up to 7-0"
    )
    client.xreadgroup("g", "ann", {"s": ">"}, count=4)
    if client.xinfo_groups("s")[0]["lag"] is None:
        assert "read past deleted entries" in reasons(stream_of_ten)[0]
    client.xreadgroup("g", "ann", {"s": ">"})
    assert reasons(stream_of_ten) == [""]


def test_a_group_set_to_the_middle_is_the_reason(stream_of_ten: Live) -> None:
    stream_of_ten.client.xgroup_setid("s", "g", "5-5")
    assert reasons(stream_of_ten)[0].startswith("The group is at 5-5, and the server does not know")


def test_a_group_set_beyond_the_end_is_the_reason(stream_of_ten: Live) -> None:
    stream_of_ten.client.xgroup_setid("s", "g", "99-0")
    assert "after the last one" in reasons(stream_of_ten)[0]


def test_a_server_without_counters_is_the_reason(stream_of_ten: Live) -> None:
    facts = stream_of_ten.ask(lambda server: one_stream(server, b"s"))
    named = {name: getattr(facts, name) for name in StreamFacts.__slots__}
    group = facts.groups[0]
    old = StreamFacts(**named | {"added": None})
    nameless = type(group)(group.name, 1, 0, group.last_id, None, None)
    assert "Redis 7.0 and newer do" in why_unknown(old, nameless)


@pytest.mark.parametrize("deleted", [None, "1-0", "6-0"])
@pytest.mark.parametrize("at", ["0-0", "1-0", "2-0", "5-0", "5-5", "10-0", "11-0"])
def test_the_predicted_loss_of_lag_is_what_the_server_does(
    stream_of_ten: Live, at: str, deleted: str | None
) -> None:
    client = stream_of_ten.client
    if deleted:
        client.xdel("s", deleted)
    ms, seq = at.split("-")
    facts = stream_of_ten.ask(lambda server: one_stream(server, b"s"))
    said = loses_lag_at(facts, StreamID(int(ms), int(seq)))
    client.xgroup_destroy("s", "g")
    client.xgroup_create("s", "g", id=at)
    assert said == (client.xinfo_groups("s")[0]["lag"] is None)
