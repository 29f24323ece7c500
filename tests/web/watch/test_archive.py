"""History in a file: steps of resolution, gaps, restarts, files that cannot be used."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from penstock.web.http.time_range import parse_range
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.history import GroupHistory, Sample
from penstock.web.server.asking import ServerClient
from penstock.web.watch.archive import FILE_NAME, STEPS, ArchiveError, HistoryArchive, Point
from penstock.web.watch.figures import ServerFigures
from penstock.web.watch.pipeline_watch import PipelineWatch
from penstock.web.watch.recorder import Recorder
from tests.web.conftest import Live

START = 1_700_000_400  # a multiple of all intervals


def test_history_survives_a_restart(tmp_path: Path) -> None:
    first = HistoryArchive(tmp_path, "server")
    first.add(START, {"lag": 7, "unknown": None})
    first.close()
    again = HistoryArchive(tmp_path, "server")
    again.add(START + 10, {"lag": 9})
    assert again.read("lag", START, START + 60) == [(START, 7), (START + 10, 9)]
    assert again.read("unknown", START, START + 60) == []
    assert HistoryArchive(tmp_path, "other").read("lag", START, START + 60) == []


def test_a_longer_range_has_means(tmp_path: Path) -> None:
    archive = HistoryArchive(tmp_path, "server")
    for place in range(60):
        archive.add(START + 10 * place, {"lag": place})
    hour, day, week = (
        archive.read("lag", START + 600 - span, START + 600) for span in (3600, 86400, 604800)
    )
    assert len(hour) == 60
    assert day == [(START + 60 * minute, 6 * minute + 2.5) for minute in range(10)]
    assert week == [(START, 29.5)]


def test_old_rows_are_deleted_and_the_file_stays_small(tmp_path: Path) -> None:
    archive = HistoryArchive(tmp_path, "server")
    end = START + 20 * 86_400
    for at in range(START, end, 600):
        archive.add(at, {"lag": 1})
    for step, (_, kept) in enumerate(STEPS):
        count, first = archive._database.execute(
            "SELECT count(*), min(at) FROM samples WHERE step = ?", (step,)
        ).fetchone()
        assert first >= end - 600 - kept - 600
        assert count <= kept / 600 + 2


def test_a_pause_of_the_dashboard_is_a_gap(tmp_path: Path) -> None:
    archive = HistoryArchive(tmp_path, "server")
    for at in (START, START + 10, START + 300):
        archive.add(at, {"lag": 1})
    assert archive.read("lag", START, START + 400) == [
        (START, 1),
        (START + 10, 1),
        (START + 20, None),
        (START + 300, 1),
    ]


def test_a_recorder_writes_groups_and_figures(tmp_path: Path, stream_of_ten: Live) -> None:
    async def record(server: ServerClient) -> tuple[list[float | None], list[Sample], list[Sample]]:
        recent = GroupHistory()
        catalogue = StreamCatalogue(server, recent)
        await catalogue.sweep()
        figures = ServerFigures(server, catalogue)
        await figures.look()
        archive = HistoryArchive(tmp_path, server.name)
        pipelines = PipelineWatch(server, catalogue)
        recorder = Recorder(archive, catalogue, figures, recent, pipelines)
        await recorder.write(time.time())
        assert recorder.problem == ""
        kept = await recorder.samples(b"s", [b"g"], 3600)
        fresh = await recorder.samples(b"s", [b"g"], 0)
        values = await recorder.figure("pending", 3600)
        recorder.close()
        await recorder.write(time.time())
        assert "cannot be written" in recorder.problem
        return values, kept[b"g"], fresh[b"g"]

    values, kept, fresh = stream_of_ten.ask(record)
    assert values == [4]
    assert [(one.lag, one.pending) for one in kept] == [(6, 4)]
    assert [(one.lag, one.pending) for one in fresh] == [(6, 4)]


def test_a_recorder_keeps_the_batches_of_pipelines(tmp_path: Path, live: Live) -> None:
    """The stream of reports may keep them for minutes only."""
    now = time.time()

    def report(batch: int, rate: float) -> None:
        told = {"pipeline": "shop", "output": "silver", "query": "main", "batch": batch}
        live.client.xadd("penstock:metrics", told | {"rows_per_second": rate, "lag": 5})

    async def record(server: ServerClient) -> dict[str, list[Point]]:
        catalogue = StreamCatalogue(server, GroupHistory())
        watch = PipelineWatch(server, catalogue)
        figures = ServerFigures(server, catalogue)
        archive = HistoryArchive(tmp_path, "server")
        recorder = Recorder(archive, catalogue, figures, GroupHistory(), watch)
        for place, rates in enumerate([(10.0,), (20.0, 40.0), ()]):
            for rate in rates:
                report(place, rate)
            await watch.look()
            watch.recent = watch.reports(await server.now_ms())
            await recorder.write(now - 600 + 10 * place)
        assert await recorder.batches("shop", "main", 0, now) == {}
        assert await recorder.batches("shop", "main", 3600, now - 3600) == {}
        found = await recorder.batches("shop", "main", 3600, now)
        recorder.close()
        return found

    found = live.ask(record)
    assert [value for _, value in found["rows_per_second"]] == [
        10,
        30,
    ]  # and nothing without a batch
    assert [value for _, value in found["lag"]] == [5, 5]
    assert found["seconds"] == []


@pytest.mark.parametrize(
    ("cookie", "seconds"), [(None, 0), ("3600", 3600), ("7", 0), ("x", 0), ("²", 0)]
)
def test_the_range_of_a_cookie(cookie: str | None, seconds: int) -> None:
    assert parse_range(cookie) == seconds


def test_a_file_that_cannot_be_used_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(b"something else" * 100)
    with pytest.raises(ArchiveError, match="cannot be used for the history"):
        HistoryArchive(tmp_path, "server")
    assert path.read_bytes() == b"something else" * 100
    with pytest.raises(ArchiveError, match="cannot be used for the history"):
        HistoryArchive(path, "server")
