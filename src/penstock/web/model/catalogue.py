"""All streams of a server, for the table of streams.

Names come from SCAN, facts from XINFO and MEMORY USAGE. Both are read in slices, so that neither the server
nor pages are blocked. A sweep over all streams is followed by a pause of several times its duration, and
longer with several servers. So the load does not depend on the number of streams, and with ten thousand of
them the table is some seconds old. The rows on a user's screen are refreshed separately.

Rates and histories start when the dashboard does.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from penstock.client.replies import UnexpectedReply
from penstock.client.xinfo import GroupInfo
from penstock.human.show import harmless
from penstock.web.model.facts import StreamFacts, stream_facts
from penstock.web.model.history import GroupHistory
from penstock.web.model.rates import Meter, sum_of_known
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient, ServerUnreachable

SCAN_COUNT = 1000
SLICE_STREAMS = 20  # blocks the event loop for about ten milliseconds
GLANCE_STREAMS = 50
PAUSE_SECONDS_MIN = 2.0
PAUSE_FACTOR = 4  # a sweep takes at most a fifth of the time
SORTS = ("name", "length", "bytes", "in", "out", "first", "last", "groups", "lag")


@dataclass(frozen=True, slots=True)
class StreamRow:
    """A stream in the table."""

    facts: StreamFacts
    meter: Meter


@dataclass(frozen=True, slots=True)
class CataloguePage:
    """One page of the table, and the number of rows and pages."""

    rows: list[StreamRow]
    number: int
    pages: int
    total: int


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all streams. Unknown rates and lags are left out; a rate is None if all are unknown."""

    rate_in: float | None
    rate_out: float | None
    lag: int | None
    pending: int | None


class StreamCatalogue:
    """The known streams. All pages share one catalogue."""

    def __init__(self, server: ServerClient, history: GroupHistory, servers: int = 1) -> None:
        """`servers` is how many catalogues share the time of this process."""
        self._server = server
        self._servers = servers
        self._history = history
        self._facts: dict[bytes, StreamFacts] = {}
        self._meters: dict[bytes, Meter] = {}
        self.swept = False  # True after the first sweep
        self.sweep_seconds = 0.0
        self.error = ""

    def __len__(self) -> int:
        return len(self._facts)

    async def run(self) -> None:
        """Sweep repeatedly, also while the server cannot be reached."""
        while True:
            started = time.monotonic()
            try:
                await self.sweep()
                self.error = ""
            except (ServerUnreachable, Refused, UnexpectedReply) as error:
                self.error = str(error)
            took = time.monotonic() - started
            self.sweep_seconds = took
            await asyncio.sleep(max(PAUSE_SECONDS_MIN, PAUSE_FACTOR * took * self._servers))

    async def sweep(self) -> None:
        """Read the facts of every stream once."""
        seen: set[bytes] = set()
        cursor = b"0"
        while True:
            cursor, found = await self._scan(cursor)
            names = [name for name in found if name not in seen]
            seen.update(names)
            for start in range(0, len(names), SLICE_STREAMS):
                await self.look(names[start : start + SLICE_STREAMS])
                await asyncio.sleep(0)
            if cursor == b"0":
                break
        for name in self._facts.keys() - seen:
            self.forget(name)
        self.swept = True

    async def glance(self) -> None:
        """Read the facts of some streams, for a page that cannot wait for the first sweep."""
        cursor = b"0"
        while True:
            cursor, names = await self._scan(cursor)
            if names or cursor == b"0":
                break
        await self.look(names[:GLANCE_STREAMS])

    async def _scan(self, cursor: bytes) -> tuple[bytes, list[bytes]]:
        """The next cursor and some names. Different calls may return the same name."""
        next_cursor, names = await self._server.scan(cursor, "TYPE", "stream", "COUNT", SCAN_COUNT)
        return next_cursor, list(dict.fromkeys(names))

    async def look(self, names: Sequence[bytes]) -> None:
        """Refresh the facts of some streams."""
        found = await stream_facts(self._server, names)
        at = time.monotonic()
        for name in names:
            if name in found:
                self.note(found[name], at)
            else:
                self.forget(name)

    def note(self, facts: StreamFacts, at: float) -> None:
        """Store the facts of a stream."""
        self._facts[facts.name] = facts
        self._meters.setdefault(facts.name, Meter()).note(at, facts.added, facts.reads)
        self._history.note(facts, time.time())

    def note_now(self, facts: StreamFacts) -> None:
        """As `note`, for facts that a page has just read."""
        self.note(facts, time.monotonic())

    def forget(self, name: bytes) -> None:
        self._facts.pop(name, None)
        self._meters.pop(name, None)
        self._history.forget(name)

    def all_facts(self) -> Iterable[StreamFacts]:
        """The facts of every stream, as of the last sweep."""
        return self._facts.values()

    def row_or_none(self, name: bytes) -> StreamRow | None:
        """What is known about a stream."""
        facts = self._facts.get(name)
        return None if facts is None else StreamRow(facts, self._meters[name])

    def totals(self) -> Totals:
        """Sums over all streams. Cost: visits every group."""
        meters = self._meters.values()
        groups = [group for facts in self._facts.values() for group in facts.groups]
        return Totals(
            rate_in=sum_of_known(meter.rate_in for meter in meters),
            rate_out=sum_of_known(meter.rate_out for meter in meters),
            lag=sum(group.lag or 0 for group in groups),
            pending=sum(group.pending for group in groups),
        )

    def largest_lags(self, count: int) -> list[tuple[StreamFacts, GroupInfo]]:
        """The groups with the largest lags, then with the most pending entries."""
        return heapq.nlargest(
            count,
            ((facts, group) for facts in self._facts.values() for group in facts.groups),
            key=lambda found: (found[1].lag or 0, found[1].pending),
        )

    def page(
        self, search: str, sort: str, descending: bool, number: int, size: int
    ) -> CataloguePage:
        """Rows whose names contain `search`, sorted, with unknown values last. Cost: sorts all rows."""
        wanted = search.casefold()
        names = list(self._facts)
        if wanted:
            names = [name for name in names if wanted in harmless(name).casefold()]
        key = self._key(sort)
        known = [(value, name) for name in names if (value := key(name)) is not None]
        known.sort(reverse=descending)
        ordered = [name for _, name in known]
        ordered += sorted(set(names) - set(ordered))
        pages = max(1, -(-len(ordered) // size))
        number = min(max(number, 1), pages)
        shown = ordered[(number - 1) * size : number * size]
        rows = [StreamRow(self._facts[name], self._meters[name]) for name in shown]
        return CataloguePage(rows, number, pages, len(ordered))

    def _key(self, sort: str) -> Callable[[bytes], float | bytes | None]:
        facts, meters = self._facts, self._meters
        keys: dict[str, Callable[[bytes], float | bytes | None]] = {
            "name": lambda name: name,
            "length": lambda name: facts[name].length,
            "bytes": lambda name: facts[name].size_bytes,
            "in": lambda name: meters[name].rate_in,
            "out": lambda name: meters[name].rate_out,
            "first": lambda name: _ms(facts[name], last=False),
            "last": lambda name: _ms(facts[name], last=True),
            "groups": lambda name: len(facts[name].groups),
            "lag": lambda name: facts[name].worst_lag,
        }
        return keys.get(sort, keys["name"])


def _ms(facts: StreamFacts, last: bool) -> float | None:
    """Minus the time of the first or last entry, which sorts like its age."""
    found = facts.last if last else facts.first
    return None if found is None else -found.id.ms


def names_of(rows: Iterable[StreamRow]) -> list[bytes]:
    return [row.facts.name for row in rows]
