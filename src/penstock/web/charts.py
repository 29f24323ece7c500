"""The options of charts, as ECharts takes them: plain dicts, so that tests can look at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.stream_id import StreamID
from penstock.human.show import harmless, time_text
from penstock.web.facts import StreamFacts
from penstock.web.groups import Pending, place
from penstock.web.history import Sample

Options = dict[str, Any]
Line = tuple[str, list[tuple[float, float | None]]]

GREY = "#888888"  # legible on light and on dark
FAINT = {"lineStyle": {"color": "rgba(128,128,128,0.3)"}}
AXIS: Options = {"axisLabel": {"color": GREY}, "splitLine": FAINT, "axisLine": FAINT}


def lines(title: str, series: Sequence[Line], unit: str = "") -> Options:
    """Numbers over time; the moments are seconds since 1970."""
    return {
        "animation": False,
        "textStyle": {"color": GREY},
        "title": {"text": title, "left": 0, "textStyle": {"fontSize": 13, "color": GREY}},
        "aria": {"enabled": True},
        "grid": {"left": 60, "right": 16, "top": 48, "bottom": 24},
        "legend": {"top": 22, "type": "scroll", "textStyle": {"color": GREY}},
        "tooltip": {"trigger": "axis"},
        "xAxis": {"type": "time", **AXIS, "axisLabel": {"hideOverlap": True, "color": GREY}},
        "yAxis": {"type": "value", "min": 0, "name": unit, **AXIS},
        "series": [
            {
                "type": "line",
                "name": name,
                "showSymbol": len(rows) == 1,
                "step": "end",
                "data": [[at * 1000, value] for at, value in rows],
            }
            for name, rows in series
        ],
    }


def history(title: str, groups: dict[bytes, list[Sample]], pending: bool) -> Options:
    """Lag or pending of groups over time; a gap where the lag was not known."""
    return lines(
        title,
        [
            (
                harmless(name),
                [(sample.at, sample.pending if pending else sample.lag) for sample in samples],
            )
            for name, samples in groups.items()
        ],
        "entries",
    )


def timeline(facts: StreamFacts, oldest: dict[bytes, Pending]) -> Options:
    """Every group on a line between the stream's tail and head: where it is, and its oldest pending entry."""
    names = [harmless(group.name) for group in facts.groups]
    positions = [
        _mark(facts, group.last_id, row, "position") for row, group in enumerate(facts.groups)
    ]
    stuck = [
        _mark(facts, oldest[group.name].id, row, "oldest pending")
        for row, group in enumerate(facts.groups)
        if group.name in oldest
    ]
    ends = ["" if end is None else time_text(end.id.ms) for end in (facts.first, facts.last)]
    return {
        "animation": False,
        "aria": {"enabled": True},
        "textStyle": {"color": GREY},
        "grid": {"left": 110, "right": 30, "top": 40, "bottom": 40},
        "legend": {"top": 0, "textStyle": {"color": GREY}},
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        "xAxis": {
            **AXIS,
            "type": "value",
            "min": 0,
            "max": 1,
            "name": f"tail {ends[0]}    to    head {ends[1]}",
            "nameLocation": "middle",
            "nameGap": 8,
            "axisLabel": {"show": False},
        },
        "yAxis": {
            **AXIS,
            "type": "category",
            "data": names,
            "axisLabel": {"width": 100, "overflow": "truncate", "color": GREY},
        },
        "series": [
            {
                "type": "scatter",
                "name": "position",
                "symbol": "pin",
                "symbolSize": 22,
                "data": positions,
            },
            {"type": "scatter", "name": "oldest pending", "symbol": "diamond", "data": stuck},
        ],
    }


def _mark(facts: StreamFacts, id_: StreamID, row: int, what: str) -> Options:
    return {"name": f"{what} {id_}", "value": [place(facts, id_), row]}
