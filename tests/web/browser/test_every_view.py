"""Every view at two widths, in light and dark: one combination in `make test`, all in soak."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.web.design import colours
from tests.support.campaign import cells
from tests.support.servers.dashboard import Dashboard
from tests.support.servers.penstock_server import PenstockServer
from tests.web.browser.accessible import check_with_axe, colours_of
from tests.web.conftest import SharedDashboard, Visitor
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
# As a viewer sees them, with a server that is down.
SHARED_VIEWS = {
    "/servers": "1 of 2 servers does not answer",
    "/at/prod/overview": "Key figures",
    "/at/prod/stream?name=orders": "sku=A",
    "/at/prod/group?name=orders&group=packers": "ann",
    "/at/down/streams": "cannot reach",
}
COMBINATIONS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
# A line needs two samples.
HAS_LINES = """() => [...document.querySelectorAll('.nicegui-echart')].some((one) => {
  const series = getElement(Number(one.id.slice(1)))?.chart?.getOption()?.series ?? [];
  return series.length == 3 && series.every((line) => line.type == 'line' && line.data.length >= 2);
})"""
HAS_MARKS = """() => [...document.querySelectorAll('.nicegui-echart')].some((one) => {
  const series = getElement(Number(one.id.slice(1)))?.chart?.getOption()?.series ?? [];
  return series.length == 2 && series.every((marks) => marks.type == 'scatter' && marks.data.length);
})"""
# Texts of charts, with their boxes. Those that are clipped, as in a legend to scroll, are left out.
TEXTS = """() => [...document.querySelectorAll('.nicegui-echart')].flatMap((one) => {
  const chart = getElement(Number(one.id.slice(1)))?.chart;
  const shown = chart?.getZr().storage.getDisplayList(true) ?? [];
  return shown.filter((text) => text.type == 'tspan' && text.style.text && !text.ignore && !text.invisible
    && !text.__clipPaths?.length).map((text) => {
      const box = text.getBoundingRect().clone();
      if (text.transform) box.applyTransform(text.transform);
      return { text: text.style.text, chart: one.id, x: box.x, y: box.y, w: box.width, h: box.height };
    });
})"""
HAS_LABELS = f"() => ({TEXTS})().length > 2"
OVERLAPS = f"""() => {{
  const texts = ({TEXTS})(), found = [];
  texts.forEach((a, at) => texts.slice(at + 1).forEach((b) => {{
    const wide = Math.min(a.x + a.w, b.x + b.w) - Math.max(a.x, b.x);
    const high = Math.min(a.y + a.h, b.y + b.h) - Math.max(a.y, b.y);
    if (a.chart == b.chart && wide > 1 && high > 2) found.push([a.text, b.text]);
  }}));
  return found;
}}"""
PAINT_SECONDS_MAX = 30.0
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
    assert_fits(page)
    check_with_axe(page)


def assert_fits(page: Any) -> None:
    """The page does not scroll sideways."""
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0


@pytest.mark.parametrize("path", SHARED_VIEWS)
def test_views_of_several_servers_are_accessible_and_fit(
    shared_dashboard: SharedDashboard, looker: Visitor, path: str
) -> None:
    page = shared_dashboard.log_in(looker, shared_dashboard.viewer, path)
    expect(page.locator("body")).to_contain_text(SHARED_VIEWS[path])
    assert_fits(page)
    check_with_axe(page)


def test_pages_without_scripts_are_accessible_and_fit(
    shared_dashboard: SharedDashboard, visitor: Visitor
) -> None:
    page = visitor.page
    for width, scheme in COMBINATIONS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        visitor.page.context.clear_cookies()
        page.goto(f"{shared_dashboard.address}/login")
        expect(page.get_by_role("heading")).to_have_text("Log in")
        assert_fits(page)
        check_with_axe(page)
        shared_dashboard.log_in(visitor, shared_dashboard.viewer, "/servers")
        page.goto(f"{shared_dashboard.address}/no-such-page")
        expect(page.get_by_role("heading")).to_have_text("Page not found")
        assert_fits(page)
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
    wait_until_drawn(page, chart, colours.CHART_SERIES[:3])


def test_marks_of_positions_have_contrast(
    dashboard: Dashboard, looker: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.delete("marked")
        for number in range(9):
            client.xadd("marked", {"n": number}, id=f"{1000 * number + 1}-0")
        client.xgroup_create("marked", "g", id="0")
        client.xreadgroup("g", "c", {"marked": ">"}, count=5)
    page = looker.goto(dashboard, "/groups?name=marked")
    chart = page.locator(".card").filter(has=page.get_by_role("heading", name="Positions"))
    chart.scroll_into_view_if_needed()
    page.wait_for_function(HAS_MARKS)
    wait_until_drawn(page, chart, colours.CHART_SERIES[:2])


def test_lines_of_pipelines_have_contrast(
    dashboard: Dashboard, looker: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        last = client.xinfo_stream("penstock:metrics")["last-generated-id"]
        newest = int(last.split(b"-")[0])
        for number in range(6):
            for place, query in enumerate(("main", "by_minute", "by_day")):
                told = {"pipeline": "drawn", "output": query, "query": query, "rows": 10}
                told |= {"batch": number, "seconds": 0.2 + place / 3, "lag": 10 * place + 5}
                told |= {"rows_per_second": 100 * place + 20 * number + 50}
                client.xadd("penstock:metrics", told, id=f"{newest + 900 * number + 9}-{place}")
    page = looker.goto(dashboard, "/pipeline?only=drawn")
    chart = page.locator(".card").filter(has=page.get_by_role("heading", name="Rows per second"))
    chart.scroll_into_view_if_needed()
    page.wait_for_function(HAS_LINES)
    wait_until_drawn(page, chart, colours.CHART_SERIES[:3])


def test_lines_of_the_tree_have_contrast(dashboard: Dashboard, looker: Visitor) -> None:
    page = looker.goto(dashboard, "/structure?name=orders")
    tree = page.get_by_role("group", name="radix tree")
    expect(tree.locator("canvas")).to_be_visible()
    wait_until_drawn(page, tree, [colours.CHART_EDGE])


def wait_until_drawn(page: Any, element: Any, wanted: Sequence[str]) -> None:
    """Wait until each colour is on the screen, with enough contrast to the background there.

    Nothing tells when a canvas is painted, so its pixels are read again and again.
    """
    expected = [colours.turned(one) if is_dark(page) else one for one in wanted]
    deadline = time.monotonic() + PAINT_SECONDS_MAX
    while True:
        shown = colours_of(page, element)
        near = [[one for one in shown if distance(one, colour) <= NEAR] for colour in expected]
        if all(near):
            break
        assert time.monotonic() < deadline, f"{expected} are not among {shown[:20]}"
    for found in near:
        assert contrast(found[0], shown[0]) >= GRAPHICS_MIN


@pytest.mark.parametrize("path", ["/groups?name=orders", "/pipeline", "/structure?name=orders"])
def test_labels_of_charts_do_not_overlap(dashboard: Dashboard, looker: Visitor, path: str) -> None:
    page = looker.goto(dashboard, path)
    expect(page.locator(".view")).to_contain_text(VIEWS.get(path, ""))
    page.wait_for_function(HAS_LABELS)
    assert page.evaluate(OVERLAPS) == []


def test_dialogs_are_accessible_and_fit(
    writing_dashboard: Dashboard, looker: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.delete("opened")
        client.xadd("opened", {"sku": "A1", "body": '{"a": [1, 2]}', "raw": b"\x00"}, id="1-0")
    page = looker.goto(writing_dashboard, "/stream?name=opened")
    # Quasar gives the text of a button the z-index 0. axe then looks for its background behind the dialog.
    page.add_style_tag(content=".q-btn__content { z-index: auto !important }")

    def check(title: str) -> None:
        expect(page.get_by_role("dialog")).to_have_count(1)
        expect(page.get_by_role("dialog", name=title)).to_be_visible()
        assert_fits(page)
        check_with_axe(page)

    page.get_by_role("button", name="1-0").click()
    check("Entry 1-0")
    page.get_by_role("button", name="Edit and resend").click()
    check("Edit and resend")
    page.get_by_role("button", name="Preview").click()
    check("Resend the entry")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    for button in ("Add an entry", "Trim", "Export", "Columns"):
        page.get_by_role("button", name=button).click()
        check(button)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_long_texts_in_cards_end_in_an_ellipsis(
    dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.delete("long")
        client.xadd("long", {"n": 1})
        client.xgroup_create("long", "group" * 100, id="0")
    visitor.page.set_viewport_size({"width": 390, "height": 900})
    page = visitor.goto(dashboard, "/groups?name=long")
    link = page.get_by_role("table", name="groups", exact=True).get_by_role("link")
    expect(link).to_be_visible()
    cell = link.locator("xpath=..")
    height, whole, clamp = cell.evaluate(
        "(cell) => [cell.clientHeight, cell.scrollHeight, getComputedStyle(cell).webkitLineClamp]"
    )
    assert height < 100 < whole
    assert clamp != "none"


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
