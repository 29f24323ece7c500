"""/overview: what is wrong now, key figures, the busiest streams and groups."""

from __future__ import annotations

from nicegui import ui

from penstock.human.show import counted, harmless
from penstock.web.board import Board
from penstock.web.elements.frame import PageFrame
from penstock.web.elements.parts import halves, part
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.http.names import link
from penstock.web.model.catalogue import StreamRow
from penstock.web.model.rates import points, rate_text
from penstock.web.pages.groups import group_link
from penstock.web.watch.figures import FIGURES
from penstock.web.watch.problems import Problem
from penstock.web.watch.thresholds import BAD, GOOD, LAG, marked

REFRESH_SECONDS = 2.0
PROBLEMS_SHOWN = 20
BUSIEST = 5
SPARK_WIDTH, SPARK_HEIGHT = 120, 28

PROBLEM_COLUMNS = [
    DataColumn("what", "what"),
    DataColumn("where", "where", wide=True),
    DataColumn("detail", "detail", wraps=True),
]
STREAM_COLUMNS = [
    DataColumn("name", "stream"),
    DataColumn("in", "in", numeric=True),
    DataColumn("out", "out", numeric=True),
    DataColumn("length", "length", numeric=True),
]
GROUP_COLUMNS = [
    DataColumn("group", "group"),
    DataColumn("stream", "stream"),
    DataColumn("lag", "lag", numeric=True),
    DataColumn("pending", "pending", numeric=True),
]


class Figure:
    """A key figure: its newest value, and a line of its recent values."""

    def __init__(self, label: str) -> None:
        with ui.element("div").classes("card figure"):
            ui.label(label).classes("muted small")
            self._value = ui.label("-").classes("value")
            # The points are numbers that we format, so there is nothing to sanitize.
            self._line = ui.html("", sanitize=False)

    def show(self, text: str, values: list[float | None]) -> None:
        self._value.set_text(text)
        content = spark_html(values)
        if self._line.content != content:
            self._line.set_content(content)


class OverviewView:
    """The first page."""

    def __init__(self, frame: PageFrame) -> None:
        self._frame = frame
        self._board = frame.board
        with frame.content:
            with part("What is wrong now"):
                self._verdict = ui.label().props('role="status"')
                self._problems = DataTable(PROBLEM_COLUMNS, "what is wrong now")
                self._problems.element.set_visibility(False)
            with part("Key figures"), ui.element("div").classes("figures"):
                self._figures = {name: Figure(label) for name, label, _ in FIGURES}
            with halves():
                with part("Busiest streams"):
                    self._streams = DataTable(
                        STREAM_COLUMNS, "busiest streams", empty="No streams yet."
                    )
                with part("Groups with the largest lag"):
                    self._groups = DataTable(
                        GROUP_COLUMNS, "groups with the largest lag", empty="No groups yet."
                    )

    async def refresh(self) -> None:
        """Show what was collected in the background. Asks the server only for its time."""
        board = self._board
        await board.server.now_ms()
        if not board.catalogue.swept:
            await board.catalogue.glance()
        self._show_problems(board.problems())
        for name, figure in self._figures.items():
            values = await board.recorder.figure(name, self._frame.seconds)
            figure.show(board.figures.text(name), values)
        busiest = board.catalogue.page("", "in", True, 1, BUSIEST)
        self._streams.show([stream_cells(row) for row in busiest.rows])
        self._groups.show(
            [
                {
                    "key": f"{one.name.hex()}/{group.name.hex()}",
                    "group": group_link(one.name, group.name),
                    "stream": {"text": harmless(one.name), "href": link("groups", one.name)},
                    "lag": "unknown"
                    if group.lag is None
                    else marked(f"{group.lag:,}", LAG.level(group.lag)),
                    "pending": f"{group.pending:,}",
                }
                for one, group in board.catalogue.largest_lags(BUSIEST)
            ]
        )

    def _show_problems(self, found: list[Problem]) -> None:
        self._problems.element.set_visibility(bool(found))
        self._problems.show([problem_cells(problem) for problem in found[:PROBLEMS_SHOWN]])
        self._verdict.set_text(verdict(found, len(self._board.catalogue)))
        self._verdict.classes(replace="muted" if found else f"level {GOOD}")


def verdict(found: list[Problem], streams: int) -> str:
    """One line about all problems."""
    known = counted(streams, "stream")
    if not found:
        return f"Nothing is wrong in {known}."
    more = f"; the first {PROBLEMS_SHOWN} are shown" if len(found) > PROBLEMS_SHOWN else ""
    bad = sum(problem.level == BAD for problem in found)
    kinds = [f"{bad:,} bad"] if bad else []
    kinds += [counted(len(found) - bad, "warning")] if len(found) > bad else []
    return f"{' and '.join(kinds)} in {known}, most dangerous first{more}."


def problem_cells(problem: Problem) -> TableRow:
    """A problem as the table shows it."""
    what = {"text": problem.what, "level": problem.level}
    return {
        "key": f"{problem.what}/{problem.where}",
        "what": what | {"href": problem.href} if problem.href else what,
        "where": problem.where,
        "detail": problem.detail,
    }


def stream_cells(row: StreamRow) -> TableRow:
    """A stream as the table shows it."""
    return {
        "key": row.facts.name.hex(),
        "name": {"text": harmless(row.facts.name), "href": link("stream", row.facts.name)},
        "in": rate_text(row.meter.rate_in),
        "out": rate_text(row.meter.rate_out) if row.facts.groups else "-",
        "length": f"{row.facts.length:,}",
    }


def spark_html(values: list[float | None]) -> str:
    """A line of values above a faint area. It repeats what the text says, so screen readers skip it."""
    line = points(values, SPARK_WIDTH, SPARK_HEIGHT)
    ends = [one.partition(",")[0] for one in line.split()]
    area = f"{ends[0]},{SPARK_HEIGHT} {line} {ends[-1]},{SPARK_HEIGHT}" if ends else ""
    return (
        f'<svg viewBox="0 -2 {SPARK_WIDTH} {SPARK_HEIGHT + 4}" preserveAspectRatio="none" aria-hidden="true">'
        f'<polygon points="{area}" fill="currentColor" opacity="0.12"/>'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.5"'
        ' vector-effect="non-scaling-stroke"/></svg>'
    )


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/")
    @ui.page(f"{board.path}/overview")
    async def overview() -> None:
        frame = PageFrame(board, "Overview", "overview")
        view = OverviewView(frame)
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)
