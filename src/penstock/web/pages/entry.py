"""The dialog that shows an entry, and the one that edits and resends it."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from penstock.client.replies import Entry
from penstock.human.show import Fields, entry_json, harmless, time_text
from penstock.web.changes.resend import plan_resend
from penstock.web.elements.dialogs import Done, answer_buttons, propose, titled_dialog
from penstock.web.elements.frame import PageFrame, attribute
from penstock.web.http.names import name_text, parse_name
from penstock.web.model.json_tree import json_tree_or_none
from penstock.web.model.values import hex_view, json_view_or_none, value_text
from penstock.web.pages.entry_form import EntryForm

FIELDS_SHOWN = 100
TREE = "tree"


def show_entry(frame: PageFrame, stream: bytes, entry: Entry, done: Done) -> None:
    """Show an entry: each value as text, as JSON if it is JSON, and as hex."""

    async def resend() -> None:
        dialog.close()
        with frame.content:  # not in this dialog, which is being deleted
            await edit_and_resend(frame, stream, entry, done)

    with titled_dialog(frame, f"Entry {entry.id}", wide=True, closes=True) as dialog:
        ui.label(time_text(entry.id.ms)).classes("muted")
        _FieldList(entry.fields)
        with ui.row():
            _copy_button("Copy id", lambda: str(entry.id), text=True)
            _copy_button(
                "Copy as JSON", lambda: entry_json(stream, entry.id, entry.fields), text=True
            )
            if frame.may_change:
                ui.button("Edit and resend", icon="edit", on_click=resend).props("flat no-caps")
    dialog.open()


async def edit_and_resend(frame: PageFrame, stream: bytes, entry: Entry, done: Done) -> None:
    """Let the user edit the fields, and propose to add them as a new entry."""
    with titled_dialog(frame, "Edit and resend", wide=True) as dialog:
        ui.label(f"Adds a copy of {entry.id}. The original is not changed.").classes("muted wrap")
        target = ui.input("target stream", value=name_text(stream))
        target.props("dense outlined autofocus")
        id_ = ui.input("id", value="*").props("dense outlined")
        form = EntryForm(entry.fields)
        answer_buttons(dialog, "Preview", lambda: (target.value, id_.value.strip(), form.read()))
    given = await dialog
    if given is not None:
        name, new_id, fields = given
        server = frame.board.server
        await propose(frame, lambda: plan_resend(server, parse_name(name), fields, new_id), done)


class _FieldList:
    """The first fields and a button for more, because a browser needs seconds for a thousand fields."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._shown = 0
        self._column = ui.column().classes("full-width gap-2")
        self._more = ui.button(on_click=self._show_more).props("flat no-caps")
        self._show_more()

    def _show_more(self) -> None:
        with self._column:
            for name, value in self._fields[self._shown : self._shown + FIELDS_SHOWN]:
                _show_field(name, value)
        self._shown = min(self._shown + FIELDS_SHOWN, len(self._fields))
        left = len(self._fields) - self._shown
        self._more.set_text(f"Show more ({left:,} of {len(self._fields):,} fields not shown)")
        self._more.set_visibility(left > 0)


def _show_field(name: bytes, value: bytes) -> None:
    views: dict[str, Callable[[], str]] = {
        "text": lambda: value_text(value),
        "hex": lambda: hex_view(value),
    }
    as_json, tree = json_view_or_none(value), json_tree_or_none(value)
    if as_json is not None:
        views = {"JSON": lambda: as_json} | views
    names = [TREE, *views] if tree is not None else list(views)
    with ui.column().classes("full-width gap-0"):
        with ui.row().classes("items-center gap-2 full-width"):
            ui.label(harmless(name)).classes("text-weight-bold mono wrap")
            ui.label(f"{len(value):,} bytes").classes("muted small")
            ui.space()
            choice = ui.toggle(names, value=names[0]).props("dense flat no-caps size=12px")
            choice.props(f'role="group" aria-label="view of {attribute(harmless(name))}"')
            _copy_button(f"copy {harmless(name)}", views["text"])
        # json_tree_or_none escapes all stored data.
        branches = ui.html(tree or "", sanitize=False).classes("full-width mono")
        with ui.element("pre").classes("mono wrap q-ma-none q-pa-xs full-width") as box:
            shown = ui.label().classes("wrap").style("white-space: pre-wrap")

        def show(view: str) -> None:
            branches.set_visibility(view == TREE)
            box.set_visibility(view != TREE)
            if view != TREE:
                shown.set_text(views[view]())

        show(names[0])
        choice.on_value_change(lambda event: show(event.value))


def _copy_button(label: str, data: Callable[[], str], text: bool = False) -> None:
    def copy() -> None:
        ui.clipboard.write(data())
        ui.notify("copied", position="bottom")

    button = ui.button(label if text else "", icon="content_copy", on_click=copy)
    button.props(f'flat dense no-caps {"" if text else "size=sm"} aria-label="{attribute(label)}"')
