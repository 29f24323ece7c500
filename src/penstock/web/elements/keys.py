"""The keys of a page, and the dialog that lists them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui
from nicegui.events import KeyboardModifiers, KeyEventArguments

KeyAct = Callable[[], Awaitable[None] | None]

HELP_KEY = "?"


class PageKeys:
    """Keys that act anywhere on the page, except in text boxes."""

    def __init__(self) -> None:
        self._acts: dict[str, tuple[str, KeyAct]] = {}
        self._dialog: ui.dialog | None = None
        self.add(HELP_KEY, "show this help", self.show_help)
        # In a text box every key is text.
        ui.keyboard(on_key=self._pressed, ignore=["input", "select", "textarea"])

    def add(self, key: str, meaning: str, act: KeyAct) -> None:
        self._acts[key] = (meaning, act)

    def show_help(self) -> None:
        """List the keys."""
        if self._dialog is not None:
            return
        with ui.dialog() as dialog, ui.card().classes("asking"):
            dialog.props('aria-label="Keyboard help"')
            ui.label("Keys").classes("title").props('role="heading" aria-level="2"')
            with ui.element("dl").classes("keys"):
                for key, (meaning, _) in self._acts.items():
                    with ui.element("dt"), ui.element("kbd"):
                        ui.label(key)
                    with ui.element("dd"):
                        ui.label(meaning)
            ui.button("Close", on_click=dialog.close).props("flat no-caps autofocus").classes(
                "self-end"
            )
        self._dialog = dialog
        dialog.on("hide", self._hidden)
        dialog.open()

    def _hidden(self) -> None:
        if self._dialog is not None:
            self._dialog.delete()
            self._dialog = None

    async def _pressed(self, event: KeyEventArguments) -> None:
        if not event.action.keydown or event.action.repeat or _is_command(event.modifiers):
            return
        found = self._acts.get(str(event.key))
        if found is not None:
            done = found[1]()
            if done is not None:
                await done


def _is_command(held: KeyboardModifiers) -> bool:
    """Whether a modifier makes the key a shortcut of the browser."""
    return held.ctrl or held.alt or held.meta
