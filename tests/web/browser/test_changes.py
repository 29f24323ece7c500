"""Changes in a real browser: each is shown and confirmed before it is made."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.servers.dashboard import Dashboard
from tests.support.servers.penstock_server import PenstockServer
from tests.web.browser.accessible import check_can_be_used_without_eyes
from tests.web.conftest import Visitor

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
expect.set_options(timeout=60_000)


def say_yes(page: Any, *commands: str) -> None:
    """Confirm the dialog if it shows these texts."""
    dialog = page.get_by_role("dialog").filter(has=page.get_by_role("button", name="Apply"))
    for command in commands:
        expect(dialog).to_contain_text(command)
    check_can_be_used_without_eyes(page)
    dialog.get_by_role("button", name="Apply").click()


def test_a_change_is_shown_before_it_is_made(
    writing_dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.delete("notes")
        client.xadd("notes", {"n": "0"}, id="1-0")
        page = visitor.goto(writing_dashboard, "/stream?name=notes")
        page.get_by_role("button", name="Add an entry").click()
        page.get_by_label("fields, one per line").fill("sku=A1\nnote=two words")
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("dialog").last).to_contain_text(
            'XADD notes * sku A1 note "two words"'
        )
        assert client.xlen("notes") == 1
        page.get_by_role("button", name="Apply").click()
        expect(page.locator("tbody")).to_contain_text("sku=A1")
        assert client.xlen("notes") == 2
        page.get_by_role("button", name="Trim").click()
        page.get_by_label("keep only the newest").click()
        page.get_by_label("an id, a time, or a number").fill("1")
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("dialog").last).to_contain_text("deletes 1 of 2 entries")
        page.get_by_role("button", name="Cancel").last.click()
        expect(page.get_by_role("button", name="Apply")).to_have_count(0)
        assert client.xlen("notes") == 2


def test_rows_that_disappear_are_deselected(
    writing_dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    page = visitor.goto(writing_dashboard, "/stream?name=orders&at=0-0")
    page.locator("tbody").get_by_role("checkbox").first.click()
    expect(page.get_by_text("1 selected")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("1 selected")).to_have_count(0)
    page.get_by_role("button", name="Delete selected").click()
    expect(page.get_by_text("no entry is selected")).to_be_visible()


def test_pending_entries_are_acknowledged(
    writing_dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.delete("work")
        client.xadd("work", {"n": "0"}, id="1-0")
        client.xgroup_create("work", "g", id="0")
        client.xreadgroup("g", "ann", {"work": ">"})
        page = visitor.goto(writing_dashboard, "/group?name=work&group=g")
        page.get_by_role("checkbox", name="select 1-0").click()
        page.get_by_role("button", name="Acknowledge selected").click()
        expect(page.get_by_role("dialog").last).to_contain_text("XACK work g 1-0")
        page.get_by_role("button", name="Apply").click()
        expect(page.locator(".view")).to_contain_text("0 of 0 pending entries")
        assert client.xpending("work", "g")["pending"] == 0


def test_a_group_is_created_loses_a_consumer_and_is_deleted(
    writing_dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.delete("crew")
        for number in range(1, 6):
            client.xadd("crew", {"n": number}, id=f"{number}-0")
        page = visitor.goto(writing_dashboard, "/groups?name=crew")
        page.get_by_role("button", name="Create a group").click()
        page.get_by_label("name of the group").fill("packers")
        page.get_by_label("reads after: start, end, an id").fill("2-0")
        page.get_by_role("button", name="Preview").click()
        say_yes(page, "XGROUP CREATE crew packers 2-0", "its lag is unknown until")
        expect(page.get_by_role("note")).to_contain_text("Why the lag of packers is unknown")
        client.xreadgroup("packers", "ann", {"crew": ">"})
        page.get_by_role("link", name="packers").first.click()
        page.get_by_role("checkbox", name="select ann").click()
        page.get_by_role("button", name="Delete selected consumers").click()
        say_yes(page, "deletes ann with 3 pending entries", "XGROUP DELCONSUMER crew packers ann")
        expect(page.get_by_role("checkbox", name="select ann")).to_have_count(0)
        expect(page.get_by_role("dialog")).to_have_count(0)  # an open dialog catches all clicks
        page.get_by_role("button", name="Delete this group").click()
        say_yes(page, "XGROUP DESTROY crew packers")
        page.wait_for_url("**/groups?name=crew")
        assert client.xinfo_groups("crew") == []


def test_an_entry_is_edited_and_sent_to_another_stream(
    writing_dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.delete("draft", "second")
        client.xadd("draft", {"kept": b"\xff\n\\", "json": '{"a": "x\\n"}', "gone": "1"}, id="1-0")
        page = visitor.goto(writing_dashboard, "/stream?name=draft")
        page.get_by_role("button", name="1-0").click()
        page.get_by_role("button", name="Edit and resend").click()
        page.get_by_label("target stream").fill("second")
        page.get_by_label("value 2").fill("two\nlines")
        page.get_by_role("button", name="remove field 3").click()
        page.get_by_role("button", name="Add a field").click()
        page.get_by_label("field 4", exact=True).fill("new")
        check_can_be_used_without_eyes(page)
        page.get_by_role("button", name="Preview").click()
        say_yes(page, "XADD second * kept", "the stream second does not exist and will be created")
        expect(page.get_by_role("dialog")).to_have_count(0)
        (entry,) = client.xrange("second")
        assert entry[1] == {b"kept": b"\xff\n\\", b"json": b"two\nlines", b"new": b""}
        assert client.xlen("draft") == 1


@pytest.mark.parametrize(
    "path", ["/pipeline?rejects=returns:refused", "/stream?name=returns:refused"]
)
def test_selected_rejects_are_redriven(
    writing_dashboard: Dashboard, visitor: Visitor, filled: PenstockServer, path: str
) -> None:
    with filled.client() as client:
        client.delete("returns", "returns:refused")
        origin = {"_source_stream": "returns", "_source_id": "7-0"}
        client.xadd("returns:refused", {"qty": "-1", "_reason": "positive"} | origin, id="1-0")
        client.xadd("returns:refused", {"qty": "-2", "_reason": "positive"} | origin, id="2-0")
        page = visitor.goto(writing_dashboard, path)
        page.get_by_role("checkbox", name="select 1-0").click()
        page.get_by_role("button", name="Redrive selected").click()
        page.get_by_role("checkbox", name="delete the rejects").click()
        page.get_by_role("button", name="Preview").click()
        say_yes(page, "XADD returns * qty -1 _source_stream returns", "XDEL returns:refused 1-0")
        expect(page.get_by_role("checkbox", name="select 1-0")).to_have_count(0)
        sent = {name.encode(): value.encode() for name, value in origin.items()} | {b"qty": b"-1"}
        assert [fields for _, fields in client.xrange("returns")] == [sent]
        assert [id_ for id_, _ in client.xrange("returns:refused")] == [b"2-0"]
        client.delete("returns", "returns:refused")


def test_a_dead_letter_goes_back_to_its_group(
    writing_dashboard: Dashboard, visitor: Visitor, filled: PenstockServer
) -> None:
    with filled.client() as client:
        client.delete("jobs", "jobs:dead")
        id_ = client.xadd("jobs", {"n": "1"})
        client.xgroup_create("jobs", "crew", id="$")
        facts = {"_source_stream": "jobs", "_source_id": id_, "_group": "crew", "_attempts": "5"}
        dead = client.xadd("jobs:dead", {"n": "1", "_reason": "ValueError: no"} | facts)
        page = visitor.goto(writing_dashboard, "/groups?name=jobs")
        table = page.get_by_role("table", name="dead letters")
        expect(table).to_contain_text("ValueError: no")
        table.get_by_role("checkbox", name=f"select {dead.decode()}").click()
        page.get_by_role("button", name="Redrive selected").click()
        say_yes(page, "XCLAIM jobs crew waiting", "XDEL jobs:dead")
        expect(table).to_be_hidden()
        assert client.xlen("jobs:dead") == 0
        assert client.xpending("jobs", "crew")["pending"] == 1
