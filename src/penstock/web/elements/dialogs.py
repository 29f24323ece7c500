"""Dialogs in general: for input, and to confirm a change.

A dialog has a label for screen readers, takes the focus, and returns it when closed. It is deleted only after
it is hidden, because a deleted dialog could not return the focus.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from nicegui import ui

from penstock.client.replies import UnexpectedReply
from penstock.human.show import harmless
from penstock.web.changes.entry_changes import Change, carry_out
from penstock.web.elements.frame import PageFrame, attribute, heading
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerUnreachable

Done = Callable[[], Awaitable[None]]


def tell(text: str, good: bool = True) -> None:
    """Show a notification that disappears by itself."""
    kind = "positive" if good else "negative"
    ui.notify(harmless(text), type=kind, position="bottom", close_button="close")  # type: ignore[arg-type]


@contextmanager
def titled_dialog(
    frame: PageFrame, title: str, wide: bool = False, closes: bool = False
) -> Iterator[ui.dialog]:
    """A dialog to be filled. `await` or `open` opens it. `closes`: with a button in its corner."""
    classes = "asking gap-2 full-width" if wide else "asking gap-2"
    with frame.content, ui.dialog() as dialog, ui.card().classes(classes):
        dialog.props(f'aria-label="{attribute(title)}"').on("hide", dialog.delete)
        with ui.row().classes("items-center full-width no-wrap"):
            heading(title, "title wrap")
            if closes:
                ui.space()
                close = ui.button(icon="close", on_click=dialog.close)
                close.props('flat dense round aria-label="close"')
        yield dialog


def answer_buttons(dialog: ui.dialog, text: str, answer: Callable[[], object]) -> None:
    """A button to cancel, which submits None, and one that submits `answer`."""
    with ui.row().classes("self-end"):
        ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat no-caps")
        ui.button(text, on_click=lambda: dialog.submit(answer())).props("outline no-caps")


async def ask_for(frame: PageFrame, title: str, *boxes: tuple[str, str]) -> list[str] | None:
    """Ask for text in boxes, each given by label and initial text. None if the user cancels."""
    with titled_dialog(frame, title) as dialog:
        made = [ui.input(label, value=value) for label, value in boxes]

        def answer() -> list[str]:
            return [box.value.strip() for box in made]

        for box in made:
            box.props("dense outlined").classes("full-width")
            box.on("keydown.enter", lambda: dialog.submit(answer()))
        made[0].props("autofocus")
        answer_buttons(dialog, "Preview", answer)
    given: list[str] | None = await dialog
    return given


async def propose(frame: PageFrame, plan: Callable[[], Awaitable[Change]], done: Done) -> None:
    """Plan a change, show it, and make it if the user confirms."""
    try:
        change = await plan()
    except (Refused, UnexpectedReply, ServerUnreachable, ValueError) as error:
        tell(str(error), good=False)
        return
    with titled_dialog(frame, change.title) as dialog:
        _describe(change)
        with ui.row().classes("self-end"):
            leave = "Cancel" if change.commands else "Close"
            ui.button(leave, on_click=lambda: dialog.submit(False)).props("flat autofocus")
            if change.commands:
                ui.button("Apply", color="negative", on_click=lambda: dialog.submit(True))
    if await dialog:
        await _carry_out(frame, change)
        await frame.attempt(done)


def _describe(change: Change) -> None:
    for effect in change.effects:
        ui.label(effect).classes("wrap")
    for warning in change.warnings:
        ui.label(f"Warning: {warning}").classes("wrap warning")
    if not change.commands:
        return
    ui.label("Commands:").classes("muted")
    with ui.element("pre").classes("mono wrap q-ma-none"):
        for line in change.command_lines:
            ui.label(line).classes("wrap")


async def _carry_out(frame: PageFrame, change: Change) -> None:
    try:
        replies = await carry_out(frame.board.server, frame.current_session(), change)
    except (Refused, UnexpectedReply, ServerUnreachable) as error:
        tell(str(error), good=False)
        return
    shown = ", ".join(_reply_text(reply) for reply in replies)
    tell(f"{change.title}: the server replied {shown}")


def _reply_text(reply: object) -> str:
    if isinstance(reply, bytes):
        return harmless(reply)
    return f"{len(reply)} elements" if isinstance(reply, list) else str(reply)
