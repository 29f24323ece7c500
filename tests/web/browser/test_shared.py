"""A dashboard that several people use for several servers: roles, servers that are down, metrics."""

from __future__ import annotations

import re
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.servers.penstock_server import PenstockServer
from tests.web.browser.accessible import check_can_be_used_without_eyes
from tests.web.conftest import NO_UI, SharedDashboard, Visitor

pytest.importorskip("nicegui", reason=NO_UI)
from penstock.web.elements.unconnected import UNCONNECTED_MAX

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
expect.set_options(timeout=60_000)


def samples(shared: SharedDashboard) -> dict[str, float]:
    """The metrics: `name{label}` and their values."""
    address = f"http://127.0.0.1:{shared.metrics_port}/metrics"
    with urllib.request.urlopen(address, timeout=30) as answer:
        text = answer.read().decode()
    return {
        f"{one.name}{sorted(one.labels.values())}": one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def test_a_viewer_sees_everything_and_is_offered_no_change(
    shared_dashboard: SharedDashboard, visitor: Visitor
) -> None:
    page = shared_dashboard.log_in(visitor, shared_dashboard.viewer, "/at/prod/stream?name=live")
    expect(page.locator("tbody")).to_contain_text("n=0")
    expect(page.locator(".view")).to_contain_text("log in as an operator")
    expect(page.locator(".viewer")).to_be_visible()
    for name in ("Add an entry", "Delete selected", "Trim"):
        assert page.get_by_role("button", name=name).count() == 0
    page.goto(f"{shared_dashboard.address}/at/prod/group?name=orders&group=packers")
    expect(page.locator(".view")).to_contain_text("ann")
    assert page.get_by_role("button", name="Acknowledge selected").count() == 0


def test_an_open_page_asks_for_the_password_after_a_logout_elsewhere(
    shared_dashboard: SharedDashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.delete("guarded")
        client.xadd("guarded", {"n": "0"})
    path = "/at/prod/stream?name=guarded"
    page = shared_dashboard.log_in(visitor, shared_dashboard.operator, path)
    expect(page.locator("tbody")).to_contain_text("n=0")
    other = page.context.new_page()
    other.goto(f"{shared_dashboard.address}/logout")
    expect(other.get_by_label("Dashboard password")).to_be_visible()
    expect(page.get_by_label("Dashboard password")).to_be_visible()
    expect(page.locator("tbody")).to_have_count(0)
    other.close()


def test_an_open_page_of_an_operator_becomes_that_of_a_viewer_who_logs_in(
    shared_dashboard: SharedDashboard, visitor: Visitor
) -> None:
    path = "/at/prod/stream?name=live"
    page = shared_dashboard.log_in(visitor, shared_dashboard.operator, path)
    expect(page.locator(".writes")).to_be_visible()
    other = page.context.new_page()
    other.goto(f"{shared_dashboard.address}/login")
    other.get_by_label("Dashboard password").fill(shared_dashboard.viewer)
    other.get_by_role("button", name="Log in").click()
    expect(page.locator(".viewer")).to_be_visible()
    expect(page.locator(".writes")).to_have_count(0)
    other.close()


def test_a_server_that_is_down_does_not_hurt_the_other(
    shared_dashboard: SharedDashboard, visitor: Visitor
) -> None:
    page = shared_dashboard.log_in(visitor, shared_dashboard.viewer, "/")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="down", exact=True))
    expect(row.locator(".level.bad")).to_have_text("does not answer")
    expect(page.locator(".view")).to_contain_text("1 of 2 servers does not answer")
    check_can_be_used_without_eyes(page)
    page.get_by_role("link", name="prod", exact=True).click()
    page.wait_for_url("**/at/prod/overview")
    expect(page.locator(".view")).to_contain_text("Key figures")
    expect(page.locator("[role=alert]")).to_be_hidden()
    page.get_by_role("link", name="Streams").click()
    page.wait_for_url("**/at/prod/streams")
    page.get_by_role("link", name="live", exact=True).click()
    expect(page.locator("tbody")).to_contain_text("n=0")
    page.get_by_role("combobox", name="server").click()
    page.get_by_role("option", name="down").click()
    page.wait_for_url("**/at/down/streams")
    expect(page.locator("[role=alert]")).to_contain_text("cannot reach")


def test_a_url_without_a_server_leads_to_the_first(
    shared_dashboard: SharedDashboard, visitor: Visitor
) -> None:
    path = "/stream?name=live&at=0-0"
    page = shared_dashboard.log_in(visitor, shared_dashboard.viewer, path)
    page.wait_for_url("**/at/prod/stream?name=live&at=0-0")
    expect(page.locator("tbody")).to_contain_text("n=0")
    expect(page).to_have_title(re.compile("live - prod - penstock"))


def test_metrics_tell_about_servers_and_requests(shared_dashboard: SharedDashboard) -> None:
    found = samples(shared_dashboard)
    assert found["penstock_ui_server_up['prod']"] == 1
    assert found["penstock_ui_server_up['down']"] == 0
    assert found["penstock_ui_streams['prod']"] > 3
    assert found["penstock_ui_groups['prod']"] >= 2
    assert found["penstock_ui_commands_total['prod', 'read']"] > 10
    assert found["penstock_ui_memory_bytes[]"] > 10_000_000
    assert found["penstock_ui_requests_total['303']"] >= 1
    assert found["penstock_ui_request_seconds_count[]"] >= 1
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{shared_dashboard.metrics_port}/readyz")
    assert refused.value.code == 503
    assert refused.value.read().startswith(b"down: cannot reach")


def test_pages_without_a_websocket_are_deleted(
    shared_dashboard: SharedDashboard, visitor: Visitor
) -> None:
    page = shared_dashboard.log_in(visitor, shared_dashboard.viewer, "/at/prod/slowlog")
    address = f"{shared_dashboard.address}/at/prod/slowlog"
    for _ in range(UNCONNECTED_MAX + 20):
        assert page.request.get(address).ok
    for _ in range(120):
        if samples(shared_dashboard)["penstock_ui_pages['waiting']"] <= UNCONNECTED_MAX:
            break
        page.wait_for_timeout(250)
    else:
        pytest.fail("pages without a websocket stay in memory")
    assert samples(shared_dashboard)["penstock_ui_pages['connected']"] >= 1
