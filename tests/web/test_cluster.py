"""A cluster, shown as one server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest

from penstock.client.address import BadUrl
from penstock.web.changes.entry_changes import plan_trim_to_length
from penstock.web.model.catalogue import StreamCatalogue, names_of
from penstock.web.model.exports import ExportSelection, export
from penstock.web.model.facts import one_stream
from penstock.web.model.history import GroupHistory
from penstock.web.model.structure import read_window
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient, ServerUnreachable
from tests.support.servers.loops import run_apart
from tests.support.servers.redis_cluster import Cluster, cluster_problem_or_none, running_cluster
from tests.support.servers.redis_server import free_port

STREAMS = 30


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    problem = cluster_problem_or_none()
    if problem is not None:
        pytest.skip(problem)
    with running_cluster() as found:
        client = found.client()
        for number in range(STREAMS):
            client.xadd(f"s:{number:02}", {"n": number})
        client.close()
        yield found


def run(port: int, act: Callable[[ServerClient], Awaitable[None]]) -> None:
    async def inside() -> None:
        server = ServerClient(f"redis://127.0.0.1:{port}", cluster=True)
        try:
            await act(server)
        finally:
            await server.close()

    run_apart(inside())


def test_streams_of_all_nodes_are_in_one_table(cluster: Cluster) -> None:
    async def act(server: ServerClient) -> None:
        catalogue = StreamCatalogue(server, GroupHistory())
        await catalogue.sweep()
        page = catalogue.page("", "name", False, 1, 50)
        assert names_of(page.rows) == [b"s:%02d" % number for number in range(STREAMS)]
        assert await server.now_ms() > 0

    run(cluster.ports[0], act)


def test_a_stream_on_any_node_is_read(cluster: Cluster) -> None:
    async def act(server: ServerClient) -> None:
        for number in (0, 7, 29):
            name = b"s:%02d" % number
            facts = await one_stream(server, name)
            assert (facts.length, facts.last and facts.last.fields) == (1, [(b"n", b"%d" % number)])
            data = b"".join(
                [piece async for piece in export(server, ExportSelection(name), "jsonl")]
            )
            assert data.count(b"\n") == 1
        with pytest.raises(Refused, match="no such key"):
            await one_stream(server, b"none")

    run(cluster.ports[1], act)


def test_an_unknown_command_is_handled(cluster: Cluster) -> None:
    async def act(server: ServerClient) -> None:
        with pytest.raises(Refused, match="unknown command"):
            await server.ask("PENSTOCK", "NODES", "s:03", "-", "+")
        facts = await one_stream(server, b"s:03")
        window = await read_window(server, facts)
        assert [node.master for node in window.nodes] == [facts.last_id]
        change = await plan_trim_to_length(server, facts, 0)
        assert change.effects[0].startswith("deletes 1 of 1 entries")

    run(cluster.ports[2], act)


def test_an_unreachable_cluster_is_reported() -> None:
    async def act(server: ServerClient) -> None:
        with pytest.raises(ServerUnreachable, match="cannot reach cluster at"):
            await server.ask("PING")
        with pytest.raises(ServerUnreachable, match="cannot reach cluster at"):
            await server.scan(b"0")

    run(free_port(), act)


def test_a_cluster_has_one_database() -> None:
    with pytest.raises(BadUrl, match="one database"):
        ServerClient("redis://127.0.0.1:1/2", cluster=True)
