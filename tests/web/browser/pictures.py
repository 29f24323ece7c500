"""Takes the screenshots of the docs: `pytest tests/web/browser/pictures.py`. Look at each one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.dashboard import Dashboard, running_dashboard
from tests.support.servers.penstock_server import running_penstock
from tests.support.source_tree import ROOT
from tests.web.browser.shop import Shop
from tests.web.conftest import NO_UI, Visitor

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
expect.set_options(timeout=60_000)

IMAGES = ROOT / "docs" / "images"
WARM_UP_SECONDS = 90  # until the lines of the key figures are long enough
PAINT_SECONDS = 3  # until charts follow the size


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard of a shop that has been running for a while."""
    pytest.importorskip("nicegui", reason=NO_UI)
    data = tmp_path_factory.mktemp("pictures") / "data"
    with (
        running_penstock(data=data) as server,
        server.client() as client,
        Shop(client) as open_shop,
    ):
        open_shop.wait_until_steady()  # its first seconds would look like an incident
        with running_dashboard(f"redis://127.0.0.1:{server.port}") as found:
            yield found


def picture(page: Any, name: str, height: int, width: int = 1280) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(1000 * PAINT_SECONDS)
    page.screenshot(path=IMAGES / f"{name}.png")


def test_pictures(shop: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(shop, "/pipeline?only=orders")
    page.wait_for_timeout(1000 * WARM_UP_SECONDS)
    expect(page.locator(".flow")).to_contain_text("revenue_by_minute")
    picture(page, "pipeline", 900)
    visitor.goto(shop, "/groups?name=invoices")
    expect(page.locator("tbody").first).to_contain_text("audit")
    picture(page, "groups", 1120)
    page.emulate_media(color_scheme="dark")
    picture(page, "groups-dark", 1120)
    page.emulate_media(color_scheme="light")
    visitor.goto(shop, "/streams?sort=-length")
    expect(page.locator("tbody")).to_contain_text("clicks")
    picture(page, "streams", 560)
    visitor.goto(shop, "/structure?name=sensors")
    expect(page.locator(".bytes li.deleted")).to_have_count(2)
    picture(page, "structure", 1230)
    visitor.goto(shop, "/stream?name=checkout")
    page.locator("tbody button.open").nth(3).click()
    page.get_by_role("dialog").wait_for()
    picture(page, "entry", 640)
    visitor.goto(shop, "/overview")
    rate_out = page.locator(".figure").filter(has_text="Entries out")
    expect(rate_out).to_contain_text(re.compile(r"\d+/s"))
    picture(page, "overview", 900)
    picture(page, "overview-narrow", 1000, width=390)
    assert Path(IMAGES, "overview.png").stat().st_size > 10_000
