"""Dialogs: how they are made, one that asks for words, and the one that asks before a change.

A dialog has a name for those who do not see it, takes the focus, and gives it back to where it was. That is
why it is deleted only when it is hidden: one that is gone cannot give anything back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from nicegui import ui

from penstock.client.replies import UnexpectedReply
from penstock.human.show import harmless
from penstock.web.changes.entry_changes import Change, carry_out
from penstock.web.pages.frame import PageFrame, attribute, heading
from penstock.web.refusal import Refused
from penstock.web.server.asking import Away

Done = Callable[[], Awaitable[None]]


def tell(text: str, good: bool = True) -> None:
    """A word at the edge of the page that goes away by itself."""
    kind = "positive" if good else "negative"
    ui.notify(harmless(text), type=kind, position="bottom", close_button="close")  # type: ignore[arg-type]


@contextmanager
def titled_dialog(frame: PageFrame, title: str, wide: bool = False) -> Iterator[ui.dialog]:
    """A dialog to fill; it is opened by `await` or `open`."""
    classes = "asking gap-2 full-width" if wide else "asking gap-2"
    with frame.content, ui.dialog() as dialog, ui.card().classes(classes):
        dialog.props(f'aria-label="{attribute(title)}"').on("hide", dialog.delete)
        heading(title, "text-h6 wrap")
        yield dialog


def answer_buttons(dialog: ui.dialog, text: str, answer: Callable[[], object]) -> None:
    """Cancel, which is None, and the button that submits what was entered."""
    with ui.row().classes("self-end"):
        ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat no-caps")
        ui.button(text, on_click=lambda: dialog.submit(answer())).props("outline no-caps")


async def ask_for(frame: PageFrame, title: str, *boxes: tuple[str, str]) -> list[str] | None:
    """What is typed into boxes, each given as its label and what stands in it; None if it was cancelled."""
    with titled_dialog(frame, title) as dialog:
        made = [ui.input(label, value=value) for label, value in boxes]

        def answer() -> list[str]:
            return [box.value.strip() for box in made]

        for box in made:
            box.props("dense outlined").classes("full-width")
            box.on("keydown.enter", lambda: dialog.submit(answer()))
        made[0].props("autofocus")
        answer_buttons(dialog, "Show what it does", answer)
    given: list[str] | None = await dialog
    return given


async def propose(frame: PageFrame, plan: Callable[[], Awaitable[Change]], done: Done) -> None:
    """Plan a change, show it, and carry it out if that is what is wanted."""
    try:
        change = await plan()
    except (Refused, UnexpectedReply, Away, ValueError) as error:
        tell(str(error), good=False)
        return
    with titled_dialog(frame, change.title) as dialog:
        _describe(change)
        with ui.row().classes("self-end"):
            leave = "Cancel" if change.commands else "Close"
            ui.button(leave, on_click=lambda: dialog.submit(False)).props("flat autofocus")
            if change.commands:
                ui.button("Do it", color="negative", on_click=lambda: dialog.submit(True))
    if await dialog:
        await _carry_out(frame, change)
        await frame.attempt(done)


def _describe(change: Change) -> None:
    for effect in change.effects:
        ui.label(effect).classes("wrap")
    for warning in change.warnings:
        ui.label(f"Mind: {warning}").classes("wrap mind")
    if not change.commands:
        return
    ui.label("What is sent:").classes("muted")
    with ui.element("pre").classes("mono wrap q-ma-none"):
        for line in change.command_lines:
            ui.label(line).classes("wrap")


async def _carry_out(frame: PageFrame, change: Change) -> None:
    try:
        replies = await carry_out(frame.board.server, change)
    except (Refused, UnexpectedReply, Away) as error:
        tell(str(error), good=False)
        return
    shown = ", ".join(_reply_text(reply) for reply in replies)
    tell(f"{change.title}: the server answered {shown}")


def _reply_text(reply: object) -> str:
    if isinstance(reply, bytes):
        return harmless(reply)
    return f"{len(reply)} elements" if isinstance(reply, list) else str(reply)
