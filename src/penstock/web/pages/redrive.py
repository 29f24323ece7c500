"""A dialog that asks where rejects go, before they are sent back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nicegui import ui

from penstock.web.changes.resend import Reject, plan_redrive
from penstock.web.http.names import parse_name
from penstock.web.pages.dialogs import Done, answer_buttons, propose, tell, titled_dialog
from penstock.web.pages.frame import PageFrame

Find = Callable[[], Awaitable[Sequence[Reject]]]


async def redrive(frame: PageFrame, find: Find, done: Done) -> None:
    """Ask, and propose to send rejects back."""
    chosen: list[Reject] = []

    async def read() -> None:
        chosen.extend(await find())

    if not await frame.attempt(read):
        return
    if not chosen:
        tell("no entry is chosen", good=False)
        return
    with titled_dialog(frame, "Redrive chosen") as dialog:
        target = ui.input("into which stream; empty: where each was first")
        target.props("dense outlined autofocus").classes("full-width")
        delete = ui.checkbox("delete the rejects when they are added")
        answer_buttons(dialog, "Show what is sent", lambda: (target.value, delete.value))
    given = await dialog
    if given is not None:
        server = frame.board.server
        to = parse_name(given[0] or "")
        await propose(frame, lambda: plan_redrive(server, chosen, to, given[1]), done)
