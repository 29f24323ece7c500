"""Pages of entries, in both directions, with conditions."""

from __future__ import annotations

import pytest

from penstock.core.stream_id import LARGEST, StreamID
from penstock.human.moment import parse_moment
from penstock.human.where import parse_conditions
from penstock.web.model import stream_page
from penstock.web.model.stream_page import (
    NEWEST,
    OLDEST,
    EntryPage,
    Reading,
    count_for,
    page_before,
    read_ids,
    read_page,
    reading_from,
)
from penstock.web.server.asking import ServerClient
from tests.web.conftest import Live

PAGE = stream_page.PAGE_ENTRIES


def filled(live: Live, count: int) -> None:
    pipeline = live.client.pipeline(transaction=False)
    for number in range(1, count + 1):
        pipeline.xadd(
            "s", {"n": number, "even": (number % 2 == 0 and "yes") or "no"}, id=f"{number}-0"
        )
    pipeline.execute()


def numbers(page: EntryPage) -> list[int]:
    return [entry.id.ms for entry in page.entries]


def read(live: Live, reading: Reading, where: str = "") -> EntryPage:
    async def run(server: ServerClient) -> EntryPage:
        return await read_page(server, b"s", reading, 10, parse_conditions(where))

    return live.ask(run)


@pytest.mark.parametrize("count", [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE])
@pytest.mark.parametrize("reading", [NEWEST, OLDEST])
def test_pages_hold_every_entry_once(live: Live, count: int, reading: Reading) -> None:
    filled(live, count)
    seen: list[int] = []
    at: Reading | None = reading
    while at is not None:
        page = read(live, at)
        seen += numbers(page)
        at = page.following
    expected = list(range(1, count + 1))
    assert seen == (expected if reading.rising else expected[::-1])


def test_a_page_goes_back_to_the_one_before_it(live: Live) -> None:
    filled(live, 3 * PAGE)
    second = read(live, OLDEST).following
    assert second is not None
    assert live.ask(lambda server: page_before(server, b"s", second, 10)) == Reading(
        StreamID(1, 0), rising=True
    )
    assert live.ask(lambda server: page_before(server, b"s", OLDEST, 10)) is None


def test_a_filter_checks_a_bounded_number_of_entries(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_page, "SCANNED_MAX", 100)
    monkeypatch.setattr(stream_page, "CHUNK_ENTRIES", 50)
    filled(live, 300)
    page = read(live, OLDEST, "n=299")
    assert (page.entries, page.scanned) == ([], 100)
    assert page.following == Reading(StreamID(100, 1), rising=True)


def test_a_filter_continues_where_it_stopped(live: Live) -> None:
    filled(live, 4 * PAGE + 2)
    first = read(live, OLDEST, "even=yes")
    assert numbers(first) == list(range(2, 2 * PAGE + 1, 2))
    assert first.following is not None
    second = read(live, first.following, "even=yes && n~^1")
    assert numbers(second) == [
        n for n in range(2 * PAGE + 1, 4 * PAGE + 3) if n % 2 == 0 and str(n)[0] == "1"
    ]


def test_reading_works_at_the_smallest_and_largest_id(live: Live) -> None:
    live.client.xadd("s", {"a": "1"}, id=str(LARGEST))
    assert numbers(read(live, NEWEST)) == [LARGEST.ms]
    assert numbers(read(live, Reading(LARGEST, rising=True))) == [LARGEST.ms]


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("start", OLDEST),
        ("end", NEWEST),
        ("7-1", Reading(StreamID(7, 1), True)),
        ("2024-05-01T00:00:00.005", Reading(StreamID(1714521600005, 0), True)),
        ("10s", Reading(StreamID(990_000, 0), True)),
    ],
)
def test_reading_begins_at_a_time(text: str, reading: Reading) -> None:
    assert reading_from(parse_moment(text), 1_000_000) == reading


def test_large_entries_are_read_one_by_one() -> None:
    assert count_for(0, 50) == 50
    assert count_for(stream_page.REPLY_BYTES_MAX / 10, 50) == 10
    assert count_for(10**9, 50) == 1


def test_entries_are_read_by_id(live: Live) -> None:
    filled(live, 3)
    found = live.ask(lambda server: read_ids(server, b"s", [StreamID(2, 0), StreamID(9, 0)]))
    assert [str(entry.id) for entry in found] == ["2-0"]
