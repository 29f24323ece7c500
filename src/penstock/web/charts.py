"""Options for ECharts, as plain dicts that tests can check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.stream_id import StreamID
from penstock.human.show import harmless
from penstock.web.design.colours import CHART_EDGE, CHART_FAINT, CHART_SERIES, CHART_TEXT
from penstock.web.design.scale import FONT, TYPES
from penstock.web.model.facts import StreamFacts
from penstock.web.model.groups import PendingEntry
from penstock.web.model.history import Sample
from penstock.web.model.time_line import has_span, place

Options = dict[str, Any]
Line = tuple[str, list[tuple[float, float | None]]]

POINTS_DOWN = "path://M0 0L10 0L5 10Z"
TEXT: Options = {"color": CHART_TEXT, "fontFamily": FONT, "fontSize": TYPES[0]}
AXIS: Options = {
    "axisLabel": {"color": CHART_TEXT},
    "splitLine": {"lineStyle": {"color": CHART_FAINT}},
    "axisLine": {"lineStyle": {"color": CHART_EDGE}},
}
# All in one weight: ECharts would make each full minute bold.
TIME_FORMATS: Options = {
    "year": "{yyyy}",
    "month": "{d} {MMM}",
    "day": "{d} {MMM}",
    "hour": "{HH}:{mm}",
    "minute": "{HH}:{mm}",
    "second": "{HH}:{mm}:{ss}",
    "millisecond": "{HH}:{mm}:{ss}",
}
TIME_AXIS: Options = {
    **AXIS,
    "type": "time",
    "splitNumber": 4,
    "axisLabel": {"hideOverlap": True, "color": CHART_TEXT, "formatter": TIME_FORMATS},
}
# Lines differ by their dashes too, for people who cannot tell the colours apart.
DASHES: tuple[str | list[int], ...] = ("solid", [7, 4], [2, 3], [9, 3, 2, 3])


def lines(title: str, series: Sequence[Line], whole: bool = False) -> Options:
    """Lines over time. Times are seconds since 1970. The page shows the title; here it is only described.

    `whole`: the values are whole numbers, so the axis has no fractions.
    """
    return {
        "animation": False,
        "useUTC": True,  # as all times of the dashboard
        "color": list(CHART_SERIES),
        "textStyle": TEXT,
        "aria": described(f"{title} over time", [_range_text(name, rows) for name, rows in series]),
        "grid": {"left": 4, "right": 28, "top": 36, "bottom": 4, "containLabel": True},
        "legend": {
            "top": 0,
            "left": 0,
            "type": "scroll",
            "itemWidth": 32,
            "itemStyle": {"opacity": 0},
            "textStyle": {"color": CHART_TEXT},
        },
        "tooltip": {"trigger": "axis"},
        "xAxis": {**TIME_AXIS, "splitLine": {"show": False}},
        "yAxis": {"type": "value", "min": 0, "minInterval": int(whole), "splitNumber": 3, **AXIS},
        "series": [
            {
                "type": "line",
                "name": name,
                "showSymbol": len(rows) == 1,
                "step": "end",
                "lineStyle": {"width": 2, "type": DASHES[place % len(DASHES)]},
                "data": [[at * 1000, value] for at, value in rows],
            }
            for place, (name, rows) in enumerate(series)
        ],
    }


def history(title: str, groups: dict[bytes, list[Sample]], pending: bool) -> Options:
    """Lag or pending entries of groups over time, with gaps where the lag is unknown."""
    return lines(
        title,
        [
            (
                harmless(name),
                [(sample.at, sample.pending if pending else sample.lag) for sample in samples],
            )
            for name, samples in groups.items()
        ],
        whole=True,
    )


def timeline(facts: StreamFacts, oldest: dict[bytes, PendingEntry]) -> Options:
    """The position and oldest pending entry of each group, between the stream's tail and head.

    The marks of a row are above and below its middle, so that both are seen where they are close together.
    """
    names = [harmless(group.name) for group in facts.groups]
    rows = list(enumerate(facts.groups))
    positions = [_mark(facts, row, group.last_id, "position") for row, group in rows]
    stuck = [
        _mark(facts, row, oldest[group.name].id, "oldest pending")
        for row, group in rows
        if group.name in oldest
    ]
    return {
        "animation": False,
        "aria": described(
            "groups between the tail of the stream (0%) and its head (100%)",
            [f"{mark['name']}: {mark['share']:.0%}" for mark in positions + stuck],
        ),
        "color": list(CHART_SERIES),
        "textStyle": TEXT,
        "grid": {"left": 4, "right": 28, "top": 36, "bottom": 4, "containLabel": True},
        "useUTC": True,
        "legend": {
            "top": 0,
            "left": 0,
            "itemWidth": 14,
            "itemGap": 20,
            "textStyle": {"color": CHART_TEXT},
        },
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        "xAxis": _between_ends(facts),
        "yAxis": {
            **AXIS,
            "splitLine": {"show": True, "lineStyle": {"color": CHART_FAINT}},
            "type": "category",
            "inverse": True,  # in the order of the table
            "data": names,
            "axisLabel": {"width": 100, "overflow": "truncate", "color": CHART_TEXT},
        },
        "series": [
            _marks("position", positions, symbol=POINTS_DOWN, symbolOffset=[0, -7]),
            _marks("oldest pending", stuck, symbol="diamond", symbolOffset=[0, 7]),
        ],
    }


def _marks(name: str, data: Sequence[Options], **look: object) -> Options:
    style = {"symbolSize": 13, "itemStyle": {"opacity": 1}}
    return {"type": "scatter", "name": name, "data": data, **style, **look}


def described(what: str, parts: Sequence[str]) -> Options:
    """A description for screen readers. Without it, ECharts would read out every number."""
    return {"enabled": True, "label": {"description": "; ".join([f"Chart: {what}", *parts])}}


def _range_text(name: str, rows: Sequence[tuple[float, float | None]]) -> str:
    known = [value for _, value in rows if value is not None]
    if not known:
        return f"{name}: unknown"
    last = rows[-1][1]
    now = "unknown" if last is None else f"{last:,.5g}"
    return f"{name}: now {now}, between {min(known):,.5g} and {max(known):,.5g}"


def _mark(facts: StreamFacts, row: int, id_: StreamID, what: str) -> Options:
    name = f"{harmless(facts.groups[row].name)}, {what} {id_}"
    share = place(facts, id_)
    at: float = share
    if facts.first is not None and has_span(facts):
        first = facts.first.id.ms
        at = round(first + share * (facts.last_id.ms - first))
    return {"name": name, "value": [at, row], "share": share}


def _between_ends(facts: StreamFacts) -> Options:
    """The axis from the tail to the head: in time, if there is any between them."""
    if facts.first is None or not has_span(facts):
        return {**AXIS, "type": "value", "min": 0, "max": 1, "axisLabel": {"show": False}}
    return {
        **TIME_AXIS,
        "min": facts.first.id.ms,
        "max": facts.last_id.ms,
        "splitLine": {"show": True, "lineStyle": {"color": CHART_FAINT}},
    }
