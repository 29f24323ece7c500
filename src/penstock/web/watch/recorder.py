"""Writes key figures, groups and the queries of pipelines to the archive, and reads them for charts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from penstock.web.jobs.pipelines import PipelineBatch, newest_of_queries
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.history import GroupHistory, Sample
from penstock.web.watch.archive import ArchiveError, HistoryArchive, Point
from penstock.web.watch.figures import FIGURES, ServerFigures
from penstock.web.watch.pipeline_watch import PipelineWatch

FIRST_SECONDS = 3.0  # until the first figures and streams are known
WRITE_SECONDS = 10.0
GROUPS_MAX = 100  # groups whose history is kept, those with the largest lags
QUERIES_MAX = 50  # queries of pipelines whose history is kept
DRAWN_MAX = 20  # groups or queries in one chart of the archive
BATCH_FIGURES = ("rows_per_second", "seconds", "lag")


class Recorder:
    """The archive of a dashboard, or nothing if it has no folder for it."""

    def __init__(
        self,
        archive: HistoryArchive | None,
        catalogue: StreamCatalogue,
        figures: ServerFigures,
        recent: GroupHistory,
        pipelines: PipelineWatch,
    ) -> None:
        self._archive = archive
        self._pipelines = pipelines
        self._written: dict[
            tuple[str, str], int
        ] = {}  # the last batch of each query that is written
        self._catalogue = catalogue
        self._figures = figures
        self._recent = recent
        self.problem = ""

    @property
    def is_on(self) -> bool:
        return self._archive is not None

    async def run(self) -> None:
        """Write until cancelled."""
        await asyncio.sleep(FIRST_SECONDS)
        while True:
            await self.write(time.time())
            await asyncio.sleep(WRITE_SECONDS)

    async def write(self, at: float) -> None:
        """Write one sample of everything."""
        if self._archive is None:
            return
        values: dict[str, float | None] = {}
        for name, _, _ in FIGURES:
            known = self._figures.values(name)
            values[name] = known[-1] if known else None
        for facts, group in self._catalogue.largest_lags(GROUPS_MAX):
            values[series_name("lag", facts.name, group.name)] = group.lag
            values[series_name("pending", facts.name, group.name)] = group.pending
        values |= self._batch_values()
        try:
            await asyncio.to_thread(self._archive.add, at, values)
            self.problem = ""
        except ArchiveError as error:  # the disk may be full; the dashboard goes on without
            self.problem = str(error)

    def _batch_values(self) -> dict[str, float | None]:
        """The means over the batches of each query since the last call. Without one there is no sample."""
        values: dict[str, float | None] = {}
        written, self._written = self._written, {}
        newest = newest_of_queries(self._pipelines.recent.outputs)
        for key, output in sorted(newest.items(), key=lambda one: -one[1].last.at_ms)[:QUERIES_MAX]:
            since_ms = written.get(key, output.last.at_ms - 1)
            fresh = [batch for batch in output.batches if batch.at_ms > since_ms]
            for what in BATCH_FIGURES:
                values[_series_of_query(what, *key)] = _mean(fresh, what)
            self._written[key] = output.last.at_ms
        return values

    async def batches(
        self, pipeline: str, query: str, seconds: int, until: float
    ) -> dict[str, list[Point]]:
        """The figures of a query in the last seconds, until a time. Empty if they are not kept."""
        if self._archive is None or not seconds or time.time() - seconds >= until:
            return {}
        found = {}
        for what in BATCH_FIGURES:
            points = await self._read(_series_of_query(what, pipeline, query), seconds)
            found[what] = [point for point in points if point[0] < until]
        return found

    async def figure(self, name: str, seconds: int) -> list[float | None]:
        """The values of a key figure in the last seconds; the recent ones if `seconds` is 0."""
        if self._archive is None or not seconds:
            return self._figures.values(name)
        return [value for _, value in await self._read(name, seconds)]

    async def samples(
        self, stream: bytes, groups: Sequence[bytes], seconds: int
    ) -> dict[bytes, list[Sample]]:
        """The samples of groups in the last seconds; the recent ones if `seconds` is 0."""
        if self._archive is None or not seconds:
            return {group: self._recent.samples(stream, group) for group in groups}
        found = {}
        for group in groups[:DRAWN_MAX]:
            lags = dict(await self._read(series_name("lag", stream, group), seconds))
            pending = await self._read(series_name("pending", stream, group), seconds)
            found[group] = [
                Sample(at, _whole(lags.get(at)), _whole(value) or 0) for at, value in pending
            ]
        return found

    async def _read(self, name: str, seconds: int) -> list[Point]:
        assert self._archive is not None
        now = time.time()
        try:
            return await asyncio.to_thread(self._archive.read, name, now - seconds, now)
        except ArchiveError as error:
            self.problem = str(error)
            return []

    def close(self) -> None:
        if self._archive is not None:
            self._archive.close()


def series_name(what: str, stream: bytes, group: bytes) -> str:
    """The name of the series of a group, or of a query of a pipeline. Hex, because names are any bytes."""
    return f"{what} {stream.hex()} {group.hex()}"


def _series_of_query(what: str, pipeline: str, query: str) -> str:
    return series_name(f"batch {what}", pipeline.encode(), query.encode())


def _mean(batches: Sequence[PipelineBatch], what: str) -> float | None:
    known = [value for batch in batches if (value := getattr(batch, what)) is not None]
    return sum(known) / len(known) if known else None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
