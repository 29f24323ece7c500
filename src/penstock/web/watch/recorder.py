"""Writes key figures and groups to the archive, and reads them for charts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.history import GroupHistory, Sample
from penstock.web.watch.archive import ArchiveError, HistoryArchive, Point
from penstock.web.watch.figures import FIGURES, ServerFigures

FIRST_SECONDS = 3.0  # until the first figures and streams are known
WRITE_SECONDS = 10.0
GROUPS_MAX = 100  # groups whose history is kept, those with the largest lags
DRAWN_MAX = 20  # groups in one chart of the archive


class Recorder:
    """The archive of a dashboard, or nothing if it has no folder for it."""

    def __init__(
        self,
        archive: HistoryArchive | None,
        catalogue: StreamCatalogue,
        figures: ServerFigures,
        recent: GroupHistory,
    ) -> None:
        self._archive = archive
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
        try:
            await asyncio.to_thread(self._archive.add, at, values)
            self.problem = ""
        except ArchiveError as error:  # the disk may be full; the dashboard goes on without
            self.problem = str(error)

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
    """The name of a group's series. Hex, because names are any bytes."""
    return f"{what} {stream.hex()} {group.hex()}"


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
