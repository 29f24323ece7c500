"""Handlers of workers, entries that fail and dead letters, from what real workers store."""

from __future__ import annotations

from penstock.client.dead_letters import due_in_ms, is_worker
from penstock.client.replies import Entry
from penstock.web.jobs.workers import (
    FailingEntry,
    Handler,
    failing_entries,
    handlers_of,
    newest_dead,
)
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.history import GroupHistory
from penstock.web.server.asking import ServerClient
from penstock.work.names import consumer_name
from tests.web.conftest import Live

Found = tuple[list[Handler], list[FailingEntry], list[tuple[bytes, Entry]]]
WORKER = "host-77-0123abcd"
LEASED_MS = 86_400_000 - 30_000


async def look(server: ServerClient) -> Found:
    catalogue = StreamCatalogue(server, GroupHistory())
    await catalogue.sweep()
    handlers = await handlers_of(server, catalogue)
    return handlers, await failing_entries(server, handlers), await newest_dead(server, handlers)


def claim(live: Live, id_: str, consumer: str, idle_ms: int, attempts: int) -> None:
    words = ("XCLAIM", "s", "g", consumer, 0, id_, "IDLE", idle_ms, "RETRYCOUNT", attempts)
    live.client.execute_command(*words)


def test_the_names_of_workers_are_known() -> None:
    assert is_worker(consumer_name().encode())
    assert not is_worker(b"ann")
    assert not is_worker(b"waiting")


def test_ordinary_groups_have_no_handlers(stream_of_ten: Live) -> None:
    assert stream_of_ten.ask(look) == ([], [], [])


def test_a_handler_has_workers_retries_and_dead_letters(stream_of_ten: Live) -> None:
    client = stream_of_ten.client
    client.xack("s", "g", "4-0")
    claim(stream_of_ten, "1-0", WORKER, LEASED_MS, 1)
    claim(stream_of_ten, "2-0", WORKER, LEASED_MS, 3)
    claim(stream_of_ten, "3-0", "waiting", 86_400_000 - 60_000, 2)
    facts = {"_source_stream": "s", "_group": "g", "_reason": "ValueError: no", "_attempts": "5"}
    client.xadd("s:dead", facts | {"n": "4", "_source_id": "4-0"})
    client.xadd("s:delayed", {"n": "9"})
    (handler,), failing, dead = stream_of_ten.ask(look)
    assert (handler.stream, handler.group.name) == (b"s", b"g")
    assert (handler.workers, handler.lost) == (2, 0)  # ann too
    assert (handler.running, handler.waiting, handler.delayed) == (2, 1, 1)
    assert handler.dead_letters == 1
    assert [(str(one.id), one.attempts) for one in failing] == [("2-0", 3), ("3-0", 2)]
    assert failing[0].state == "runs again"
    assert failing[1].state == "waits for its next attempt"
    assert 0 < failing[1].due_ms <= 60_000
    assert [(stream, dict(entry.fields)[b"n"]) for stream, entry in dead] == [(b"s", b"4")]


def test_dead_letters_belong_to_the_group_that_failed(stream_of_ten: Live) -> None:
    client = stream_of_ten.client
    client.xgroup_create("s", "other", id="0")
    client.xadd("s:dead", {"_source_stream": "s", "_group": "g", "_reason": "no", "n": "4"})
    (handler,), _, _ = stream_of_ten.ask(look)
    assert (handler.group.name, handler.dead_letters) == (b"g", 1)


def test_a_row_is_due_when_its_idle_time_reaches_a_day() -> None:
    assert due_in_ms(86_400_000 - 5) == 5
    assert due_in_ms(90_000_000) == 0
