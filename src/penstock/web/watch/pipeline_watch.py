"""Reads what pipelines report as it arrives, and notices pipelines that stand still.

All reports that the stream still has are in memory, up to REPORTS_MAX. So no pipeline hides another one, and
a look asks only for what is new.

A query stands still if entries wait behind its last batch, and no batch comes. Its reports name the streams
that it reads and the ids up to which it has read them; the newest entries of the streams are known from the
catalogue. A run that was ended on purpose does not stand still; one that was killed does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from penstock.client.replies import Entry, UnexpectedReply, entries
from penstock.core.stream_id import StreamID, parse
from penstock.errors import InvalidID
from penstock.web.jobs.pipelines import (
    METRICS_STREAM,
    RECENT_BATCHES,
    PipelineBatch,
    PipelineOutput,
    PipelineReport,
    PipelineReports,
    parse_report_or_none,
    reports_of,
)
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.refusal import Refused, Word
from penstock.web.server.asking import ServerClient, ServerUnreachable

LOOK_SECONDS = 5.0
REPORTS_MAX = 20_000  # pipelines keep about the last 10,000
PAGE = 1000
RECENT_SECONDS = 1800
GONE_MS = 7 * 24 * 3_600_000  # nobody misses a pipeline that has been silent for longer
SLOW_FACTOR = 3  # a batch may take a few times as long as the ones before it


@dataclass(frozen=True, slots=True)
class StillQuery:
    """A query for which entries have waited for some time, without a batch."""

    pipeline: str
    query: str
    stream: str
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
                found = [entry async for entry in self._new_entries()]
                for entry in reversed(found):
                    report = parse_report_or_none(entry)
                    if report is not None:
                        self._reports.append((entry.id, report))
                self._seen = found[0].id if found else self._seen

    async def _ends(self) -> tuple[StreamID | None, StreamID | None]:
        """The ids of the first and the last report."""
        first = entries(await self._server.ask("XRANGE", METRICS_STREAM, "-", "+", "COUNT", 1))
        last = entries(await self._server.ask("XREVRANGE", METRICS_STREAM, "+", "-", "COUNT", 1))
        return (first[0].id if first else None), (last[0].id if last else None)

    async def _new_entries(self) -> AsyncIterator[Entry]:
        """The reports after the last look, newest first, a page at a time."""
        end, start = "+", "-" if self._seen is None else f"({self._seen}"
        for _ in range(REPORTS_MAX // PAGE):
            words: tuple[Word, ...] = ("XREVRANGE", METRICS_STREAM, end, start, "COUNT", PAGE)
            page = entries(await self._server.ask(*words))
            for entry in page:
                yield entry
            if len(page) < PAGE:
                return
            end = f"({page[-1].id}"

    def find_still(self, now_ms: int) -> list[StillQuery]:
        """The queries that stand still now, the longest first."""
        found, waiting = [], {}
        for output in self.recent.outputs:
            key = (output.pipeline, output.last.query or output.output)
            stream = self._stream_that_waits_or_none(output, now_ms)
            if stream is None or key in waiting:
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

    def _stream_that_waits_or_none(self, output: PipelineOutput, now_ms: int) -> str | None:
        """A stream with entries after the last batch, if the pipeline should read them."""
        if output.failure is not None or (output.run is not None and output.run.has_ended):
            return None
        if now_ms - output.last.at_ms > GONE_MS:
            return None
        for name, end in ends_of(output.last):
            row = self._catalogue.row_or_none(name.encode("utf-8", "surrogateescape"))
            if row is not None and row.facts.last is not None and row.facts.last.id > end:
                return name
        return None


def ends_of(batch: PipelineBatch) -> list[tuple[str, StreamID]]:
    """The streams that a batch has read, and how far. Empty if the report does not tell."""
    names, ends = batch.source.split(","), batch.ends.split(",")
    if not batch.ends or len(names) != len(ends):  # an older version; or a name has a comma
        return []
    try:
        return [(name, parse(end.encode())) for name, end in zip(names, ends, strict=True)]
    except InvalidID:
        return []


def _started_ms(output: PipelineOutput) -> int:
    return 0 if output.run is None else output.run.at_ms


def _slowest_ms(batches: list[PipelineBatch]) -> float:
    return 1000 * max((batch.seconds or 0.0) for batch in batches[-RECENT_BATCHES:])
