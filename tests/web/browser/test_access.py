"""The dashboard by keyboard, and with wrong URLs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.servers.dashboard import Dashboard
from tests.support.servers.penstock_server import PenstockServer
from tests.web.conftest import Visitor
from tests.web.many_entries import FIRST_MS, STEP_MS

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
expect.set_options(timeout=60_000)


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_a_dialog_takes_the_focus_and_returns_it(
    writing_dashboard: Dashboard, visitor: Visitor
) -> None:
    page = visitor.goto(writing_dashboard, "/stream?name=sensors")
    opener = page.locator("tbody button.open").first
    opener.focus()
    press(page, "Enter")
    dialog = page.get_by_role("dialog", name=re.compile("^Entry "))
    expect(dialog).to_be_visible()
    expect(dialog.locator(":focus")).to_have_count(1)
    press(page, "Escape")
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()
    trim = page.get_by_role("button", name="Trim")
    trim.focus()
    press(page, "Enter")
    expect(page.get_by_label("an id, a time")).to_be_focused()
    page.get_by_role("button", name="Preview").focus()
    press(page, "Enter")
    page.get_by_role("button", name="Apply").wait_for()
    expect(page.get_by_role("button", name="Cancel").last).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(trim).to_be_focused()


def test_a_table_update_keeps_the_focus(
    dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    page = visitor.goto(dashboard, "/streams?search=live")
    link = page.get_by_role("link", name="live", exact=True)
    link.focus()
    with filled.client() as client:
        client.xadd("live", {"n": "1"})
        length = client.xlen("live")
    expect(page.get_by_role("row").filter(has=link)).to_contain_text(f"{length}")
    expect(link).to_be_focused()


def test_a_node_and_its_bytes_are_reached_by_keys(dashboard: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(dashboard, "/structure?name=orders")
    page.get_by_role("table", name="nodes").locator("button.open").nth(1).focus()
    press(page, "Enter")
    title = page.get_by_role("heading", name=f"node {FIRST_MS + 100 * STEP_MS}-0")
    expect(title).to_be_focused()
    press(page, "Tab", "ArrowRight", "ArrowRight")
    expect(page.locator(".bytes .p:focus")).to_have_count(1)
    expect(page.locator(".piece-title")).to_contain_text("offset 4")
    press(page, "ArrowLeft")
    expect(page.locator(".piece-title")).to_contain_text("offset 0")


@pytest.mark.parametrize(
    ("path", "said", "way_out"),
    [
        ("/streams?page=x&sort=colour", "page=x in the URL is not a number.", "/streams"),
        ("/stream?name=live&tail=often", "tail=often", "/stream?name=live"),
        ("/group?name=orders&group=packers&at=now", "at=now", "/group?name=orders&group=packers"),
        ("/structure", "names no stream", "/streams"),
    ],
)
def test_a_wrong_parameter_is_reported_on_the_page(
    dashboard: Dashboard, visitor: Visitor, path: str, said: str, way_out: str
) -> None:
    page = visitor.goto(dashboard, path)
    expect(page.locator(".warning").first).to_contain_text(said)
    page.locator(".view").get_by_role(
        "link", name=re.compile("Correct the URL|All streams")
    ).click()
    page.wait_for_url(f"**{way_out}")
    expect(page.get_by_text("in the URL is not")).to_have_count(0)


def test_an_unknown_path_has_a_page(dashboard: Dashboard, visitor: Visitor) -> None:
    answer = visitor.page.goto(f"{dashboard.address}/orders<b>")
    assert answer.status == 404
    expect(visitor.page.get_by_role("heading")).to_have_text("Page not found")
    visitor.page.get_by_role("link", name="All streams").click()
    expect(visitor.page.get_by_role("link", name="orders", exact=True)).to_be_visible()
