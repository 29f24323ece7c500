"""A stream read page by page, in both directions, with conditions or without.

Nothing is asked for that is not shown: a page is one XRANGE or XREVRANGE with a COUNT, and the next
begins behind the last id of this one. With conditions a page may need many replies; then a limit says how
many entries are looked at, and another how long, before the page is shown as it is, and reading goes on from
there when it is asked to.

COUNT also follows the size of entries, as far as it is known, so that no reply takes much more than
REPLY_BYTES_MAX.
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
SCAN_SECONDS_MAX = 1.0  # everybody who looks at the dashboard waits meanwhile


@dataclass(frozen=True, slots=True)
class Reading:
    """Which way a stream is read, and from where (included)."""

    start: StreamID
    rising: bool

    @property
    def url_word(self) -> str:
        """`1-0` upwards from there, `-1-0` downwards; empty for the newest entries first."""
        if self == NEWEST:
            return ""
        return f"{'' if self.rising else '-'}{self.start}"


NEWEST = Reading(LARGEST, rising=False)
OLDEST = Reading(SMALLEST, rising=True)


@dataclass(frozen=True, slots=True)
class EntryPage:
    """Entries in the order of reading; where reading goes on; how many were looked at."""

    entries: list[Entry]
    onwards: Reading | None
    scanned: int


def count_for(mean_bytes: float, wanted: int) -> int:
    """How many entries to ask for at once."""
    return max(1, min(wanted, int(REPLY_BYTES_MAX / max(mean_bytes, 1))))


async def mean_bytes(server: ServerClient, name: bytes) -> float:
    """Of an entry as it is now, where the server tells; else 0."""
    size, length = await server.ask_all([("MEMORY", "USAGE", name), ("XLEN", name)])
    return size / length if isinstance(size, int) and isinstance(length, int) and length else 0


def reading_from(moment: Moment, now_ms: int) -> Reading:
    """Upwards from a moment; `end` is downwards from the newest entry."""
    if isinstance(moment, Edge):
        return OLDEST if moment is Edge.START else NEWEST
    return Reading(moment.at(now_ms) if isinstance(moment, Ago) else moment, rising=True)


async def read_entries(
    server: ServerClient, name: bytes, reading: Reading, count: int
) -> list[Entry]:
    """The next entries of a stream; none if there is no such stream."""
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
    """A page of entries that fulfil all conditions."""
    wanted = count_for(mean_bytes, PAGE_ENTRIES)
    # One more than the page shows tells whether there is another page.
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
    """Go on behind an entry; None where ids end."""
    try:
        return Reading(last.next() if reading.rising else last.previous(), reading.rising)
    except OverflowError:
        return None


async def page_before(
    server: ServerClient, name: bytes, reading: Reading, mean_bytes: float
) -> Reading | None:
    """Where a page would begin that ends just before this one; None if nothing is before it.

    Conditions play no part: the page may have fewer entries that fulfil them.
    """
    back = Reading(reading.start, not reading.rising)
    start = behind(back, reading.start)
    if start is None:
        return None
    read = await read_entries(server, name, start, count_for(mean_bytes, PAGE_ENTRIES))
    return Reading(read[-1].id, reading.rising) if read else None


async def read_ids(server: ServerClient, name: bytes, ids: Sequence[StreamID]) -> list[Entry]:
    """Single entries; those that are gone are left out."""
    replies = await server.ask_all([("XRANGE", name, id_.text, id_.text) for id_ in ids])
    found = []
    for reply in replies:
        if isinstance(reply, list):
            found += entries(reply)
    return found
