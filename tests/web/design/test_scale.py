"""Spacing and type come from the scale. Only hairlines and what is drawn have sizes of their own."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.web import charts
from penstock.web.design import scale
from penstock.web.design.style import page_css
from penstock.web.model.structure import Window, tree_options

PAGES = Path(scale.__file__).parent.parent
HAIRLINE_MAX = 2
_SPACED = re.compile(r"(?:padding|margin|gap|font(?:-size)?)(?:-\w+)?: ?([^;}]*)")


def test_spaces_and_sizes_of_text_are_those_of_the_scale() -> None:
    sources = [path for path in PAGES.rglob("*") if path.suffix in (".py", ".js")]
    found = [
        f"{path.name}: {declaration[0]}"
        for path in sources
        for declaration in _SPACED.finditer(path.read_text())
        for size in re.findall(r"(\d+)px", declaration[1])
        if int(size) > HAIRLINE_MAX
    ]
    assert found == []


def test_charts_have_the_font_and_a_size_of_the_page() -> None:
    assert re.search(rf"font: .*{scale.FONT}", page_css())
    text = charts.lines("lag", [])["textStyle"]
    assert (text["fontFamily"], text["fontSize"] in scale.TYPES) == (scale.FONT, True)
    label = tree_options(Window([], 0, None, []), {})["series"][0]["label"]
    assert (label["fontFamily"], label["fontSize"] in scale.TYPES) == (scale.MONO, True)


def test_every_variable_of_the_scale_that_is_used_exists() -> None:
    used = set(re.findall(r"var\(--([st]\d)\)", page_css()))
    known = {f"s{place}" for place in range(1, len(scale.SPACES) + 1)}
    known |= {f"t{place}" for place in range(1, len(scale.TYPES) + 1)}
    assert used <= known
