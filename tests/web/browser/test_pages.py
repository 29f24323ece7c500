"""Every view in a real browser, against a server with many entries.

Waits are for conditions, with generous limits: how long a view takes is the benchmark's business.
"""

from __future__ import annotations

import re
import signal
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from penstock.web.http.names import link
from tests.support.servers.dashboard import Dashboard, running_dashboard
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.web.browser.accessible import check_can_be_used_without_eyes
from tests.web.conftest import Visitor
from tests.web.many_entries import ENTRIES, FIRST_MS, LARGEST_ID, ODD_NAME, STEP_MS

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=60_000)

VIEWS = {
    "/overview": "Key figures",
    "/streams": "orders",
    "/stream?name=orders": f"{FIRST_MS + (ENTRIES - 1) * STEP_MS}-0",
    "/groups?name=orders": "What blocks trimming",
    "/group?name=orders&group=packers": "ann",
    "/structure?name=orders": "lp-count",
    "/retention?name=orders&rule=length%201000": "Removes",
    "/pipeline": "silver",
    "/workers": "card declined",
}


@pytest.mark.parametrize("path", VIEWS)
def test_every_page_loads_and_fits(dashboard: Dashboard, visitor: Visitor, path: str) -> None:
    page = visitor.goto(dashboard, path)
    expect(page.locator(".view")).to_contain_text(VIEWS[path])
    assert page.locator("table th[scope=col], .card").count() > 0
    expect(page.locator("[role=alert]")).to_be_hidden()
    check_can_be_used_without_eyes(page)
    page.set_viewport_size({"width": 390, "height": 844})
    root = "document.documentElement"  # no page is wider than a phone
    page.wait_for_function(f"{root}.scrollWidth == {root}.clientWidth")


def test_streams_are_searched_sorted_and_linked(dashboard: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(dashboard, "/streams")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="orders", exact=True))
    expect(row).to_contain_text(f"{ENTRIES - 1:,}")
    page.get_by_role("button", name="length").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("orders")
    page.wait_for_url(re.compile("sort=-length"))
    page.get_by_label("Search names").fill("rejected")
    expect(page.get_by_role("row")).to_have_count(2)
    page.wait_for_url(re.compile("search=rejected"))
    page.get_by_role("link", name="orders:rejected").click()
    expect(page.locator(".view")).to_contain_text("qty_positive")


def test_a_tail_shows_what_another_client_adds_until_it_is_paused(
    dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    page = visitor.goto(dashboard, "/stream?name=live")
    page.get_by_role("button", name="Tail").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    with filled.client() as client:
        client.xadd("live", {"from": "elsewhere"})
        expect(page.locator("tbody")).to_contain_text("from=elsewhere")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        client.xadd("live", {"while": "paused"})
        page.wait_for_timeout(1000)  # that nothing arrives cannot be waited for as a condition
        expect(page.locator("tbody")).not_to_contain_text("while=paused")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("tbody")).to_contain_text("while=paused")


def test_seeking_a_time_shows_its_first_entry(dashboard: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(dashboard, "/stream?name=orders")
    seek(page, "2023-11-14T22:15:00.001")
    wanted = FIRST_MS + 100_000 + STEP_MS  # the first multiple of the step after that time
    expect(first_id(page)).to_have_text(f"{wanted}-0")
    page.wait_for_url(re.compile("at="))
    address = page.url
    page.get_by_role("button", name="Next").click()
    expect(first_id(page)).to_have_text(f"{wanted + 50 * STEP_MS}-0")
    page.get_by_role("button", name="Previous").click()
    expect(first_id(page)).to_have_text(f"{wanted}-0")
    seek(page, "start")
    expect(first_id(page)).to_have_text(f"{FIRST_MS}-0")
    page.goto(address)
    expect(first_id(page)).to_have_text(f"{wanted}-0")
    seek(page, "yesterday")
    expect(page.get_by_text("is not a time")).to_be_visible()


def seek(page: Any, text: str) -> None:
    page.get_by_label("Go to").fill(text)
    page.get_by_label("Go to").press("Enter")


def first_id(page: Any) -> Any:
    return page.locator("tbody tr").first.locator("button.open")


def test_the_slider_jumps_to_a_moment(dashboard: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(dashboard, "/stream?name=orders")
    slider = page.get_by_role("slider", name="time of the first entry shown")
    expect(slider).to_have_attribute("aria-valuenow", "1000")
    slider.locator("[tabindex='0']").press("PageDown")
    expect(slider).to_have_attribute("aria-valuenow", "990")
    page.wait_for_url(re.compile("at="))
    expect(first_id(page)).to_have_text(f"{FIRST_MS + (ENTRIES - 1) * STEP_MS * 990 // 1000}-0")
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(slider).to_have_attribute("aria-valuenow", re.compile("^(49|50)"))
    middle = FIRST_MS + ENTRIES * STEP_MS // 2
    near = "|".join(str(moment)[:8] for moment in (middle - 10_000, middle))
    expect(first_id(page)).to_have_text(re.compile(f"^({near})"))


def test_a_retention_rule_is_tried(
    dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    page = visitor.goto(dashboard, "/retention?name=orders&rule=length%201000")
    expect(page.locator(".view")).to_contain_text("No rule of stream-retention matches")
    removed = f"Removes {ENTRIES - 1001:,} of {ENTRIES - 1:,} entries"
    expect(page.locator(".view")).to_contain_text(removed)
    page.get_by_role("checkbox", name="acknowledged by every group").click()
    expect(page.locator(".view")).to_contain_text("Removes nothing")
    expect(page.get_by_role("link", name="Group packers needs")).to_be_visible()
    page.wait_for_url(re.compile("acked"))
    expect(page.get_by_text("stream-retention orders length 1000 acked yes")).to_be_visible()
    page.get_by_label("beyond this many entries").fill("many")
    expect(page.locator(".view")).to_contain_text("length must be a number")
    with filled.client() as client:
        assert client.xlen("orders") == ENTRIES - 1


def test_pipelines_are_a_flow(
    dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    page = visitor.goto(dashboard, "/pipeline?only=shop")
    flow = page.get_by_role("group", name="pipeline shop")
    expect(flow.locator(".node")).to_have_count(5)
    expect(flow.locator(".node.source")).to_contain_text("orders")
    expect(flow.locator(".node.output").last.locator(".level.warn")).to_contain_text("3")
    with filled.client() as client:
        failed = {"pipeline": "shop", "output": "silver", "error": "disk full"}
        added = client.xadd("penstock:metrics", failed)
        expect(flow).to_contain_text("silver failed")
        expect(flow).to_contain_text("disk full")
        client.xdel("penstock:metrics", added)
        expect(flow).not_to_contain_text("disk full")
    flow.get_by_role("link", name="orders").click()
    page.wait_for_url("**/stream?name=orders")


def test_workers_are_shown_with_their_failures(dashboard: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(dashboard, "/workers")
    handlers = page.get_by_role("table", name="handlers")
    expect(handlers).to_contain_text("card declined")
    failing = page.get_by_role("table", name="entries that fail")
    expect(failing).to_contain_text("waits for its next attempt")
    dead = page.get_by_role("table", name="newest dead letters")
    dead.locator("button.open").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("Traceback")


def test_a_filter_shows_what_matches(dashboard: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(dashboard, "/stream?name=orders&at=0-0")
    page.get_by_label("Filter").fill("sku=A7 && n~7$")
    page.get_by_label("Filter").press("Enter")
    expect(first_id(page)).to_have_text(f"{FIRST_MS + 7 * STEP_MS}-0")
    expect(page.locator(".view")).to_contain_text("checked")
    assert all("sku=A7" in text for text in page.locator("tbody tr").all_inner_texts())


def test_markup_and_escapes_are_shown_and_do_nothing(
    dashboard: Dashboard, visitor: Visitor
) -> None:
    page = visitor.goto(dashboard, "/stream?name=evil")
    expect(page.locator("tbody")).to_contain_text("<script>alert('evil')</script>")
    expect(page.locator("tbody")).to_contain_text("\\x1b]0;evil\\x07")
    first_id(page).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("<img src=x onerror=alert(1)>")
    dialog.get_by_text("hex", exact=True).first.click()
    expect(dialog).to_contain_text("1b 5d 30 3b")
    page.goto(f"{dashboard.address}/structure?name=evil")
    expect(page.locator(".bytes")).to_contain_text("<script>alert")
    assert page.locator(".view img").count() == 0
    assert page.locator(".view script").count() == 0


def test_columns_are_chosen_and_remembered(dashboard: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(dashboard, "/stream?name=orders")
    expect(page.get_by_role("columnheader", name="fields")).to_be_visible()
    page.get_by_role("button", name="Columns").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("checkbox", name="qty").click()
    dialog.get_by_role("button", name="Show").click()
    expect(page.get_by_role("columnheader", name="qty")).to_be_visible()
    page.goto(f"{dashboard.address}/stream?name=orders")
    expect(page.get_by_role("columnheader", name="qty")).to_be_visible()
    expect(page.get_by_role("columnheader", name="fields")).to_have_count(0)
    page.goto(f"{dashboard.address}/stream?name=live")
    expect(page.get_by_role("columnheader", name="fields")).to_be_visible()


def test_json_is_a_tree(dashboard: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(dashboard, "/stream?name=evil")
    first_id(page).click()
    tree = page.get_by_role("dialog").locator(".tree")
    expect(tree).to_contain_text('"id": 9007199254740993')
    expect(tree).to_contain_text('"html": "<b>"')
    tree.locator("summary").first.click()
    expect(tree.get_by_text('"id"')).to_be_hidden()


def test_an_entry_with_many_fields_is_shown_in_parts(
    dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.delete("wide")
        client.xadd("wide", {f"f{number}": number for number in range(250)}, id="1-0")
    page = visitor.goto(dashboard, "/stream?name=wide")
    page.get_by_role("button", name="1-0", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("pre")).to_have_count(100)
    for shown in (200, 250):
        dialog.get_by_role("button", name="Show more").click()
        expect(dialog.locator("pre")).to_have_count(shown)
    expect(dialog.get_by_role("button", name="Show more")).to_have_count(0)


def test_ids_and_numbers_near_2_to_the_64_are_exact(dashboard: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(dashboard, "/stream?name=evil")
    expect(first_id(page)).to_have_text(LARGEST_ID)
    first_id(page).click()
    expect(page.get_by_role("dialog")).to_contain_text("9007199254740993")
    page.goto(f"{dashboard.address}/structure?name=evil")
    expect(page.locator(".view")).to_contain_text(f"node {LARGEST_ID}")


def test_a_name_of_any_bytes_has_a_page(dashboard: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(dashboard, "/streams?search=odd")
    page.get_by_role("link", name="odd\\xff\\name <b>").click()
    expect(page.locator("tbody")).to_contain_text("a=1")
    page.goto(f"{dashboard.address}/{link('structure', ODD_NAME)}")
    expect(page.locator(".view")).to_contain_text("all are shown")


def test_the_bytes_of_a_node_are_shown_with_what_was_deleted(
    dashboard: Dashboard, visitor: Visitor
) -> None:
    page = visitor.goto(dashboard, "/structure?name=orders")
    expect(page.locator(".bytes li.deleted")).to_have_count(1)
    expect(page.locator("canvas").first).to_be_visible()
    page.locator("tbody button.open").nth(1).click()
    expect(page.locator(".view")).to_contain_text(f"node {FIRST_MS + 100 * STEP_MS}-0")
    page.wait_for_url(re.compile("node="))
    expect(page.locator(".bytes li.deleted")).to_have_count(0)


def test_a_read_only_dashboard_offers_and_accepts_no_change(
    dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    page = visitor.goto(dashboard, "/stream?name=live")
    expect(page.locator(".view")).to_contain_text("read-only")
    for name in ("Add an entry", "Delete selected", "Trim"):
        assert page.get_by_role("button", name=name).count() == 0
    page.goto(f"{dashboard.address}/group?name=orders&group=packers")
    expect(page.locator(".view")).to_contain_text("ann")
    assert page.get_by_role("button", name="Acknowledge selected").count() == 0
    with filled.client() as client:
        before = client.xlen("live")
        for path in ("/stream?name=live", "/export?name=live", "/streams", "/add?name=live"):
            assert refused(dashboard, path)
        assert client.xlen("live") == before


def refused(dashboard: Dashboard, path: str) -> bool:
    request = urllib.request.Request(dashboard.address + path, data=b"a=1", method="POST")
    try:
        urllib.request.urlopen(request, timeout=30).close()
    except urllib.error.HTTPError as error:
        return error.code in (404, 405)
    return False


def test_a_selection_is_downloaded(dashboard: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(dashboard, "/stream?name=orders&at=0-0")
    page.locator("tbody").get_by_role("checkbox").nth(1).click()
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="csv").click()
    text = Path(waiting.value.path()).read_text().splitlines()
    assert [line.partition(",")[0] for line in text] == ["id", f"{FIRST_MS + STEP_MS}-0"]


def test_light_and_dark_are_remembered(dashboard: Dashboard, visitor: Visitor) -> None:
    page = visitor.goto(dashboard, "/streams")
    dark = page.evaluate("document.body.classList.contains('body--dark')")
    page.get_by_role("button", name="switch between light and dark").click()
    wanted = "body--light" if dark else "body--dark"
    expect(page.locator(f"body.{wanted}")).to_have_count(1)
    page.goto(f"{dashboard.address}/pipeline")
    expect(page.locator(f"body.{wanted}")).to_have_count(1)


def test_a_page_recovers_when_the_server_comes_back(visitor: Visitor, tmp_path: Path) -> None:
    with running_penstock(data=tmp_path) as server:
        port = server.port
        with server.client() as client:
            client.xadd("orders", {"kept": "yes"})
        with running_dashboard(f"redis://127.0.0.1:{port}") as dashboard:
            page = visitor.goto(dashboard, "/stream?name=orders")
            expect(page.locator("tbody")).to_contain_text("kept=yes")
            server.end()
            alert = page.locator("[role=alert]")
            expect(alert).to_contain_text(f"cannot reach 127.0.0.1:{port}")
            for path in ("/overview", "/streams", "/pipeline", "/structure?name=orders"):
                page.goto(f"{dashboard.address}{path}", wait_until="commit")
                expect(alert).to_contain_text("retrying")
            server.start("--port", str(port))
            expect(alert).to_be_hidden()
            expect(page.locator(".view")).to_contain_text("all are shown")


def test_a_page_does_not_wait_for_a_server_that_hangs(visitor: Visitor) -> None:
    with (
        running_penstock() as server,
        running_dashboard(f"redis://127.0.0.1:{server.port}") as board,
    ):
        page = visitor.goto(board, "/streams")
        expect(page.locator("tbody")).to_contain_text("No streams")
        server.process.send_signal(signal.SIGSTOP)
        try:
            alert = page.locator("[role=alert]")
            expect(alert).to_contain_text("does not answer")
            page.goto(f"{board.address}/overview")
            expect(alert).to_contain_text("does not answer")
        finally:
            server.process.send_signal(signal.SIGCONT)
        expect(alert).to_be_hidden()


def test_the_overview_says_what_is_wrong_and_leads_there(
    dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.execute_command(
            "XCLAIM", "orders", "packers", "ann", 0, f"{FIRST_MS}-0", "IDLE", 4_000_000
        )
    page = visitor.goto(dashboard, "/")
    table = page.get_by_role("table", name="what is wrong now")
    rows = table.get_by_role("row").filter(has_text="Pending entries age")
    row = rows.filter(has_text="packers of orders")
    expect(row.locator(".level.bad")).to_have_count(1)
    expect(page.locator(".figure").filter(has_text="Pending entries")).to_contain_text(
        re.compile("[1-9]")
    )
    row.get_by_role("link").click()
    pending = page.get_by_role("table", name="pending entries", exact=True)
    expect(pending).to_contain_text("ann")


def test_retention_is_tried_by_a_user_who_may_not_read_the_settings(
    visitor: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.execute_command("ACL", "SETUSER", "limited", "on", ">pw", "~*", "+@all", "-config")
        with running_dashboard(f"redis://limited:pw@127.0.0.1:{filled.port}") as dashboard:
            page = visitor.goto(dashboard, "/retention?name=orders&rule=length%201000")
            expect(page.locator(".view")).to_contain_text("stream-retention orders length 1000")
            expect(page.locator(".view")).to_contain_text("has no permissions")
            expect(page.locator("[role=alert]")).to_be_hidden()
        client.execute_command("ACL", "DELUSER", "limited")


def test_a_pipeline_that_failed_in_its_first_batch_is_shown(
    dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    failed = {"pipeline": "broken", "output": "silver", "error": "the disk is full"}
    with filled.client() as client:
        report = client.xadd("penstock:metrics", failed)
        page = visitor.goto(dashboard, "/pipeline?only=broken")
        flow = page.get_by_role("group", name="pipeline broken")
        expect(flow).to_contain_text("silver failed")
        expect(flow).to_contain_text("the disk is full")
        expect(flow.locator(".level.bad").first).to_have_text("failed")
        client.xdel("penstock:metrics", report)


def test_history_survives_the_dashboard(
    visitor: Visitor, filled: PenstockServer, tmp_path: Path
) -> None:
    url, state = f"redis://127.0.0.1:{filled.port}", ("--state-dir", str(tmp_path))
    with running_dashboard(url, *state) as dashboard:
        page = visitor.goto(dashboard, "/groups?name=orders")
        page.get_by_label("time range of charts").click()
        page.get_by_role("option", name="6 hours").click()
        expect(chart_of(page, "Pending")).to_have_attribute(
            "aria-label", re.compile("packers: now")
        )
    with running_dashboard(url, *state) as dashboard:
        page = visitor.goto(dashboard, "/group?name=orders&group=packers")
        expect(chart_of(page, "Pending")).to_have_attribute(
            "aria-label", re.compile("packers: now")
        )
        expect(page.get_by_label("time range of charts")).to_have_value(re.compile("6 hours"))


def chart_of(page: Any, title: str) -> Any:
    card = page.locator(".card").filter(has=page.get_by_role("heading", name=title))
    return card.locator("[aria-label^='Chart']")


def test_settings_and_clients_are_searched(
    dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    page = visitor.goto(dashboard, "/configuration")
    page.get_by_label("Filter settings").fill("maxclients")
    expect(page.get_by_role("row")).to_have_count(2)
    page.wait_for_url(re.compile("search=maxclients"))
    with filled.client() as client:
        client.client_setname("findme")
        page.goto(f"{dashboard.address}/clients?search=findme")
        expect(page.get_by_role("row")).to_have_count(2)
        expect(page.get_by_role("table", name="clients")).to_contain_text("findme")


def test_a_dashboard_with_a_password_asks_for_it(visitor: Visitor, filled: PenstockServer) -> None:
    url = f"redis://127.0.0.1:{filled.port}"
    with running_dashboard(
        url, "--bind", "0.0.0.0", PENSTOCK_UI_PASSWORD="open sesame"
    ) as dashboard:
        visitor.page.goto(f"{dashboard.address}/stream?name=live")
        visitor.page.get_by_label("Dashboard password").fill("open sesame")
        visitor.page.get_by_role("button", name="Log in").click()
        expect(visitor.page.locator("tbody")).to_contain_text("n=0")
        assert "open sesame" not in dashboard.log()
