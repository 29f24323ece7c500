"""The dialog that sends rejects back to a stream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nicegui import ui

from penstock.web.changes.resend import Reject, plan_redrive
from penstock.web.elements.dialogs import Done, answer_buttons, propose, tell, titled_dialog
from penstock.web.elements.frame import PageFrame
from penstock.web.http.names import parse_name

Find = Callable[[], Awaitable[Sequence[Reject]]]


async def redrive(frame: PageFrame, find: Find, done: Done) -> None:
    """Ask for the target, and propose to send the rejects there."""
    chosen: list[Reject] = []

    async def read() -> None:
        chosen.extend(await find())

    if not await frame.attempt(read):
        return
    if not chosen:
        tell("no entry is selected", good=False)
        return
    with titled_dialog(frame, "Redrive selected") as dialog:
        target = ui.input("target stream (empty: the original stream of each)")
        target.props("dense outlined autofocus").classes("full-width")
        delete = ui.checkbox("delete the rejects afterwards")
        answer_buttons(dialog, "Preview", lambda: (target.value, delete.value))
    given = await dialog
    if given is not None:
        server = frame.board.server
        to = parse_name(given[0] or "")
        await propose(frame, lambda: plan_redrive(server, chosen, to, given[1]), done)
