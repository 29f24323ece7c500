"""Parts of pages: charts with a title, and rows of controls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nicegui import ui

from penstock.web import charts
from penstock.web.elements.frame import heading

CHART_HEIGHT = "height: 14rem"


@contextmanager
def part(title: str = "") -> Iterator[ui.element]:
    """A part of a page, below its heading."""
    with ui.element("div").classes("part") as made:
        if title:
            heading(title)
        yield made


@contextmanager
def halves() -> Iterator[ui.element]:
    """Parts side by side, or one below the other where the screen is narrow."""
    with ui.element("div").classes("halves") as made:
        yield made


@contextmanager
def thirds() -> Iterator[ui.element]:
    """As halves, with up to three parts side by side."""
    with ui.element("div").classes("thirds") as made:
        yield made


@contextmanager
def tools() -> Iterator[ui.element]:
    """A row of controls that wraps."""
    with ui.element("div").classes("tools") as made:
        yield made


def chart(title: str, height: str = CHART_HEIGHT) -> ui.echart:
    """A chart in a card, below its title."""
    with ui.element("div").classes("card part"):
        heading(title)
        return ui.echart({}).classes("full-width").style(height)


def draw(drawn: ui.echart, options: charts.Options) -> None:
    """Replace the options of a chart. Nothing is sent if they are the same."""
    if drawn.options != options:
        drawn.options.clear()
        drawn.options.update(options)
        drawn.update()
