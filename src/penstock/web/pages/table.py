"""Tables with the semantics of tables, and rows that stay the same elements when others change.

That is why they are a component of their own (table.js). Cells drawn by templates of NiceGUI's are made anew
with every update of a page, twice a second at times, and whoever works by keys loses the place each time.

A cell's value is text or a number, {"text", "href"} for a link, {"text", "open"} for a button that opens
the row ("open" tells where: in a "dialog" or "below"), or {"points", "text"} for a sparkline. All of it is
put in as text, never as markup. Columns that sort do so on our side: a heading is a button that names its
column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nicegui.element import Element

TableRow = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A column: what it is called in a row, and over it."""

    name: str
    label: str
    numeric: bool = False
    sorts: bool = False
    wraps: bool = False


class TableElement(Element, component="table.js"):
    """What the browser shows."""

    def send(self, **properties: object) -> None:
        self._props.update(properties)
        self.update()


class DataTable:
    """A table whose rows are given to it, each with a `key`; it does not sort, filter or page by itself."""

    def __init__(self, columns: list[DataColumn], label: str, chooses: bool = False) -> None:
        self._columns = columns
        self._rows: list[TableRow] = []
        self.chosen: list[str] = []
        self.element = TableElement().classes("full-width")
        self.element.send(label=label, chooses=chooses, rows=[], columns=self._told())
        self.element.on("choose", lambda event: self._choose(event.args))

    def show(self, rows: list[TableRow]) -> None:
        """Replace the rows; nothing is sent if they are the same."""
        if rows != self._rows:
            self._rows = rows
            self.element.send(rows=rows)
            self._choose(self.chosen)

    def choose_none(self) -> None:
        """What was chosen is done with."""
        self.element.run_method("chooseNone")
        self.chosen = []

    def mark_sorted(self, name: str, descending: bool) -> None:
        """Show which column the rows are sorted by."""
        self.element.send(columns=self._told(name, "descending" if descending else "ascending"))

    def on_open(self, act: Callable[[str], Any]) -> None:
        """Call `act` with the key of the row whose {"open"} cell was used."""
        self.element.on("open", lambda event: act(str(event.args)))

    def on_sort(self, act: Callable[[str], Any]) -> None:
        """Call `act` with the name of the column whose heading was used."""
        self.element.on("sort-by", lambda event: act(str(event.args)))

    def _choose(self, keys: object) -> None:
        """Of what a browser names only what is shown: the rows may have changed while it told."""
        self.chosen = shown_keys(keys, self._rows)

    def _told(self, sorted_by: str = "", direction: str = "") -> list[dict[str, Any]]:
        """The columns as the component takes them."""
        return [
            {
                "name": column.name,
                "label": column.label,
                "align": "text-right" if column.numeric else "text-left",
                "sorts": column.sorts,
                "wraps": column.wraps,
                "sorted": direction if column.name == sorted_by else None,
            }
            for column in self._columns
        ]


def shown_keys(keys: object, rows: list[TableRow]) -> list[str]:
    """Those of the keys that a row has; none where there is no list of keys."""
    if not isinstance(keys, list):
        return []
    shown = {row["key"] for row in rows}
    return [key for key in keys if isinstance(key, str) and key in shown]
