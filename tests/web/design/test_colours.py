"""Texts have a contrast of 4.5 to 1 with their background, graphics 3 to 1, as WCAG AA requires."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.web.design import colours
from tests.web.design.contrast import GRAPHICS_MIN, TEXT_MIN, contrast, mixed

FOCUSED = (
    0.15  # the share of a button's own colour in the background that Quasar gives it with the focus
)
PAGES = Path(colours.__file__).parent.parent


def pairs() -> Iterator[tuple[str, str, str]]:
    for theme in (colours.LIGHT, colours.DARK):
        for name in colours.WRITTEN:
            for ground in (theme[ground] for ground in colours.GROUNDS):
                yield name, theme[name], ground
        for name in ("link", "primary"):
            for ground in (theme["ground"], theme["card"]):
                yield f"{name}, focused", theme[name], mixed(theme[name], ground, FOCUSED)
    for ground in (
        colours.WRITES,
        colours.UNREACHABLE,
        colours.DONE,
        colours.APPLY,
        colours.NOTICE,
    ):
        yield "white", colours.ON_BAR, ground
    for kind, ground in colours.PIECES.items():
        yield f"bytes: {kind}", colours.PIECE_TEXT, ground
    for ground in colours.HEAT:
        yield "heat", colours.HEAT_TEXT, ground
    for text in (colours.CHART_TEXT, colours.CHART_LINK):
        yield "chart", text, colours.LIGHT["card"]
        yield "chart on dark", colours.turned(text), colours.DARK["card"]


def drawn() -> Iterator[tuple[str, str, str]]:
    for theme in (colours.LIGHT, colours.DARK):
        for name in colours.DRAWN:
            for ground in (theme["ground"], theme["card"]):
                yield name, theme[name], ground
    for line in (*colours.CHART_SERIES, colours.CHART_EDGE):
        yield "chart", line, colours.LIGHT["card"]
        yield "chart on dark", colours.turned(line), colours.DARK["card"]


@pytest.mark.parametrize(("name", "text", "ground"), list(pairs()))
def test_text_has_enough_contrast(name: str, text: str, ground: str) -> None:
    assert contrast(text, ground) >= TEXT_MIN, f"{name}: {text} on {ground}"


@pytest.mark.parametrize(("name", "line", "ground"), list(drawn()))
def test_graphics_have_enough_contrast(name: str, line: str, ground: str) -> None:
    assert contrast(line, ground) >= GRAPHICS_MIN, f"{name}: {line} on {ground}"


def test_contrast_is_what_wcag_computes() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_no_colour_is_defined_elsewhere() -> None:
    found = [
        f"{path.name}: {word}"
        for path in sorted(PAGES.rglob("*.py"))
        if path.name != "colours.py"
        for word in re.findall(
            r"(?<!-)color: ?#\w+|\"color\": \"#\w+|text-(?:red|orange)\S*", path.read_text()
        )
    ]
    assert found == []
