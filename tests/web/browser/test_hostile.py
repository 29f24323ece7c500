"""Names, values and numbers of groups that nobody expects: every view shows them, and nothing runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.web.http.names import link
from tests.support.campaign import cells
from tests.support.servers.dashboard import Dashboard, running_dashboard
from tests.support.servers.penstock_server import running_penstock
from tests.web.browser.test_every_view import assert_fits
from tests.web.conftest import NO_UI, Visitor

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
expect.set_options(timeout=60_000)

MARKUP = b"<img src=x onerror=document.title='run'><script>document.title='run'</script>"
# A picture that cannot be shown fails after those of the page, whose errors would have run MARKUP.
NOTHING_RAN = """() => new Promise((done) => {
  const image = new Image();
  image.onerror = () => done(document.title != 'run');
  image.src = 'data:,';
})"""
NAMES = {
    b"a\nb\r\nc": "a\\nb\\r\\nc",
    "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd".encode(): "\\u202eright to left",
    b"\x00\xff\xfe": "\\x00\\xff\\xfe",
    MARKUP: "<img src=x",
    b"n" * 3000: "nnnnnnnn",
    b"../../?a=b&c#%00": "../../?a=b&c#%00",
    b" ": "",
    b"": "",
}
GROUPS = 300
FIELDS = 5000
HUGE_BYTES = 2 << 20
WORDS = [b"z" * HUGE_BYTES, b"[" * 100_000, b'{"a":' * 3000 + b"1" + b"}" * 3000, b'{"n":1e999}']


def fill(client: Any) -> None:
    pipeline = client.pipeline(transaction=False)
    for name in NAMES:
        fields = (b"f\n", b"v\x00\xff", b"", b"", MARKUP, MARKUP)
        for _ in range(3):
            pipeline.execute_command("XADD", name, "*", *fields)
        pipeline.execute_command("XGROUP", "CREATE", name, name, "0")
        words = ("GROUP", name, name, "COUNT", 2, "STREAMS", name, ">")
        pipeline.execute_command("XREADGROUP", *words)
    for number, word in enumerate(WORDS):
        pipeline.execute_command("XADD", f"huge:{number}", "*", "value", word)
    wide = [part for number in range(FIELDS) for part in (f"field{number}", number)]
    pipeline.execute_command("XADD", "wide", "*", *wide)
    pipeline.execute_command("XADD", "crowd", "*", "n", 1)
    for number in range(GROUPS):
        pipeline.execute_command("XGROUP", "CREATE", "crowd", f"g{number:04}", "$")
    pipeline.execute_command("XADD", "crowd", "*", "n", 2)
    pipeline.execute_command("SET", "text", "no stream")
    pipeline.execute()


@pytest.fixture(scope="module")
def hostile() -> Iterator[Dashboard]:
    pytest.importorskip("nicegui", reason=NO_UI)
    with running_penstock() as server:
        with server.client() as client:
            fill(client)
        with running_dashboard(f"redis://127.0.0.1:{server.port}") as found:
            yield found


@pytest.fixture
def looker(visitor: Visitor) -> Visitor:
    """A visitor whose console must stay empty."""
    visitor.page.on(
        "console",
        lambda said: visitor.problems.append(said.text) if said.type == "error" else None,
    )
    return visitor


@pytest.mark.parametrize("name", cells(list(NAMES)), ids=lambda name: repr(name[:12]))
def test_odd_names_and_values_are_shown_as_text(
    hostile: Dashboard, looker: Visitor, name: bytes
) -> None:
    views = {
        link("stream", name): "f\\n=v",
        link("groups", name): "What blocks trimming",
        link("group", name, group=name): "Pending entries",
        link("structure", name): "lp-count",
    }
    page = looker.page
    for path, text in views.items():
        looker.goto(hostile, f"/{path}")
        expect(page.locator(".view")).to_contain_text(text)
        expect(page.locator("[role=alert]")).to_be_hidden()
        expect(page.locator("body")).to_contain_text(NAMES[name])
        assert_fits(page)
        assert page.evaluate(NOTHING_RAN)


def test_a_list_of_odd_names_fits(hostile: Dashboard, looker: Visitor) -> None:
    page = looker.goto(hostile, "/streams")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        expect(page.locator(".view")).to_contain_text("\\x00\\xff\\xfe")
        assert_fits(page)
        lag = page.locator("tbody tr").first.get_by_role("cell").last
        expect(lag).to_be_visible()
        assert 0 < lag.evaluate("(cell) => cell.getBoundingClientRect().right") <= width


def test_huge_values_and_wide_entries_are_cut(hostile: Dashboard, looker: Visitor) -> None:
    page = looker.page
    for number in range(len(WORDS)):
        looker.goto(hostile, f"/stream?name=huge:{number}")
        page.locator("tbody button.open").click()
        expect(page.get_by_role("dialog")).to_contain_text("bytes")
    looker.goto(hostile, "/stream?name=wide")
    page.locator("tbody button.open").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("field99")


def test_of_hundreds_of_groups_some_are_shown_and_all_are_found(
    hostile: Dashboard, looker: Visitor
) -> None:
    page = looker.goto(hostile, "/groups?name=crowd")
    groups = page.get_by_role("table", name="groups", exact=True).locator("tbody tr")
    expect(groups).to_have_count(50)
    expect(page.locator(".view")).to_contain_text(f"50 of {GROUPS:,} groups with the largest lags")
    page.get_by_label("Search groups").fill("g0042")
    expect(groups).to_have_count(1)
    page.wait_for_url(re.compile("search=g0042"))
    page.get_by_role("table", name="groups", exact=True).get_by_role("link", name="g0042").click()
    expect(page.locator(".view")).to_contain_text("No consumer has read yet")


def test_a_key_of_another_type_is_named(hostile: Dashboard, looker: Visitor) -> None:
    for view in ("stream", "groups", "structure", "retention"):
        page = looker.goto(hostile, f"/{view}?name=text")
        expect(page.locator("[role=alert]")).to_contain_text("holds a")
