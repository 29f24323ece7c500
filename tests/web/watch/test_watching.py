"""Figures and groups of a live server, and a server that does not answer."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from penstock.client.replies import Entry
from penstock.core.stream_id import StreamID
from penstock.web.board import Board, Settings
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.facts import StreamFacts
from penstock.web.model.history import GroupHistory
from penstock.web.server.asking import ServerClient
from penstock.web.server.health import ServerHealth
from penstock.web.server.named import NamedServer
from penstock.web.watch import group_watch
from penstock.web.watch.figures import ReplicasSeen, ServerFigures
from penstock.web.watch.group_watch import GroupWatch, WatchedGroup
from penstock.web.watch.info import parse_info
from tests.support.servers.hostile_server import hostile
from tests.support.servers.loops import run_apart
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import free_port
from tests.web.conftest import Live


async def watched(server: ServerClient) -> list[WatchedGroup]:
    catalogue = StreamCatalogue(server, GroupHistory())
    await catalogue.sweep()
    watch = GroupWatch(server, catalogue)
    await watch.look()
    return watch.groups


def test_the_age_of_pending_entries_and_dead_consumers(stream_of_ten: Live) -> None:
    stream_of_ten.client.execute_command("XCLAIM", "s", "g", "ann", 0, "1-0", "IDLE", 7_200_000)
    (group,) = stream_of_ten.ask(watched)
    assert (group.stream, group.group, group.pending, group.dead) == (b"s", b"g", 4, ())
    assert group.oldest_idle_ms is not None
    assert group.oldest_idle_ms >= 7_200_000


def test_entries_that_wait_for_workers_do_not_age(stream_of_ten: Live) -> None:
    client = stream_of_ten.client
    client.execute_command("XCLAIM", "s", "g", "waiting", 0, "1-0", "IDLE", 86_400_000)
    (group,) = stream_of_ten.ask(watched)
    assert group.oldest_idle_ms is None


def test_the_groups_with_the_most_pending_entries_are_watched(
    stream_of_ten: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_watch, "GROUPS_MAX", 1)
    client = stream_of_ten.client
    client.xgroup_create("s", "h", id="0")
    client.xreadgroup("h", "bob", {"s": ">"})
    (group,) = stream_of_ten.ask(watched)
    assert (group.group, group.pending) == (b"h", 10)


def test_figures_of_a_server(stream_of_ten: Live) -> None:
    async def look(server: ServerClient) -> dict[str, list[float | None]]:
        catalogue = StreamCatalogue(server, GroupHistory())
        await catalogue.sweep()
        figures = ServerFigures(server, catalogue)
        await figures.look()
        return {name: figures.values(name) for name in ("lag", "pending", "memory", "clients")}

    found = stream_of_ten.ask(look)
    assert (found["lag"], found["pending"]) == ([6], [4])
    assert (found["memory"][0] or 0) > 1000
    assert (found["clients"][0] or 0) >= 1


def test_replicas_that_were_there_are_missed_for_an_hour() -> None:
    seen = ReplicasSeen()

    def gone(replicas: int, minute: int, role: str = "master") -> int:
        info = parse_info(f"role:{role}\r\nconnected_slaves:{replicas}".encode())
        return seen.gone(info, 60.0 * minute)

    assert [gone(2, 0), gone(2, 1), gone(1, 2), gone(0, 3), gone(2, 4)] == [0, 0, 1, 2, 0]
    assert [gone(1, 5), gone(1, 64), gone(1, 65)] == [1, 1, 0]
    assert [gone(0, 66, "slave"), gone(0, 67)] == [0, 0]
    assert seen.gone({}, 0) == 0


def test_a_server_that_is_down_is_known() -> None:
    port = free_port()

    async def look() -> str:
        server = ServerClient(f"redis://127.0.0.1:{port}")
        health = ServerHealth(server)
        await health.look()
        await server.close()
        return health.problem

    assert run_apart(look()).startswith(f"cannot reach 127.0.0.1:{port}")


def test_problems_are_judged_by_the_clock_of_the_server() -> None:
    """The clock of the dashboard may be an hour behind, and nobody asks the server for its time."""
    seconds = int(time.time()) + 3600
    entry = Entry(StreamID(1000 * seconds, 0), [])
    busy = StreamFacts(b"s", 1, 1, entry.id, entry, entry, 1, None, 1, 1, ())

    async def look(url: str) -> list[list[str]]:
        named = NamedServer("ahead", url)
        board = Board(Settings((named,)), named)
        board.catalogue.note_now(busy)
        found = [[one.what for one in board.problems()]]
        await board.health.look()
        found.append([one.what for one in board.problems()])
        await board.server.close()
        return found

    with hostile(b"", answers=b"*2\r\n$10\r\n%d\r\n$1\r\n0\r\n" % seconds) as server:
        found = run_apart(look(server.url))
    assert found == [["Last id in the future"], []]


def test_a_server_that_answers_is_well(live: Live) -> None:
    async def look(server: ServerClient) -> str:
        health = ServerHealth(server)
        health.problem = "old"
        await health.look()
        return health.problem

    assert live.ask(look) == ""


def test_entries_of_workers_and_delayed_entries_do_not_age(stream_of_ten: Live) -> None:
    client = stream_of_ten.client
    for number, consumer in ((1, "host-12-0123abcd"), (2, "-")):
        leased = ("XCLAIM", "s", "g", consumer, 0, f"{number}-0", "IDLE", 86_370_000)
        client.execute_command(*leased)
        (group,) = stream_of_ten.ask(watched)
        assert group.oldest_idle_ms is None
        client.xack("s", "g", f"{number}-0")


def test_a_group_without_consumers_is_unread_and_one_that_is_read_is_not(
    stream_of_ten: Live,
) -> None:
    client = stream_of_ten.client
    client.xgroup_create("s", "forgotten", id="0")
    client.xgroup_create("s", "done", id="$")
    client.xgroup_create("jobs:delayed", "penstock", id="0", mkstream=True)
    client.xadd("jobs:delayed", {"n": 1})
    found = {one.group: one.unread for one in stream_of_ten.ask(watched)}
    assert found == {b"g": None, b"forgotten": 10}


def test_a_group_whose_consumers_are_silent_is_unread(
    stream_of_ten: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_watch, "UNREAD_MS", 0)
    (group,) = stream_of_ten.ask(watched)
    assert (group.group, group.unread) == (b"g", 6)


def test_the_time_of_an_fsync_is_that_of_the_log(tmp_path: Path) -> None:
    async def look(server: ServerClient) -> str:
        figures = ServerFigures(server, StreamCatalogue(server, GroupHistory()))
        await figures.look()
        return figures.text("fsync")

    with running_penstock("--appendfsync", "always", data=tmp_path) as server:
        with server.client() as client:
            client.xadd("s", {"n": 1})
        found = Live("penstock", server.port, None).ask(look)
    assert re.fullmatch(r"[\d,]+\.\d ms", found)
