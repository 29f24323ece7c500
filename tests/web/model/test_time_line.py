"""Places of ids between the tail and the head of a stream, and back."""

from __future__ import annotations

import pytest

from penstock.core.stream_id import MAX64, StreamID
from penstock.web.model.facts import StreamFacts, one_stream
from penstock.web.model.time_line import STEPS, has_span, id_at, step_of
from tests.web.conftest import Live


def facts_of(live: Live, *times: int) -> StreamFacts:
    live.client.delete("line")
    for number, ms in enumerate(times):
        live.client.xadd("line", {"n": number}, id=f"{ms}-{number}")
    return live.ask(lambda server: one_stream(server, b"line"))


@pytest.mark.parametrize("step", [0, 1, 250, 500, 999, STEPS])
def test_a_step_leads_to_an_id_of_this_step(live: Live, step: int) -> None:
    facts = facts_of(live, 1_700_000_000_000, 1_700_003_600_000)
    found = id_at(facts, step)
    assert found is not None
    assert step_of(facts, found) == step
    assert found.ms == 1_700_000_000_000 + 3_600_000 * step // STEPS


def test_ids_near_the_limit_are_exact(live: Live) -> None:
    facts = facts_of(live, MAX64 - 1000, MAX64 - 1)
    assert id_at(facts, 0) == StreamID(MAX64 - 1000, 0)
    assert id_at(facts, STEPS) == StreamID(MAX64 - 1, 0)


def test_a_moment_outside_is_the_nearest_one(live: Live) -> None:
    facts = facts_of(live, 1000, 2000)
    assert (id_at(facts, -5), id_at(facts, 9999)) == (StreamID(1000, 0), StreamID(2000, 0))


def test_one_moment_has_no_span(live: Live) -> None:
    assert has_span(facts_of(live, 1, 2))
    assert not has_span(facts_of(live, 7, 7))
