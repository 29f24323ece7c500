"""The key figures of a server over time: from INFO, and from the catalogue of streams."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence

from penstock.client.replies import UnexpectedReply
from penstock.human.show import size_text
from penstock.web.model.catalogue import StreamCatalogue, Totals
from penstock.web.model.rates import Series, rate_text
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient, ServerUnreachable
from penstock.web.watch.info import Info, number_of, parse_info

LOOK_SECONDS = 2.0
SAMPLES_MAX = 150  # five minutes
REPLICAS_GONE = "replicas_gone"  # what we add to INFO
REPLICAS_SECONDS = 3600.0
UNKNOWN = Totals(None, None, None, None)


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _milliseconds(value: float) -> str:
    return f"{value:,.1f} ms"


def _size(value: float) -> str:
    return size_text(round(value))


# Name, label and format of each figure, in the order of the samples.
FIGURES: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("in", "Entries in", rate_text),
    ("out", "Entries out", rate_text),
    ("ops", "Commands", rate_text),
    ("lag", "Lag of all groups", _count),
    ("pending", "Pending entries", _count),
    ("memory", "Memory", _size),
    ("clients", "Clients", _count),
    ("fsync", "Time of an fsync", _milliseconds),
)


class ReplicasSeen:
    """How many replicas a server has had within the last hour."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()  # times and counts; the first is the most

    def gone(self, info: Info, now: float) -> int:
        """How many are missing now. A server that became a replica misses none."""
        count = number_of(info, "connected_slaves")
        if count is None or info.get("role") != "master":
            self._seen.clear()
            return 0
        while self._seen and self._seen[0][0] < now - REPLICAS_SECONDS:
            self._seen.popleft()
        while self._seen and self._seen[-1][1] <= count:
            self._seen.pop()  # it will never be the most again
        self._seen.append((now, count))
        return int(self._seen[0][1] - count)


class ServerFigures:
    """Samples of the figures, and the newest INFO. All pages share them."""

    def __init__(self, server: ServerClient, catalogue: StreamCatalogue) -> None:
        self._server = server
        self._catalogue = catalogue
        self._series = Series(len(FIGURES) + 1, SAMPLES_MAX)
        self._replicas = ReplicasSeen()
        self.info: Info = {}

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Take one sample. A server that may not be asked INFO has fewer figures."""
        try:
            info = parse_info(await self._server.ask("INFO"))
            gone = self._replicas.gone(info, time.monotonic())
            self.info = {**info, REPLICAS_GONE: str(gone)}
        except (Refused, UnexpectedReply):
            self.info = {}
        except ServerUnreachable:
            return
        self._series.add(time.time(), *self._sample())

    def _sample(self) -> list[float | None]:
        info = self.info
        # Before the first sweep the sums would be those of a few streams.
        totals = self._catalogue.totals() if self._catalogue.swept else UNKNOWN
        memory = number_of(info, "used_memory_rss") or number_of(info, "used_memory")
        fsync_us = number_of(info, "penstock_fsync_usec")
        return [
            totals.rate_in,
            totals.rate_out,
            number_of(info, "instantaneous_ops_per_sec"),
            totals.lag,
            totals.pending,
            memory,
            number_of(info, "connected_clients"),
            None if fsync_us is None else fsync_us / 1000,
        ]

    def text(self, name: str) -> str:
        """The newest value of one figure."""
        if name == "fsync" and self.info.get("aof_enabled") == "0":
            return "no log"
        values = self.values(name)
        last = values[-1] if values else None
        formats = {figure: text_of for figure, _, text_of in FIGURES}
        return "-" if last is None else formats[name](last)

    def values(self, name: str) -> list[float | None]:
        """The samples of one figure, oldest first."""
        place = 1 + [figure[0] for figure in FIGURES].index(name)
        return [row[place] for row in self._series.rows()]
