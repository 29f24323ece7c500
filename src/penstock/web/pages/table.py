"""Tables with the semantics of tables, on Quasar's, which keeps what has focus when rows change.

A cell's value is text or a number, {"text", "href"} for a link, {"text", "open"} for a button that opens
the row, or {"points", "text"} for a sparkline. All of it is put in as text, never as markup. Columns that
sort do so on our side: a heading is a button that names its column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nicegui import ui

TableRow = dict[str, Any]

_CELL = """
<q-td :props="props">
  <button v-if="props.value && props.value.open" class="open" aria-haspopup="dialog"
    @click="() => $parent.$emit('open', props.row.key)">{{ props.value.text }}</button>
  <template v-else-if="props.value && props.value.href">
    <a :href="props.value.href">{{ props.value.text }}</a></template>
  <template v-else-if="props.value && props.value.points !== undefined">
    <svg width="100" height="20" viewBox="0 -1 100 22" role="img" :aria-label="props.value.text">
      <polyline :points="props.value.points" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>
  </template>
  <template v-else>{{ props.value && props.value.text !== undefined ? props.value.text : props.value }}
  </template>
</q-td>
"""

_HEAD = """
<q-th :props="props" scope="col" :aria-sort="props.col.sorted || undefined">
  <button v-if="props.col.sorts" class="sort" @click="() => $parent.$emit('sort-by', props.col.name)">
    {{ props.col.label }}{{ props.col.sorted == 'ascending' ? ' ▲' : props.col.sorted ? ' ▼' : '' }}</button>
  <template v-else>{{ props.col.label }}</template>
</q-th>
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: what it is called in a row, and over it."""

    name: str
    label: str
    numeric: bool = False
    sorts: bool = False
    wraps: bool = False


class DataTable:
    """A table whose rows are given to it; it does not sort, filter or page by itself."""

    def __init__(
        self, columns: list[Column], label: str, key: str = "key", selection: str | None = None
    ) -> None:
        self._columns = columns
        self.element = ui.table(
            columns=[_quasar(column) for column in columns],
            rows=[],
            row_key=key,
            selection=selection,  # type: ignore[arg-type]
            pagination={"rowsPerPage": 0},
        )
        self.element.props(f'flat bordered dense hide-pagination aria-label="{label}"')
        self.element.props('no-data-label="nothing here" table-class="data"')
        self.element.classes("full-width")
        self.element.add_slot("body-cell", _CELL)
        self.element.add_slot("header-cell", _HEAD)

    def show(self, rows: list[TableRow]) -> None:
        """Replace the rows; nothing is sent if they are the same."""
        if rows != self.element.rows:
            self.element.rows = rows

    @property
    def selected(self) -> list[TableRow]:
        return list(self.element.selected)

    def mark_sorted(self, name: str, descending: bool) -> None:
        """Show which column the rows are sorted by."""
        direction = "descending" if descending else "ascending"
        self.element.columns = [
            _quasar(column) | ({"sorted": direction} if column.name == name else {})
            for column in self._columns
        ]

    def on_open(self, act: Callable[[str], Any]) -> None:
        """Call `act` with the key of the row whose {"open"} cell was used."""
        self.element.on("open", lambda event: act(str(event.args)))

    def on_sort(self, act: Callable[[str], Any]) -> None:
        """Call `act` with the name of the column whose heading was used."""
        self.element.on("sort-by", lambda event: act(str(event.args)))


def _quasar(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "label": column.label,
        "field": column.name,
        "align": "right" if column.numeric else "left",
        "sorts": column.sorts,
        "classes": "wrap" if column.wraps else "",
    }
