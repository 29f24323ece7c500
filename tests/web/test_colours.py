"""Every text has a contrast of 4.5 to 1 with its background, as WCAG AA requires."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.web import colours

CONTRAST_MIN = 4.5
FOCUSED = (
    0.15  # the share of a button's own colour in the background that Quasar gives it with the focus
)
PAGES = Path(colours.__file__).parent


def channels(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def luminance(colour: str) -> float:
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in channels(colour)
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(text: str, ground: str) -> float:
    dark, light = sorted((luminance(text), luminance(ground)))
    return (light + 0.05) / (dark + 0.05)


def mixed(colour: str, ground: str, share: float) -> str:
    parts = zip(channels(colour), channels(ground), strict=True)
    return "#" + "".join(f"{round(255 * (a * share + b * (1 - share))):02x}" for a, b in parts)


def pairs() -> Iterator[tuple[str, str, str]]:
    for theme in (colours.LIGHT, colours.DARK):
        for name in colours.WRITTEN:
            for ground in (theme["ground"], theme["card"]):
                yield name, theme[name], ground
                yield f"{name}, focused", theme[name], mixed(theme[name], ground, FOCUSED)
    for ground in (colours.BAR, colours.WRITES, colours.UNREACHABLE, colours.DONE, colours.APPLY):
        yield "white", colours.ON_BAR, ground
    for kind, ground in colours.PIECES.items():
        yield f"bytes: {kind}", colours.PIECE_TEXT, ground
    for text in (colours.CHART_TEXT, colours.CHART_LINK):
        yield "chart", text, colours.LIGHT["ground"]
        # Inverted: grey stays grey, and a colour keeps about the contrast of its grey.
        turned = mixed("#ffffff", "#000000", 1 - luminance(text) ** (1 / 2.4))
        yield "chart on dark", turned, colours.DARK["ground"]


@pytest.mark.parametrize(("name", "text", "ground"), list(pairs()))
def test_text_has_enough_contrast(name: str, text: str, ground: str) -> None:
    assert contrast(text, ground) >= CONTRAST_MIN, f"{name}: {text} on {ground}"


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
