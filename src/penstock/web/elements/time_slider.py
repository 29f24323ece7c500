"""A slider between the times of a stream's first and last entry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui
from nicegui.events import GenericEventArguments

from penstock.core.stream_id import StreamID
from penstock.human.show import time_text
from penstock.web.model.facts import StreamFacts
from penstock.web.model.time_line import STEPS, has_span, id_at, step_of

THROTTLE_SECONDS = 0.1

Pick = Callable[[int], Awaitable[None]]


class TimeSlider:
    """Shows where the page is, and calls `pick` with a step when the user lets go."""

    def __init__(self, pick: Pick) -> None:
        self._pick = pick
        self._facts: StreamFacts | None = None
        self._shown = (
            -1
        )  # the step of the page, so that a refresh does not move a slider that is dragged
        with ui.element("div").classes("time-slider") as self._box:
            self._first = ui.label().classes("muted small")
            self._slider = ui.slider(min=0, max=STEPS, value=STEPS)
            self._slider.props('label aria-label="time of the first entry shown"')
            self._last = ui.label().classes("muted small text-right")
        # Quasar sends `change` when the user lets go, and update:model-value meanwhile.
        self._slider.on("change", self._picked)
        self._slider.on("update:model-value", self._moved, throttle=THROTTLE_SECONDS)
        self._box.set_visibility(False)

    def show(self, facts: StreamFacts, shown: StreamID | None) -> None:
        """Show the span of the stream, and the first entry of the page in it."""
        self._facts = facts
        self._box.set_visibility(has_span(facts))
        if facts.first is None:
            return
        self._first.set_text(time_text(facts.first.id.ms))
        self._last.set_text(time_text(facts.last_id.ms))
        step = STEPS if shown is None else step_of(facts, shown)
        if self._shown != step:
            self._shown = step
            self._slider.set_value(step)
            self._label(step)

    def _label(self, step: int) -> None:
        at = None if self._facts is None else id_at(self._facts, step)
        if at is not None:
            text = time_text(at.ms)
            self._slider.props(f'label-value="{text}" aria-valuetext="{text}"')

    def _moved(self, event: GenericEventArguments) -> None:
        self._label(_step(event.args))

    async def _picked(self, event: GenericEventArguments) -> None:
        self._shown = -1
        await self._pick(_step(event.args))


def _step(sent: object) -> int:
    """The step that the browser sent, which may be anything."""
    return min(max(int(sent), 0), STEPS) if isinstance(sent, int | float) else STEPS
