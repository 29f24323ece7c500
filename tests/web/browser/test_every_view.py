"""Every view at two widths, in light and dark: one combination in `make test`, all in soak."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.web.design import colours
from tests.support.campaign import cells
from tests.support.servers.dashboard import Dashboard
from tests.support.servers.penstock_server import PenstockServer
from tests.web.browser.accessible import check_with_axe, colours_of
from tests.web.conftest import Visitor
from tests.web.design.contrast import GRAPHICS_MIN, contrast, distance

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

VIEWS = {
    "/overview": "Key figures",
    "/streams": "orders",
    "/stream?name=orders": "sku=A",
    "/groups?name=orders": "What blocks trimming",
    "/group?name=orders&group=packers": "ann",
    "/retention?name=orders&rule=length%201000": "Removes",
    "/structure?name=evil": "lp-count",  # a short one: axe looks at every piece
    "/pipeline": "silver",
    "/workers": "card declined",
    "/replication": "primary",
    "/clients": "clients",
    "/slowlog": "slowlog-log-slower-than",
    "/configuration": "maxclients",
}
COMBINATIONS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
# A line needs two samples.
HAS_LINES = """() => [...document.querySelectorAll('.nicegui-echart')].some((one) => {
  const series = getElement(Number(one.id.slice(1)))?.chart?.getOption()?.series ?? [];
  return series.length == 3 && series.every((line) => line.type == 'line' && line.data.length >= 2);
})"""
NEAR = 24  # of a colour's three channels together; the edges of lines are blended


@pytest.fixture(params=cells(COMBINATIONS), ids=str)
def looker(request: pytest.FixtureRequest, visitor: Visitor) -> Visitor:
    """A visitor with a screen of some width, in light or dark, whose console must stay empty."""
    width, scheme = request.param
    visitor.page.set_viewport_size({"width": width, "height": 900})
    visitor.page.emulate_media(color_scheme=scheme)
    visitor.page.on(
        "console",
        lambda said: visitor.problems.append(said.text) if said.type == "error" else None,
    )
    return visitor


def is_dark(page: Any) -> bool:
    return bool(page.evaluate("document.body.classList.contains('body--dark')"))


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_is_accessible_and_fits(
    writing_dashboard: Dashboard, looker: Visitor, path: str
) -> None:
    page = looker.goto(writing_dashboard, path)
    expect(page.locator(".view")).to_contain_text(VIEWS[path])
    expect(page.locator(".loading")).to_have_count(0)
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0
    check_with_axe(page)


def test_rows_of_entries_are_low(dashboard: Dashboard, looker: Visitor) -> None:
    page = looker.goto(dashboard, "/stream?name=orders")
    expect(page.locator("tbody tr")).to_have_count(50)
    heights = page.evaluate(
        "[...document.querySelectorAll('tbody tr')].map((row) => row.offsetHeight)"
    )
    assert max(heights) <= 160


def test_the_lag_of_a_stream_is_on_the_screen(dashboard: Dashboard, looker: Visitor) -> None:
    page = looker.goto(dashboard, "/streams?search=orders")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="orders", exact=True))
    lag = row.get_by_role("cell").last
    expect(lag).to_be_visible()
    box = lag.bounding_box()
    assert box["x"] + box["width"] <= page.viewport_size["width"]


def test_lines_of_charts_have_contrast(
    dashboard: Dashboard, looker: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.delete("drawn")
        for number in range(3):
            for _ in range(40):
                client.xadd("drawn", {"n": number})
            client.xgroup_create("drawn", f"g{number}", id="0")
            client.xreadgroup(f"g{number}", "c", {"drawn": ">"}, count=10 + 30 * number)
    page = looker.goto(dashboard, "/groups?name=drawn")
    chart = page.locator(".card").filter(has=page.get_by_text("Pending (entries)"))
    chart.scroll_into_view_if_needed()
    expect(chart.locator("canvas")).to_be_visible()
    page.wait_for_function("() => document.querySelector('.view').innerText.includes('g2')")
    page.wait_for_function(HAS_LINES)
    page.wait_for_timeout(300)  # the pixels of a canvas cannot be waited for
    shown = colours_of(page, chart)
    check_is_drawn(shown, colours.CHART_SERIES[:3], is_dark(page))


def test_lines_of_the_tree_have_contrast(dashboard: Dashboard, looker: Visitor) -> None:
    page = looker.goto(dashboard, "/structure?name=orders")
    tree = page.get_by_role("group", name="radix tree")
    expect(tree.locator("canvas")).to_be_visible()
    page.wait_for_timeout(500)  # until the canvas is painted
    shown = colours_of(page, tree)
    check_is_drawn(shown, [colours.CHART_EDGE], is_dark(page))


def check_is_drawn(shown: list[str], wanted: Any, dark: bool) -> None:
    """Each colour is on the screen, with enough contrast to the background there."""
    ground = shown[0]
    for colour in wanted:
        expected = colours.turned(colour) if dark else colour
        near = [one for one in shown if distance(one, expected) <= NEAR]
        assert near, f"{expected} is not among {shown[:20]}"
        assert contrast(near[0], ground) >= GRAPHICS_MIN


def test_the_help_lists_the_keys_of_the_page(dashboard: Dashboard, looker: Visitor) -> None:
    page = looker.goto(dashboard, "/stream?name=orders")
    expect(page.locator("tbody tr")).to_have_count(50)
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard help")
    expect(dialog).to_contain_text("next page")
    check_with_axe(page)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.keyboard.press("o")
    page.wait_for_url("**/overview")
