"""Pipelines as flows, from their sources over their queries to their outputs. A custom component (flow.js).

Properties of a flow: name, href, state, level, error, error_level, sources, queries. A source has name, href
and facts; a query has name, state, level, edge (the text on the line that leads to it), facts and outputs; an
output has name, edge, text and level. A fact has name, text and level. Values are inserted as text, never as
markup.
"""

from __future__ import annotations

from typing import Any

from nicegui.element import Element

FlowCells = dict[str, Any]


class FlowElement(Element, component="flow.js"):
    """The element in the browser."""

    def __init__(self) -> None:
        super().__init__()
        self._flows: list[FlowCells] = []
        self._props["flows"] = []

    def show(self, flows: list[FlowCells]) -> None:
        """Replace the flows. Nothing is sent if they are the same."""
        if flows != self._flows:
            self._flows = flows
            self._props["flows"] = flows
            self.update()
