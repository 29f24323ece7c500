"""Reads what pipelines report as it arrives, and notices pipelines that stand still.

All reports that the stream still has are in memory, up to REPORTS_MAX. So no pipeline hides another one, and
a look asks only for what is new.

A query stands still if entries wait behind its last batch, and no batch comes. Its reports name the streams
that it reads and the ids up to which it has read them; the newest entries of the streams are known from the
catalogue. A run that was ended on purpose does not stand still; one that was killed does. A query that the
last run no longer has does not count.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from penstock.client.replies import UnexpectedReply, entries
from penstock.core.stream_id import StreamID, parse
from penstock.errors import InvalidID
from penstock.web.jobs.pipelines import (
    METRICS_STREAM,
    RECENT_BATCHES,
    PipelineBatch,
    PipelineOutput,
    PipelineReport,
    PipelineReports,
    newest_of_queries,
    parse_report_or_none,
    reports_of,
    sources_of,
)
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.refusal import Refused, Word
from penstock.web.server.asking import ServerClient, ServerUnreachable

LOOK_SECONDS = 5.0
REPORTS_MAX = 20_000  # pipelines keep about the last 10,000
PAGE = 250  # a page is parsed without a pause, and a foreign entry may be large
RECENT_SECONDS = 1800
GONE_MS = 7 * 24 * 3_600_000  # nobody misses a pipeline that has been silent for longer
SLOW_FACTOR = 3  # a batch may take a few times as long as the ones before it


@dataclass(frozen=True, slots=True)
class StillQuery:
    """A query for which entries have waited for some time, without a batch."""

    pipeline: str
    query: str
    stream: bytes
    silent_ms: int


class PipelineWatch:
    """The reports of pipelines, as of the last look."""

    def __init__(self, server: ServerClient, catalogue: StreamCatalogue) -> None:
        self._server = server
        self._catalogue = catalogue
        self._reports: deque[tuple[StreamID, PipelineReport]] = deque(maxlen=REPORTS_MAX)
        self._seen: StreamID | None = None
        self._one_look = asyncio.Lock()
        # The last batch of a query behind which entries wait, and since when.
        self._waiting: dict[tuple[str, str], tuple[int, int]] = {}
        self.recent = PipelineReports([], [])
        self.still: list[StillQuery] = []

    async def run(self) -> None:
        """Look until cancelled, also while the server cannot be reached."""
        while True:
            try:
                await self.look()
                now_ms = await self._server.now_ms()
                self.recent = self.reports(now_ms)
                self.still = self.find_still(now_ms)
            except (ServerUnreachable, Refused, UnexpectedReply):
                self.recent, self.still = PipelineReports([], []), []
            await asyncio.sleep(LOOK_SECONDS)

    def reports(self, now_ms: int, seconds: int = 0) -> PipelineReports:
        """The state of all pipelines, with the batches of the last seconds."""
        since_ms = now_ms - 1000 * (seconds or RECENT_SECONDS)
        return reports_of((report for _, report in self._reports), since_ms)

    async def look(self) -> None:
        """Read the reports that are new. Raises: Refused, ServerUnreachable."""
        async with self._one_look:
            first, newest = await self._ends()
            if newest is None or (self._seen is not None and newest < self._seen):
                self._reports.clear()  # the stream was deleted, or its last report
                self._seen = None
            while self._reports and first is not None and self._reports[0][0] < first:
                self._reports.popleft()
            if newest is not None and newest != self._seen:
                await self._read_new()

    async def _ends(self) -> tuple[StreamID | None, StreamID | None]:
        """The ids of the first and the last report."""
        first = entries(await self._server.ask("XRANGE", METRICS_STREAM, "-", "+", "COUNT", 1))
        last = entries(await self._server.ask("XREVRANGE", METRICS_STREAM, "+", "-", "COUNT", 1))
        return (first[0].id if first else None), (last[0].id if last else None)

    async def _read_new(self) -> None:
        """Read the reports after the last look, newest first, and keep only what is parsed of each page."""
        end, start = "+", "-" if self._seen is None else f"({self._seen}"
        found: list[tuple[StreamID, PipelineReport]] = []
        seen = self._seen
        for number in range(REPORTS_MAX // PAGE):
            words: tuple[Word, ...] = ("XREVRANGE", METRICS_STREAM, end, start, "COUNT", PAGE)
            page = entries(await self._server.ask(*words))
            if page and number == 0:
                seen = page[0].id
            for entry in page:
                report = parse_report_or_none(entry)
                if report is not None:
                    found.append((entry.id, report))
            if len(page) < PAGE:
                break
            end = f"({page[-1].id}"
        self._reports.extend(reversed(found))
        self._seen = seen

    def find_still(self, now_ms: int) -> list[StillQuery]:
        """The queries that stand still now, the longest first."""
        found, waiting = [], {}
        for key, output in newest_of_queries(self.recent.outputs).items():
            stream = self._stream_that_waits_or_none(output, now_ms)
            if stream is None:
                continue
            batch, since_ms = self._waiting.get(key, (-1, now_ms))
            if batch != output.last.at_ms:
                since_ms = now_ms
            waiting[key] = (output.last.at_ms, since_ms)
            silent_ms = now_ms - max(since_ms, output.last.at_ms, _started_ms(output))
            if silent_ms >= SLOW_FACTOR * _slowest_ms(output.batches):
                found.append(StillQuery(*key, stream, silent_ms))
        self._waiting = waiting
        return sorted(found, key=lambda one: -one.silent_ms)

    def _stream_that_waits_or_none(self, output: PipelineOutput, now_ms: int) -> bytes | None:
        """A stream with entries after the last batch, if the pipeline should read them."""
        if output.is_stopped or (output.run is not None and output.run.has_ended):
            return None
        if now_ms - output.last.at_ms > GONE_MS:
            return None
        for name, end in ends_of(output.last):
            row = self._catalogue.row_or_none(name)
            if row is not None and row.facts.last is not None and row.facts.last.id > end:
                return name
        return None


def ends_of(batch: PipelineBatch) -> list[tuple[bytes, StreamID]]:
    """The streams that a batch has read, and how far. Empty if the report does not tell."""
    names, ends = sources_of(batch), batch.ends.split(",")
    if not batch.ends or len(names) != len(ends):  # an older version, or names that were left out
        return []
    try:
        return [(name, parse(end.encode())) for name, end in zip(names, ends, strict=True)]
    except InvalidID:
        return []


def _started_ms(output: PipelineOutput) -> int:
    return 0 if output.run is None else output.run.at_ms


def _slowest_ms(batches: list[PipelineBatch]) -> float:
    return 1000 * max((batch.seconds or 0.0) for batch in batches[-RECENT_BATCHES:])
