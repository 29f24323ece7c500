"""Checks that a page works with a screen reader, without a mouse, and for eyes that need contrast."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

# In Chromium's accessibility tree: `- button "Next"`. An element without a name has no quotes.
_NAMELESS = re.compile(
    r"- (button|link|textbox|searchbox|spinbutton|checkbox|radio|switch|table|dialog|img)(?= \[|:|$)"
)
# The number of pixels of each colour in a picture, most frequent first.
_COUNT_COLOURS = """async (picture) => {
  const image = new Image();
  image.src = 'data:image/png;base64,' + picture;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 400).map(([pixel, count]) =>
    ['#' + [0, 8, 16].map((at) => ((pixel >>> at) & 255).toString(16).padStart(2, '0')).join(''), count]);
}"""


def check_can_be_used_without_eyes(page: Any) -> None:
    """Every control has a name, and the page has a title, a language and a heading."""
    lines = page.locator("body").aria_snapshot().splitlines()
    nameless = [line.strip() for line in lines if _NAMELESS.match(line.strip())]
    assert nameless == [], f"{nameless} of {page.url}"
    assert re.search(r"\w - penstock$", page.title())
    assert page.locator("html").get_attribute("lang") == "en-US"
    assert page.locator("main .view").count() == 1
    assert page.locator("[aria-level='1']").count() == 1


def check_with_axe(page: Any) -> None:
    """axe-core finds no violation of WCAG A and AA, and no bad practice."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    # A dialog that fades in has less contrast until it is there.
    page.wait_for_function("!document.querySelector('[class*=-enter-active]')")
    page.evaluate(Path(axe.__file__).with_name("axe.min.js").read_text())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    told = [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found]
    assert told == [], f"{told} of {page.url}"


def colours_of(page: Any, element: Any, pixels_min: int = 20) -> list[str]:
    """The colours that an element shows, most frequent first. The first is its background."""
    picture = base64.b64encode(element.screenshot()).decode()
    counted = page.evaluate(_COUNT_COLOURS, picture)
    return [colour for colour, count in counted if count >= pixels_min]
