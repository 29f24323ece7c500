"""The dialog that chooses the columns of entries."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import ui

from penstock.human.show import harmless
from penstock.web.elements.dialogs import answer_buttons, titled_dialog
from penstock.web.elements.frame import PageFrame
from penstock.web.http.columns import COLUMNS_MAX

OFFERED_MAX = 60


async def choose_columns(
    frame: PageFrame, seen: Sequence[bytes], chosen: Sequence[bytes]
) -> list[bytes] | None:
    """Ask which fields get a column of their own. None if the user cancels."""
    offered = list(dict.fromkeys([*chosen, *seen]))[:OFFERED_MAX]
    with titled_dialog(frame, "Columns") as dialog:
        ui.label(
            f"Fields with their own column, at most {COLUMNS_MAX}. Without any, one column shows all fields."
        ).classes("muted wrap")
        boxes = {name: ui.checkbox(harmless(name), value=name in chosen) for name in offered}
        if not offered:
            ui.label("No fields are shown.")

        def answer() -> list[bytes]:
            return [name for name, box in boxes.items() if box.value][:COLUMNS_MAX]

        answer_buttons(dialog, "Show", answer)
    given: list[bytes] | None = await dialog
    return given
