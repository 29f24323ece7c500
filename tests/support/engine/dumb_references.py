"""Which entries the groups of a stream need, and which entries a trim removes, in the simplest way."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID
from tests.support.engine.streams import ids_of, node_keys, sid


@dataclass(frozen=True)
class Trim:
    """The arguments of References.trim_unreferenced."""

    length_max: int = 0
    min_id: StreamID | None = None
    limit: int = 0
    thorough: bool = False


def is_referenced(
    entry_id: StreamID, groups: Iterable[tuple[StreamID, Collection[StreamID]]]
) -> bool:
    """Tell whether a group needs an entry. A group is its last id and its pending ids."""
    return any(entry_id > last or entry_id in pending for last, pending in groups)


def live_by_node(stream: Stream) -> list[tuple[StreamID, list[StreamID]]]:
    """For each node its key and the ids of its live entries."""
    keys = [sid(key) for key in node_keys(stream)]
    found: list[tuple[StreamID, list[StreamID]]] = [(key, []) for key in keys]
    for entry_id in map(sid, ids_of(stream)):
        found[bisect_right(keys, entry_id) - 1][1].append(entry_id)
    return found


def entries_to_trim(stream: Stream, needed: Collection[StreamID], trim: Trim) -> list[StreamID]:
    """The entries that a trim removes if these are the ones that groups need."""
    removed: list[StreamID] = []
    for key, live in live_by_node(stream):
        if trim.min_id is None:
            surplus = stream.length - len(removed) - trim.length_max
            doomed = [entry_id for entry_id in live if entry_id not in needed][: max(0, surplus)]
            goes_as_a_whole = len(live) <= surplus
        else:
            surplus = 1 if key < trim.min_id else 0
            doomed = [i for i in live if i < trim.min_id and i not in needed]
            goes_as_a_whole = True
        if surplus <= 0 or (trim.limit and len(removed) + len(live) > trim.limit):
            break
        removed += doomed
        if not (goes_as_a_whole or trim.thorough):
            break
    return removed
