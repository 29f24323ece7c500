"""The tail: bounded at any rate."""

from __future__ import annotations

import pytest

from penstock.web.model.stream_page import REPLY_BYTES_MAX
from penstock.web.model.tailing import SHOWN_MAX, Tail
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient
from tests.web.conftest import Live


def add(live: Live, count: int) -> None:
    pipeline = live.client.pipeline(transaction=False)
    for number in range(count):
        pipeline.xadd("s", {"n": number})
    pipeline.execute()


def test_a_tail_shows_new_entries_newest_first(live: Live) -> None:
    add(live, 3)

    async def run(server: ServerClient) -> list[bytes]:
        tail = Tail(server, b"s")
        assert await tail.step()
        live.client.xadd("s", {"n": "new"})
        assert await tail.step()
        assert not await tail.step()
        return [entry.fields[0][1] for entry in tail.shown]

    assert live.ask(run) == [b"new", b"2", b"1", b"0"]


def test_a_tail_never_holds_more_than_it_shows_and_counts_the_rest(live: Live) -> None:
    add(live, 5)

    async def run(server: ServerClient) -> tuple[int, int, bytes]:
        tail = Tail(server, b"s")
        await tail.step()
        for _ in range(3):
            add(live, 2000)
            assert await tail.step()
        return len(tail.shown), tail.skipped, tail.shown[0].fields[0][1]

    assert live.ask(run) == (SHOWN_MAX, 3 * (2000 - SHOWN_MAX), b"1999")


def test_a_recreated_stream_is_followed(live: Live) -> None:
    live.client.xadd("s", {"old": "1"}, id="9-0")

    async def run(server: ServerClient) -> list[str]:
        tail = Tail(server, b"s")
        await tail.step()
        live.client.delete("s")
        live.client.xadd("s", {"new": "1"}, id="1-0")
        await tail.step()
        return [str(entry.id) for entry in tail.shown]

    assert live.ask(run) == ["1-0"]


def test_a_recreated_stream_with_larger_ids_is_not_mixed_with_the_old_one(
    live: Live,
) -> None:
    add(live, 5)

    async def run(server: ServerClient) -> tuple[int, list[bytes]]:
        tail = Tail(server, b"s")
        await tail.step()
        live.client.delete("s")
        live.client.xadd("s", {"n": "new"})
        assert await tail.step()
        return tail.skipped, [entry.fields[0][1] for entry in tail.shown]

    assert live.ask(run) == (0, [b"new"])


def test_a_tail_reads_fewer_entries_when_they_grow(live: Live) -> None:
    live.client.xgroup_create("s", "g", mkstream=True)

    async def run(server: ServerClient) -> tuple[int, int]:
        tail = Tail(server, b"s")
        await tail.step()
        for _ in range(6):
            live.client.xadd("s", {"v": b"z" * (REPLY_BYTES_MAX // 2)})
        await tail.step()
        return len(tail.shown), tail.skipped

    shown, skipped = live.ask(run)
    assert shown <= 2
    assert shown + skipped == 6


def test_a_tail_drops_trimmed_entries(live: Live) -> None:
    add(live, 5)

    async def run(server: ServerClient) -> list[int]:
        tail = Tail(server, b"s")
        await tail.step()
        counts = []
        for kept in (3, 0):
            live.client.xtrim("s", kept, approximate=False)
            assert await tail.step()
            counts.append(len(tail.shown))
        live.client.xadd("s", {"n": "new"})
        assert await tail.step()
        return [*counts, len(tail.shown)]

    assert live.ask(run) == [3, 0, 1]


def test_a_deleted_stream_is_reported(live: Live) -> None:
    add(live, 2)

    async def run(server: ServerClient) -> int:
        tail = Tail(server, b"s")
        await tail.step()
        live.client.delete("s")
        with pytest.raises(Refused, match="no such key"):
            await tail.step()
        return len(tail.shown)

    assert live.ask(run) == 0
