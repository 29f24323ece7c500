"""Reads a stream page by page, in both directions, with or without conditions.

A page is one XRANGE or XREVRANGE with COUNT, and the next page starts after its last id. With conditions, a
page may need many reads. Limits on the number of entries and on the time end the search; the page then shows
what was found, and the next page continues from there.

COUNT depends on the mean size of entries, so that no reply is much larger than REPLY_BYTES_MAX.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.client.replies import Entry, entries
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.human.moment import Ago, Edge, Moment
from penstock.human.where import Condition
from penstock.web.server.asking import ServerClient

PAGE_ENTRIES = 50
CHUNK_ENTRIES = 1000
REPLY_BYTES_MAX = 4 * 1024 * 1024
SCANNED_MAX = 20_000
SCAN_SECONDS_MAX = 1.0  # blocks all users of the dashboard


@dataclass(frozen=True, slots=True)
class Reading:
    """The direction of reading and the first id."""

    start: StreamID
    rising: bool

    @property
    def url_word(self) -> str:
        """`1-0` for upwards from 1-0, `-1-0` for downwards, empty for the newest entries first."""
        if self == NEWEST:
            return ""
        return f"{'' if self.rising else '-'}{self.start}"


NEWEST = Reading(LARGEST, rising=False)
OLDEST = Reading(SMALLEST, rising=True)


@dataclass(frozen=True, slots=True)
class EntryPage:
    """Entries in the order of reading, the start of the next page, and the number of entries checked."""

    entries: list[Entry]
    following: Reading | None
    scanned: int


def count_for(mean_bytes: float, wanted: int) -> int:
    """How many entries to read at once."""
    return max(1, min(wanted, int(REPLY_BYTES_MAX / max(mean_bytes, 1))))


async def mean_bytes(server: ServerClient, name: bytes) -> float:
    """The mean size of an entry, or 0 if the server does not report it."""
    size, length = await server.ask_all([("MEMORY", "USAGE", name), ("XLEN", name)])
    return size / length if isinstance(size, int) and isinstance(length, int) and length else 0


def reading_from(moment: Moment, now_ms: int) -> Reading:
    """Upwards from a time; `end` is downwards from the newest entry."""
    if isinstance(moment, Edge):
        return OLDEST if moment is Edge.START else NEWEST
    return Reading(moment.at(now_ms) if isinstance(moment, Ago) else moment, rising=True)


async def read_entries(
    server: ServerClient, name: bytes, reading: Reading, count: int
) -> list[Entry]:
    """The next entries of a stream. Empty if there is no such stream."""
    if reading.rising:
        reply = await server.ask("XRANGE", name, reading.start.text, "+", "COUNT", count)
    else:
        reply = await server.ask("XREVRANGE", name, reading.start.text, "-", "COUNT", count)
    return entries(reply)


async def read_page(
    server: ServerClient,
    name: bytes,
    reading: Reading,
    mean_bytes: float,
    conditions: Sequence[Condition] = (),
) -> EntryPage:
    """A page of entries that satisfy all conditions."""
    wanted = count_for(mean_bytes, PAGE_ENTRIES)
    # One entry more than the page shows, to know whether there is another page.
    chunk = count_for(mean_bytes, CHUNK_ENTRIES) if conditions else wanted + 1
    found: list[Entry] = []
    scanned = 0
    deadline = time.monotonic() + SCAN_SECONDS_MAX
    at: Reading | None = reading
    while at is not None and scanned < SCANNED_MAX:
        read = await read_entries(server, name, at, chunk)
        at = behind(at, read[-1].id) if len(read) == chunk else None
        for entry in read:
            if all(condition(entry.fields) for condition in conditions):
                if len(found) == wanted:
                    return EntryPage(found, Reading(entry.id, reading.rising), scanned)
                found.append(entry)
            scanned += 1
            if conditions and time.monotonic() > deadline:
                return EntryPage(found, behind(reading, entry.id), scanned)
        if not conditions and len(found) == wanted:
            break
    return EntryPage(found, at, scanned)


def behind(reading: Reading, last: StreamID) -> Reading | None:
    """The reading that continues after an entry, or None at the smallest or largest id."""
    try:
        return Reading(last.next() if reading.rising else last.previous(), reading.rising)
    except OverflowError:
        return None


async def page_before(
    server: ServerClient, name: bytes, reading: Reading, mean_bytes: float
) -> Reading | None:
    """The start of the page that ends just before this one, or None if there is none.

    Conditions are ignored: fewer entries of that page may satisfy them.
    """
    back = Reading(reading.start, not reading.rising)
    start = behind(back, reading.start)
    if start is None:
        return None
    read = await read_entries(server, name, start, count_for(mean_bytes, PAGE_ENTRIES))
    return Reading(read[-1].id, reading.rising) if read else None


async def read_ids(server: ServerClient, name: bytes, ids: Sequence[StreamID]) -> list[Entry]:
    """Entries by id. Deleted ones are left out."""
    replies = await server.ask_all([("XRANGE", name, id_.text, id_.text) for id_ in ids])
    found = []
    for reply in replies:
        if isinstance(reply, list):
            found += entries(reply)
    return found
