"""Shapes replies of the engine as redis-py does by default."""

from __future__ import annotations

from typing import Any

from penstock.core.stream_cursor import EntryRange
from penstock.reply import NULL_ARRAY, Pairs, Served, Status

_ROW = ("message_id", "consumer", "time_since_delivered", "times_delivered")


def as_it_is(reply: Any) -> Any:
    """Numbers, ids and lists of ids need no shaping."""
    return reply


def true(_reply: Any) -> bool:
    """redis-py returns True for OK."""
    return True


def status(reply: Status) -> bytes:
    """A word of success, as bytes."""
    return reply.text.encode()


def scanned(reply: list[Any]) -> tuple[int, list[bytes]]:
    """SCAN: the next cursor and some keys."""
    return int(reply[0]), reply[1]


def entries(reply: Any) -> Any:
    """A list of (id, fields). A deleted entry has no fields."""
    if isinstance(reply, EntryRange):
        return reply.mappings()
    if reply is NULL_ARRAY:
        return None
    return [(entry_id, mapping(flat)) for entry_id, flat in reply]


def mapping(flat: Any) -> dict[bytes, bytes]:
    """A flat list of names and values, as a dictionary."""
    if flat is NULL_ARRAY:
        return {}
    return dict(zip(flat[::2], flat[1::2], strict=True))


def served(reply: Any) -> list[Any]:
    """XREAD and XREADGROUP: a list of [stream, entries]."""
    if not isinstance(reply, Served):
        return []
    return [[key, entries(found)] for key, found in reply.items]


def served_with_claims(reply: Any) -> list[Any]:
    """XREADGROUP with CLAIM: an entry is (id, fields, idle time, deliveries before).

    The history of a consumer has no such numbers.
    """
    if not isinstance(reply, Served):
        return []
    return [
        [key, [(row[0], mapping(row[1]), *row[2:]) for row in rows]] for key, rows in reply.items
    ]


def autoclaimed(reply: list[Any]) -> list[Any]:
    """[next id, entries, deleted ids]."""
    return [reply[0], entries(reply[1]), reply[2]]


def autoclaimed_ids(reply: list[Any]) -> Any:
    """Only the claimed ids."""
    return reply[1]


def pending_summary(reply: list[Any]) -> dict[str, Any]:
    """XPENDING: the count, the smallest and largest id, and the count of each consumer."""
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
    """XPENDING with a range: a dictionary for each pending entry."""
    return [dict(zip(_ROW, row, strict=True)) for row in reply]


def pairs(reply: Pairs) -> dict[str, Any]:
    """Names and values as a dictionary, with the names as text."""
    return {name.decode(): value for name, value in reply.items}


def list_of_pairs(reply: list[Pairs]) -> list[dict[str, Any]]:
    """A dictionary for each row."""
    return [pairs(row) for row in reply]


def stream_info(reply: Pairs) -> dict[str, Any]:
    """XINFO STREAM: the first and the last entry are (id, fields)."""
    found = pairs(reply)
    for edge in ("first-entry", "last-entry"):
        if found[edge] is not None:
            entry_id, flat = found[edge]
            found[edge] = (entry_id, mapping(flat))
    return found


def full_stream_info(reply: Pairs) -> dict[str, Any]:
    """XINFO STREAM FULL: entries is a dictionary by id, groups is a list of dictionaries."""
    found = pairs(reply)
    found["entries"] = dict(found["entries"].mappings())
    found["groups"] = [pairs(group) for group in found["groups"]]
    for group in found["groups"]:
        # redis-py leaves the names of this innermost map as bytes.
        group["consumers"] = [dict(consumer.items) for consumer in group["consumers"]]
    return found


def decoded(value: Any) -> Any:
    """The same value with every bytes object decoded."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, tuple):
        return tuple(decoded(item) for item in value)
    if isinstance(value, dict):
        return {decoded(key): decoded(item) for key, item in value.items()}
    return value
