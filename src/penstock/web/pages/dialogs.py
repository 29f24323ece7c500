"""Dialogs: one that asks before a change, one that shows an entry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui

from penstock.human.show import entry_json, harmless, time_text
from penstock.web.asking import Away
from penstock.web.changes import Change, carry_out
from penstock.web.pages.frame import Frame
from penstock.web.replies import Entry, Refused, UnexpectedReply
from penstock.web.values import hex_view, json_view_or_none, value_text

Done = Callable[[], Awaitable[None]]


def tell(text: str, good: bool = True) -> None:
    """A word at the edge of the page that goes away by itself."""
    kind = "positive" if good else "negative"
    ui.notify(harmless(text), type=kind, position="bottom", close_button="close")  # type: ignore[arg-type]


async def propose(frame: Frame, plan: Callable[[], Awaitable[Change]], done: Done) -> None:
    """Plan a change, show it, and carry it out if that is what is wanted."""
    try:
        change = await plan()
    except (Refused, UnexpectedReply, Away, ValueError) as error:
        tell(str(error), good=False)
        return
    with frame.content, ui.dialog() as dialog, ui.card().classes("gap-2").style("min-width: 18rem"):
        _describe(change)
        with ui.row().classes("self-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("flat autofocus")
            ui.button("Do it", color="negative", on_click=lambda: dialog.submit(True))
    if await dialog:
        await _carry_out(frame, change)
        await frame.attempt(done)
    dialog.delete()


def _describe(change: Change) -> None:
    ui.label(change.title).classes("text-h6").props('role="heading" aria-level="2"')
    for effect in change.effects:
        ui.label(effect).classes("wrap")
    for warning in change.warnings:
        ui.label(f"Mind: {warning}").classes("wrap text-orange-9")
    ui.label("What is sent:").classes("muted")
    with ui.element("pre").classes("mono wrap q-ma-none"):
        for line in change.command_lines:
            ui.label(line).classes("wrap")


async def _carry_out(frame: Frame, change: Change) -> None:
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


def show_entry(frame: Frame, stream: bytes, entry: Entry) -> None:
    """All of an entry: each value as text, as JSON where it is JSON, and as bytes."""
    with frame.content, ui.dialog(value=True) as dialog, ui.card().classes("gap-2 full-width"):
        dialog.on("hide", dialog.delete)
        with ui.row().classes("items-center full-width no-wrap"):
            ui.label(str(entry.id)).classes("text-h6 mono wrap").props(
                'role="heading" aria-level="2"'
            )
            _copy_button("copy id", str(entry.id))
            ui.space()
            ui.button(icon="close", on_click=dialog.close).props('flat dense aria-label="close"')
        ui.label(time_text(entry.id.ms)).classes("muted")
        for name, value in entry.fields:
            _show_field(name, value)
        _copy_button("copy as JSON", entry_json(stream, entry.id, entry.fields), text=True)


def _show_field(name: bytes, value: bytes) -> None:
    as_json = json_view_or_none(value)
    views = {"text": value_text(value), "hex": hex_view(value)}
    if as_json is not None:
        views = {"JSON": as_json} | views
    first = next(iter(views))
    with ui.column().classes("full-width gap-0"):
        with ui.row().classes("items-center gap-2 full-width"):
            ui.label(harmless(name)).classes("text-weight-bold mono wrap")
            ui.label(f"{len(value):,} bytes").classes("muted text-caption")
            ui.space()
            choice = ui.toggle(list(views), value=first).props("dense flat no-caps size=sm")
            _copy_button(f"copy {harmless(name)}", value_text(value))
        with ui.element("pre").classes("mono wrap q-ma-none q-pa-xs full-width"):
            shown = ui.label(views[first]).classes("wrap").style("white-space: pre-wrap")
        choice.on_value_change(lambda event: shown.set_text(views[event.value]))


def _copy_button(label: str, data: str, text: bool = False) -> None:
    def copy() -> None:
        ui.clipboard.write(data)
        ui.notify("copied", position="bottom")

    button = ui.button(label if text else "", icon="content_copy", on_click=copy)
    button.props(f'flat dense no-caps size=sm aria-label="{_attribute(label)}"')


def _attribute(text: str) -> str:
    """Text inside the quotes of a prop; NiceGUI reads it as a shell would."""
    return text.replace("\\", "").replace('"', "'")
