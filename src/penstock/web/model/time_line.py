"""Places between the tail (0) and the head (1) of a stream, by time: an id contains one.

Custom ids (1-0, 2-0 ...) count as times long ago.
"""

from __future__ import annotations

from penstock.core.stream_id import StreamID
from penstock.web.model.facts import StreamFacts

STEPS = 1000  # of the slider


def place(facts: StreamFacts, id_: StreamID) -> float:
    """The place of an id."""
    if facts.first is None or id_ >= facts.last_id:
        return 1.0
    first = facts.first.id.ms
    span = facts.last_id.ms - first
    if span <= 0:
        return 0.0 if id_ <= facts.first.id else 1.0
    return min(1.0, max(0.0, (id_.ms - first) / span))


def step_of(facts: StreamFacts, id_: StreamID) -> int:
    """The step of the slider that an id belongs to."""
    return round(place(facts, id_) * STEPS)


def id_at(facts: StreamFacts, step: int) -> StreamID | None:
    """The first id of a step of the slider. None if the stream has no entries. Whole numbers are exact."""
    if facts.first is None:
        return None
    first = facts.first.id.ms
    span = max(0, facts.last_id.ms - first)
    return StreamID(first + span * min(max(step, 0), STEPS) // STEPS, 0)


def has_span(facts: StreamFacts) -> bool:
    """Whether there is a time to choose: the first and the last entry differ in it."""
    return facts.first is not None and facts.last_id.ms > facts.first.id.ms
