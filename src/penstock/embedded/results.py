"""Replies of the engine in the shapes that redis-py gives them by default."""

from __future__ import annotations

from typing import Any

from penstock.core.stream import EntryRange
from penstock.reply import NULL_ARRAY, Pairs, Served

_ROW = ("message_id", "consumer", "time_since_delivered", "times_delivered")


def as_it_is(reply: Any) -> Any:
    """Numbers, ids and lists of ids need no shaping."""
    return reply


def entries(reply: Any) -> Any:
    """A list of (id, fields); an entry that is gone has no fields."""
    if isinstance(reply, EntryRange):
        return reply.mappings()
    if reply is NULL_ARRAY:
        return None
    return [(entry_id, mapping(flat)) for entry_id, flat in reply]


def mapping(flat: Any) -> dict[bytes, bytes]:
    """Names and values in turn, as a dictionary."""
    if flat is NULL_ARRAY:
        return {}
    return dict(zip(flat[::2], flat[1::2], strict=True))


def served(reply: Any) -> list[Any]:
    """What a read found: a list of [stream, entries]."""
    if not isinstance(reply, Served):
        return []
    return [[key, entries(found)] for key, found in reply.items]


def autoclaimed(reply: list[Any]) -> list[Any]:
    """[next id, entries, deleted ids]."""
    return [reply[0], entries(reply[1]), reply[2]]


def autoclaimed_ids(reply: list[Any]) -> Any:
    """Only the ids that were taken over."""
    return reply[1]


def pending_summary(reply: list[Any]) -> dict[str, Any]:
    """How much is pending, between which ids, with whom."""
    count, first, last, consumers = reply
    if consumers is NULL_ARRAY:
        consumers = []
    return {
        "pending": count,
        "min": first,
        "max": last,
        "consumers": [{"name": name, "pending": int(n)} for name, n in consumers],
    }


def pending_rows(reply: list[Any]) -> list[dict[str, Any]]:
    """One dictionary for each pending entry."""
    return [dict(zip(_ROW, row, strict=True)) for row in reply]


def pairs(reply: Pairs) -> dict[str, Any]:
    """Names and values, the names as text."""
    return {name.decode(): value for name, value in reply.items}


def list_of_pairs(reply: list[Pairs]) -> list[dict[str, Any]]:
    """One dictionary for each row."""
    return [pairs(row) for row in reply]


def stream_info(reply: Pairs) -> dict[str, Any]:
    """XINFO STREAM: first and last entry as (id, fields)."""
    found = pairs(reply)
    for edge in ("first-entry", "last-entry"):
        if found[edge] is not None:
            entry_id, flat = found[edge]
            found[edge] = (entry_id, mapping(flat))
    return found


def full_stream_info(reply: Pairs) -> dict[str, Any]:
    """XINFO STREAM FULL: entries by id, groups as dictionaries."""
    found = pairs(reply)
    found["entries"] = dict(found["entries"].mappings())
    found["groups"] = [pairs(group) for group in found["groups"]]
    for group in found["groups"]:
        # redis-py leaves the names of this innermost map as they came.
        group["consumers"] = [dict(consumer.items) for consumer in group["consumers"]]
    return found


def decoded(value: Any) -> Any:
    """The same, with every bytes object turned into text."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, tuple):
        return tuple(decoded(item) for item in value)
    if isinstance(value, dict):
        return {decoded(key): decoded(item) for key, item in value.items()}
    return value
