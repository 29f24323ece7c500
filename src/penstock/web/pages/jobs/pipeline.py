"""/pipeline: Spark pipelines as flows, their reports and their rejects."""

from __future__ import annotations

from nicegui import ui

from penstock.core.stream_id import parse
from penstock.human.show import duration_text, harmless, time_text
from penstock.web import charts
from penstock.web.board import Board
from penstock.web.changes.resend import Reject
from penstock.web.elements.flow import FlowElement
from penstock.web.elements.frame import PageFrame
from penstock.web.elements.parts import chart, draw, part, thirds
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.http.names import link, parse_name
from penstock.web.jobs.flow import flows_of
from penstock.web.jobs.pipelines import (
    METRICS_STREAM,
    REASON,
    PipelineOutput,
    Rejects,
    newest_of_queries,
    reason_of,
    reject_streams,
    rejects_of,
)
from penstock.web.model.rates import rate_text
from penstock.web.model.stream_page import read_ids
from penstock.web.model.values import preview
from penstock.web.pages.entry import show_entry
from penstock.web.pages.jobs.pipeline_flow import flow_cells
from penstock.web.pages.jobs.redrive import redrive
from penstock.web.watch.archive import Point
from penstock.web.watch.recorder import DRAWN_MAX
from penstock.web.watch.thresholds import LAG, PIPELINE_LEVELS, marked

QueryKey = tuple[str, str]

REFRESH_SECONDS = 2.0
REJECTS_SHOWN = 20
NO_BATCHES = f"No batches yet. `penstock pipeline run` reports them in {METRICS_STREAM.decode()}."
NO_REJECTS = "No rejects."
# What the charts show, by the name in a batch.
FIGURES = {"rows_per_second": "rows/s", "seconds": "batch time in seconds", "lag": "lag"}

OUTPUT_COLUMNS = [
    DataColumn("pipeline", "pipeline"),
    DataColumn("output", "output"),
    DataColumn("state", "state"),
    DataColumn("batch", "batch", numeric=True),
    DataColumn("rows", "rows", numeric=True),
    DataColumn("rate", "rows/s", numeric=True),
    DataColumn("seconds", "batch time", numeric=True),
    DataColumn("lag", "lag", numeric=True),
    DataColumn("pending", "pending", numeric=True),
    DataColumn("ago", "last batch", numeric=True),
]
REASON_COLUMNS = [
    DataColumn("stream", "stream"),
    DataColumn("reason", "reason", wraps=True),
    DataColumn("count", "newest rejects", numeric=True),
]
REJECT_COLUMNS = [
    DataColumn("id", "id"),
    DataColumn("time", "time", wide=True),
    DataColumn("reason", "reason", wraps=True),
    DataColumn("fields", "fields", wraps=True),
]


class PipelineView:
    """Flows, outputs, charts and rejects."""

    def __init__(self, frame: PageFrame, only: str, rejects: bytes) -> None:
        self._frame = frame
        self._only = only
        self._rejects_stream = rejects
        with frame.content:
            self._none = ui.label(NO_BATCHES).classes("card muted wrap")
            self._none.set_visibility(False)
            self._flow = FlowElement().classes("full-width")
            with thirds() as self._drawn:
                titles = ("Rows per second", "Batch time (s)", "Lag (entries)")
                self._charts = [chart(title) for title in titles]
            with part("Rejects"):
                self._reasons = DataTable(REASON_COLUMNS, "reasons of rejects", empty=NO_REJECTS)
            with part("Newest rejects"):
                writes = frame.may_change
                self._rejected = DataTable(
                    REJECT_COLUMNS, "newest rejects", chooses=writes, empty=NO_REJECTS
                )
                self._rejected.on_open(self._open)
                if writes:
                    self._redrives = ui.button("Redrive selected", on_click=self._redrive)
                    self._redrives.props("flat no-caps").classes("self-start")
            with part("Outputs") as self._listed:
                self._outputs = DataTable(OUTPUT_COLUMNS, "outputs of pipelines", empty=NO_BATCHES)

    async def refresh(self) -> None:
        """Read the newest reports again and redraw the page."""
        server = self._frame.board.server
        watch = self._frame.board.pipelines
        await watch.look()
        now_ms = await server.now_ms()
        reports = watch.reports(now_ms, self._frame.seconds).only(self._only)
        found = reports.outputs
        catalogue = self._frame.board.catalogue
        self._flow.show([flow_cells(one, catalogue, now_ms) for one in flows_of(reports, now_ms)])
        self._outputs.show([output_cells(output, now_ms) for output in found])
        self._none.set_visibility(not reports.outputs and not reports.failures)
        for one in (self._drawn, self._listed):
            one.set_visibility(bool(found))
        older = await self._older(found)
        for (name, title), drawn in zip(FIGURES.items(), self._charts, strict=True):
            draw(drawn, charts.lines(title, _series(found, name, older)))
        streams = [self._rejects_stream] if self._rejects_stream else self._found_streams()
        self._show_rejects(await rejects_of(server, streams))

    async def _older(self, found: list[PipelineOutput]) -> dict[QueryKey, dict[str, list[Point]]]:
        """What the archive knows about the time before the first report."""
        recorder, seconds = self._frame.board.recorder, self._frame.seconds
        newest = list(newest_of_queries(found).items())[:DRAWN_MAX]
        return {
            key: await recorder.batches(*key, seconds, output.batches[0].at_ms / 1000)
            for key, output in newest
        }

    def _found_streams(self) -> list[bytes]:
        return reject_streams(self._frame.board.catalogue)

    async def _changed(self) -> None:
        self._rejected.choose_none()
        await self.refresh()

    async def _redrive(self) -> None:
        async def find() -> list[Reject]:
            return [one for key in self._rejected.chosen for one in await self._read(key)]

        await redrive(self._frame, find, self._changed)

    async def _open(self, key: str) -> None:
        async def show() -> None:
            for stream, entry in await self._read(key):
                show_entry(self._frame, stream, entry, self.refresh)

        await self._frame.attempt(show)

    async def _read(self, key: str) -> list[Reject]:
        """The reject of a row. Empty if it was deleted."""
        stream, _, id_ = key.partition("/")
        name = bytes.fromhex(stream)
        found = await read_ids(self._frame.board.server, name, [parse(id_.encode())])
        return [(name, entry) for entry in found]

    def _show_rejects(self, found: list[Rejects]) -> None:
        self._reasons.show(
            [
                {
                    "key": f"{rejects.stream.hex()}/{reason}",
                    "stream": {
                        "text": harmless(rejects.stream),
                        "href": link("stream", rejects.stream, where=f"{REASON.decode()}={reason}"),
                    },
                    "reason": harmless(reason),
                    "count": count,
                }
                for rejects in found
                for reason, count in rejects.reasons
            ]
        )
        if self._frame.may_change:
            self._redrives.set_visibility(any(rejects.entries for rejects in found))
        self._rejected.show(
            [
                {
                    "key": f"{rejects.stream.hex()}/{entry.id}",
                    "id": {"text": str(entry.id), "open": "dialog"},
                    "time": time_text(entry.id.ms),
                    "reason": harmless(reason_of(entry)),
                    "fields": preview([field for field in entry.fields if field[0] != REASON]),
                }
                for rejects in found
                for entry in rejects.entries[:REJECTS_SHOWN]
            ]
        )


def _series(
    found: list[PipelineOutput], name: str, older: dict[QueryKey, dict[str, list[Point]]]
) -> list[charts.Line]:
    """A line for each query: its outputs have the same batches."""
    by_query = newest_of_queries(found)
    is_one = len({pipeline for pipeline, _ in by_query}) == 1
    return [
        (
            harmless(query if is_one else f"{pipeline}/{query}"),
            [
                *older.get((pipeline, query), {}).get(name, []),
                *((batch.at_ms / 1000, getattr(batch, name)) for batch in output.batches),
            ],
        )
        for (pipeline, query), output in by_query.items()
    ]


def output_cells(output: PipelineOutput, now_ms: int) -> TableRow:
    """An output as the table shows it."""
    last = output.last
    state = output.state(now_ms)
    return {
        "key": f"{output.pipeline}/{output.output}",
        "pipeline": {
            "text": harmless(output.pipeline),
            "href": link("pipeline", only=output.pipeline),
        },
        "output": harmless(output.output),
        "state": marked(state, PIPELINE_LEVELS.get(state, "")),
        "batch": last.batch,
        "rows": f"{last.rows:,}",
        "rate": rate_text(last.rows_per_second),
        "seconds": "-" if last.seconds is None else f"{last.seconds:.2f} s",
        "lag": "unknown" if last.lag is None else marked(f"{last.lag:,}", LAG.level(last.lag)),
        "pending": "-" if last.pending is None else f"{last.pending:,}",
        "ago": duration_text(max(0, now_ms - last.at_ms)),
    }


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/pipeline")
    async def pipeline(only: str = "", rejects: str = "") -> None:
        frame = PageFrame(board, "Pipelines", "pipeline")
        view = PipelineView(frame, only, parse_name(rejects))
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)
