"""Input boxes for the fields of an entry."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from penstock.human.show import Fields
from penstock.web.changes.editing import BOXES_MAX, Box, box_of

ESCAPED = ", \\xNN is a byte"


class EntryForm:
    """A row of two boxes for each field. Fields beyond BOXES_MAX cannot be edited."""

    def __init__(self, fields: Fields) -> None:
        self._rows: list[_FieldRow] = []
        self._rest = list(fields[BOXES_MAX:])
        self._made = 0
        self._column = ui.column().classes("full-width gap-2")
        for name, value in fields[:BOXES_MAX]:
            self._add_row(name, value)
        if self._rest:
            ui.label(f"{len(self._rest):,} more fields, which are sent unchanged")
        ui.button("Add a field", on_click=lambda: self._add_row(b"", b"")).props("flat no-caps")

    def read(self) -> list[tuple[bytes, bytes]]:
        """The edited fields."""
        return [row.read() for row in self._rows] + self._rest

    def _add_row(self, name: bytes, value: bytes) -> None:
        self._made += 1
        with self._column:
            self._rows.append(_FieldRow((name, value), self._made, self._remove))

    def _remove(self, row: _FieldRow) -> None:
        self._rows.remove(row)
        row.element.delete()


class _FieldRow:
    def __init__(
        self, field: tuple[bytes, bytes], number: int, remove: Callable[[_FieldRow], None]
    ) -> None:
        self._boxes = (box_of(field[0], one_line=True), box_of(field[1]))
        with ui.row().classes("full-width no-wrap items-start gap-2") as self.element:
            self._inputs = (
                _input(self._boxes[0], f"field {number}", ui.input).style("flex: 1"),
                _input(self._boxes[1], f"value {number}", ui.textarea).style("flex: 2"),
            )
            self._inputs[1].props("autogrow")
            ui.button(icon="delete", on_click=lambda: remove(self)).props(
                f'flat dense aria-label="remove field {number}"'
            )

    def read(self) -> tuple[bytes, bytes]:
        name, value = (
            box.read(made.value or "") for box, made in zip(self._boxes, self._inputs, strict=True)
        )
        return name, value


def _input(box: Box, label: str, kind: Callable[..., ui.input]) -> ui.input:
    if box.text is None:
        label += f": {len(box.data):,} bytes, sent unchanged"
    made = kind(label + (ESCAPED if box.escaped else ""), value=box.text or "")
    made.props("dense outlined spellcheck=false autocapitalize=off")
    made.set_enabled(box.text is not None)
    return made
