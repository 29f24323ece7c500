"""The table of streams."""

from __future__ import annotations

import pytest

from penstock.web.model import catalogue as module
from penstock.web.model import rates
from penstock.web.model.catalogue import StreamCatalogue, names_of
from penstock.web.model.history import GroupHistory
from penstock.web.server.asking import ServerClient
from tests.web.conftest import Live


def swept(live: Live) -> StreamCatalogue:
    async def run(server: ServerClient) -> StreamCatalogue:
        catalogue = StreamCatalogue(server, GroupHistory())
        await catalogue.sweep()
        return catalogue

    return live.ask(run)


def test_a_sweep_finds_every_stream_and_nothing_else(live: Live) -> None:
    for number in range(7 * module.SLICE_STREAMS + 11):
        live.client.xadd(f"s:{number:04}", {"n": number})
    live.client.set("text", "x")
    catalogue = swept(live)
    assert len(catalogue) == 7 * module.SLICE_STREAMS + 11
    page = catalogue.page("", "name", False, 2, 50)
    assert (page.number, page.pages, page.total) == (2, 4, 151)
    assert names_of(page.rows) == [b"s:%04d" % number for number in range(50, 100)]


def test_a_glance_shows_some_streams_before_all_are_known(live: Live) -> None:
    for number in range(module.GLANCE_STREAMS + 20):
        live.client.xadd(f"s:{number:04}", {"n": number})

    async def run(server: ServerClient) -> tuple[int, bool]:
        catalogue = StreamCatalogue(server, GroupHistory())
        await catalogue.glance()
        return len(catalogue), catalogue.swept

    assert live.ask(run) == (module.GLANCE_STREAMS, False)


def test_rows_are_searched_and_sorted(live: Live) -> None:
    for name, length in (("Orders", 3), ("orders:eu", 5), ("other", 1)):
        for number in range(length):
            live.client.xadd(name, {"n": number})
    catalogue = swept(live)
    assert names_of(catalogue.page("ORDERS", "length", True, 1, 10).rows) == [
        b"orders:eu",
        b"Orders",
    ]
    assert names_of(catalogue.page("", "length", False, 1, 10).rows)[0] == b"other"
    assert catalogue.page("none such", "name", False, 9, 10).total == 0


def test_an_unknown_lag_comes_last_whichever_way_rows_are_sorted(live: Live) -> None:
    for name in ("a", "b", "c"):
        for number in range(1, 4):
            live.client.xadd(name, {"n": number}, id=f"{number}-0")
    live.client.xgroup_create("a", "g", id="0")
    live.client.xgroup_create("b", "g", id="$")
    catalogue = swept(live)
    assert names_of(catalogue.page("", "lag", True, 1, 10).rows) == [b"a", b"b", b"c"]
    assert names_of(catalogue.page("", "lag", False, 1, 10).rows) == [b"b", b"a", b"c"]


def test_a_deleted_stream_leaves_the_table(live: Live) -> None:
    live.client.xadd("s", {"a": "1"})
    live.client.xadd("t", {"a": "1"})

    async def run(server: ServerClient) -> list[bytes]:
        catalogue = StreamCatalogue(server, GroupHistory())
        await catalogue.sweep()
        live.client.delete("s")
        await catalogue.look([b"s", b"t"])
        return names_of(catalogue.page("", "name", False, 1, 10).rows)

    assert live.ask(run) == [b"t"]


def test_facts_match_the_server(live: Live) -> None:
    live.client.xadd("s", {"a": "1"}, id="1-0")
    live.client.xadd("s", {"a": "2"}, id="2-0")
    live.client.xgroup_create("s", "g", id="0")
    live.client.xreadgroup("g", "c", {"s": ">"}, count=1)
    (row,) = swept(live).page("", "name", False, 1, 10).rows
    facts = row.facts
    assert (facts.length, facts.added, str(facts.last_id)) == (2, 2, "2-0")
    assert facts.first is not None
    assert (str(facts.first.id), facts.worst_lag, facts.reads) == ("1-0", 1, {b"g": 1})
    assert facts.size_bytes is not None
    assert facts.size_bytes > 0
    (group,) = facts.groups
    assert (group.name, group.pending, str(group.last_id)) == (b"g", 1, "1-0")


def test_the_rate_out_counts_the_groups_that_are_known(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "GAP_SECONDS_MIN", 1e-9)
    for group in ("reading", "unread"):
        live.client.xgroup_create("s", group, id="0", mkstream=True)

    async def run(server: ServerClient) -> tuple[float | None, float | None]:
        catalogue = StreamCatalogue(server, GroupHistory())
        for _ in range(3):
            live.client.xadd("s", {"n": 1})
            live.client.xreadgroup("reading", "c", {"s": ">"})
            await catalogue.sweep()
        row = catalogue.row_or_none(b"s")
        assert row is not None
        return row.meter.rate_out, catalogue.totals().rate_out

    of_stream, of_all = live.ask(run)
    assert of_stream is not None
    assert of_stream > 0
    assert of_all == of_stream
