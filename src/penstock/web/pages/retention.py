"""/retention: what a retention rule would remove from a stream now. Nothing is changed."""

from __future__ import annotations

from nicegui import ui

from penstock.client.retention import DIRECTIVE, RetentionEffect
from penstock.core.stream_id import parse
from penstock.human.show import harmless, quoted, size_text, time_text
from penstock.web.board import Board
from penstock.web.elements.frame import PageFrame, heading, show_url
from penstock.web.elements.parts import part, tools
from penstock.web.http.address import QueryReader
from penstock.web.http.names import link
from penstock.web.model.facts import one_stream
from penstock.web.model.retention import (
    YES_OR_NO,
    RetentionRule,
    effect_of,
    parse_rule,
    pattern_of,
    rule_of_server,
)
from penstock.web.refusal import Refused

REFRESH_SECONDS = 5.0
# The options with a value: name, label and an example.
BOXES = (
    ("age", "older than, as 7d", "7d"),
    ("length", "beyond this many entries", "100000"),
    ("bytes", "beyond this size, as 64mb", "64mb"),
    ("idle-group", "ignoring groups idle for, as 30d", "30d"),
)
CHECKS = (
    ("acked", "acknowledged by every group"),
    ("force", "also what a group still needs"),
)
NOTHING_TO_TRY = "Give a limit, or choose entries that every group has acknowledged."


class EffectBar:
    """What a rule removes, as a sentence, a bar and facts."""

    def __init__(self) -> None:
        self._text = ui.label().classes("wrap")
        with ui.element("div").classes("share").props('aria-hidden="true"') as self._bar:
            self._gone = ui.element("div").classes("share-gone")
        self._facts = ui.label().classes("muted wrap")
        self._holder = ui.link("", "")
        self._bar.set_visibility(False)
        self._holder.set_visibility(False)

    def show(self, stream: bytes, effect: RetentionEffect) -> None:
        share = effect.removed_entries / effect.length if effect.length else 0.0
        self._text.set_text(effect_text(effect))
        self._bar.set_visibility(effect.length > 0)
        self._gone.style(f"width: {share:.2%}")
        self._facts.set_text(kept_text(effect))
        self._holder.set_visibility(effect.held_by is not None)
        if effect.held_by is not None:
            self._holder.set_text(f"Group {quoted(effect.held_by)} needs the next entries.")
            self._holder.props(f'href="{link("group", stream, group=effect.held_by)}"')

    def say(self, text: str) -> None:
        """Show a text in place of an effect."""
        self._text.set_text(text)
        self._facts.set_text("")
        self._bar.set_visibility(False)
        self._holder.set_visibility(False)


class RetentionView:
    """The rule of the server, and a rule to try. The rule is in the URL."""

    def __init__(self, frame: PageFrame, name: bytes, rule: RetentionRule) -> None:
        self._frame = frame
        self._server = frame.board.server
        self._name = name
        with frame.content:
            with ui.element("div").classes("card part"):
                heading("The rule of the server")
                self._own = ui.label().classes("mono wrap")
                self._own_effect = EffectBar()
            with ui.element("div").classes("card part"):
                heading("Try a rule")
                ui.label("Removes entries that are").classes("muted")
                self._build_form(rule)
                self._effect = EffectBar()
                self._line = ui.label().classes("mono wrap")
            with part():
                ui.label(
                    "Nothing is changed here. The server removes whole nodes, so up to a node of entries"
                    " (100) stays that a rule would let go. To use a rule, add it to the setting"
                    f" {DIRECTIVE}; CONFIG SET replaces all rules."
                ).classes("muted small wrap")

    def _build_form(self, rule: RetentionRule) -> None:
        with tools():
            self._boxes = {}
            for name, label, example in BOXES:
                box = ui.input(label, placeholder=example, value=rule.options.get(name, ""))
                box.props("dense outlined clearable debounce=400 spellcheck=false")
                box.style("min-width: 15rem")  # the labels are long
                box.on_value_change(self._changed)
                self._boxes[name] = box
        with tools():
            self._checks = {
                name: ui.checkbox(label, value=rule.options.get(name) == "yes")
                for name, label in CHECKS
            }
            for check in self._checks.values():
                check.props("dense").on_value_change(self._changed)

    def _given(self) -> str:
        words = [
            word
            for name, box in self._boxes.items()
            if (box.value or "").strip()
            for word in (name, box.value.strip())
        ]
        return " ".join(
            [*words, *(f"{name} yes" for name in YES_OR_NO if self._checks[name].value)]
        )

    async def refresh(self) -> None:
        """Ask the server again, for both rules."""
        await one_stream(self._server, self._name)
        try:
            await self._show_own()
        except (
            Refused
        ) as error:  # the server has no retention, or the user may not see its settings
            self._own.set_visibility(False)
            self._own_effect.say(harmless(str(error)))
        await self._try()

    async def _show_own(self) -> None:
        own = await rule_of_server(self._server, self._name)
        if own is None:
            self._own.set_visibility(False)
            self._own_effect.say(
                f"No rule of {DIRECTIVE} matches this stream. The server never trims it."
            )
        else:
            self._own.set_text(" ".join(own.words))
            self._own.set_visibility(True)
            self._own_effect.show(self._name, await effect_of(self._server, self._name, own))

    async def _try(self) -> None:
        try:
            line = await self._show_effect()
        except Refused as error:
            line = ""
            self._effect.say(harmless(str(error)))
        self._line.set_text(line)

    async def _show_effect(self) -> str:
        """Show what the given rule removes; returns the line for the setting."""
        rule = parse_rule(self._given())
        if not rule.words:
            self._effect.say(NOTHING_TO_TRY)
            return ""
        self._effect.show(self._name, await effect_of(self._server, self._name, rule))
        return line_of(self._name, rule)

    async def _changed(self) -> None:
        await self._frame.attempt(self._try)
        show_url(link("retention", self._name, rule=self._given()))


def line_of(name: bytes, rule: RetentionRule) -> str:
    """The rule as the setting takes it, or why it cannot."""
    try:
        return f"{DIRECTIVE} {pattern_of(name)} {' '.join(rule.words)}"
    except Refused as error:
        return str(error)


def effect_text(effect: RetentionEffect) -> str:
    """One sentence about what a rule removes."""
    if not effect.removed_entries:
        return f"Removes nothing of {effect.length:,} entries now."
    return (
        f"Removes {effect.removed_entries:,} of {effect.length:,} entries now,"
        f" {size_text(effect.removed_bytes)} of {size_text(effect.size_bytes)}."
    )


def kept_text(effect: RetentionEffect) -> str:
    """Which entries stay."""
    if effect.first_kept is None:
        return ""
    id_ = parse(effect.first_kept)
    return f"Entries from {id_} ({time_text(id_.ms)}) on stay."


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/retention")
    async def retention(name: str | None = None, rule: str = "") -> None:
        query = QueryReader()
        key = query.name(name)
        tried = query.rule("rule", rule)
        frame = PageFrame(board, f"Retention of {harmless(key)}", "retention", key)
        frame.warn_about(query, link("retention", key))
        view = RetentionView(frame, key, tried)
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)
