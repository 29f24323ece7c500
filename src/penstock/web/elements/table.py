"""Accessible tables whose rows keep their elements when other rows change.

They are a custom component (table.js). NiceGUI's table templates recreate cells with every update, up to
twice a second, and keyboard users lose the focus each time.

A cell is text or a number, {"text", "href"} for a link, {"text", "open"} for a button that opens the row
("open" is where: in a "dialog" or "below"), {"points", "text"} for a sparkline, or {"text", "heat"}
for a step of a heat map. Text and links may have a "level" (see watch/thresholds). Values are inserted as
text, never as markup. On narrow screens a row is a card. Sorting happens on the server: a heading is
a button that sends the name of its column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nicegui.element import Element

TableRow = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A column: `name` is its key in a row, `label` its heading."""

    name: str
    label: str
    numeric: bool = False
    sorts: bool = False
    wraps: bool = False
    wide: bool = (
        False  # on a narrow screen: two thirds of a card; if it wraps too, all of it, with a label
    )


class TableElement(Element, component="table.js"):
    """The element in the browser."""

    def send(self, **properties: object) -> None:
        self._props.update(properties)
        self.update()


class DataTable:
    """A table. The caller sorts, filters and pages the rows; each row has a `key`."""

    def __init__(
        self, columns: list[DataColumn], label: str, chooses: bool = False, empty: str = "None."
    ) -> None:
        self._columns = columns
        self._rows: list[TableRow] | None = (
            None  # the table says "Loading" until the first rows arrive
        )
        self.chosen: list[str] = []
        self.element = TableElement().classes("full-width")
        self.element.send(
            label=label, chooses=chooses, rows=None, columns=self._column_props(), empty=empty
        )
        self.element.on("choose", lambda event: self._choose(event.args))

    def show(self, rows: list[TableRow]) -> None:
        """Replace the rows. Nothing is sent if they are the same."""
        if rows != self._rows:
            self._rows = rows
            self.element.send(rows=rows)
            self._choose(self.chosen)

    def show_columns(self, columns: list[DataColumn]) -> None:
        """Replace the columns."""
        if columns != self._columns:
            self._columns = columns
            self.element.send(columns=self._column_props())

    def choose_none(self) -> None:
        """Clear the selection."""
        self.element.run_method("chooseNone")
        self.chosen = []

    def mark_sorted(self, name: str, descending: bool) -> None:
        """Show which column the rows are sorted by."""
        self.element.send(
            columns=self._column_props(name, "descending" if descending else "ascending")
        )

    def on_open(self, act: Callable[[str], Any]) -> None:
        """Call `act` with the key of a row when its {"open"} cell is clicked."""
        self.element.on("open", lambda event: act(str(event.args)))

    def on_sort(self, act: Callable[[str], Any]) -> None:
        """Call `act` with the name of a column when its heading is clicked."""
        self.element.on("sort-by", lambda event: act(str(event.args)))

    def _choose(self, keys: object) -> None:
        """Select rows. Keys that are not shown are ignored, because rows may have changed in the meantime."""
        self.chosen = shown_keys(keys, self._rows or [])

    def _column_props(self, sorted_by: str = "", direction: str = "") -> list[dict[str, Any]]:
        """The columns as the component expects them."""
        return [
            {
                "name": column.name,
                "label": column.label,
                "align": "text-right" if column.numeric else "text-left",
                "sorts": column.sorts,
                "wraps": column.wraps,
                "wide": column.wide,
                "sorted": direction if column.name == sorted_by else None,
            }
            for column in self._columns
        ]


def shown_keys(keys: object, rows: list[TableRow]) -> list[str]:
    """The keys that belong to a row. Empty if `keys` is not a list."""
    if not isinstance(keys, list):
        return []
    shown = {row["key"] for row in rows}
    return [key for key in keys if isinstance(key, str) and key in shown]
