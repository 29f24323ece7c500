"""Two or three servers under real Sentinels; faults hit the primary while clients work.

With `min-replicas-ack` at the number of replicas, nothing that was acknowledged may be lost: an entry whose
XADD was answered is there, and an entry whose XACK was answered is not delivered again. Weaker settings, on
penstock and on Redis, lose entries under certain faults: the campaign must see that, or it sees nothing.

`make test` runs one cell of either kind, and `make soak` the whole matrix. benchmarks/failover.py writes it
into docs/high-availability.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.cli.connect import ServerConnection
from penstock.client.address import parse_url
from penstock.spark.connection import Servers, StreamName
from penstock.spark.place import Place
from penstock.web.server.links import SingleLink
from tests.support.campaign import SOAK, cells
from tests.support.failover.campaign import run_faults, running_column
from tests.support.failover.columns import ACK, ACK_ONE, COLUMNS, NONE, TO_WRITE, WAIT, Column
from tests.support.failover.faults import (
    PLANNED,
    SILENT,
    WITH_CLIENTS,
    WITH_REPLICA,
    Fault,
    faults_of,
)
from tests.support.replication.links import eventually
from tests.support.replication.sentinels import WATCHES, Group, Node, blocks, running_group
from tests.support.servers.programs import REDIS_7_0

Cell = tuple[Column, Sequence[Fault]]

STRICT = [column for column in COLUMNS if column.setting == ACK]
WEAK = [column for column in COLUMNS if column.setting != ACK]
# A fault under which entries are lost for certain: what the setting does not notice.
LOSES = {NONE: WITH_CLIENTS, TO_WRITE: SILENT, WAIT: WITH_REPLICA, ACK_ONE: WITH_REPLICA}


WHO = ("CONFIG", "GET", "replica-announce-port")


def loses(column: Column, fault: Fault) -> bool:
    return LOSES[column.setting] is fault


def chosen(columns: Sequence[Column], only_losing: bool = False) -> list[Cell]:
    """All faults of each column; in `make test` one fault of one column."""
    if SOAK:
        return [(column, faults_of(column.servers)) for column in columns]
    single = [
        (column, [fault])
        for column in columns
        for fault in faults_of(column.servers)
        if not only_losing or loses(column, fault)
    ]
    return cells(single)


def name_of(cell: Cell) -> str:
    column, faults = cell
    return f"{column}, {faults[0] if len(faults) == 1 else 'all faults'}"


@pytest.mark.parametrize("cell", chosen(STRICT), ids=name_of)
def test_with_min_replicas_ack_nothing_acknowledged_is_lost(tmp_path: Path, cell: Cell) -> None:
    REDIS_7_0.need()
    column, faults = cell
    with running_column(column, tmp_path) as group:
        found = run_faults(column, group, faults)
        finds_the_primary(group)
    for name, outcome in found.items():
        assert outcome.acknowledged, name
        assert (outcome.lost, outcome.redelivered, outcome.out_of_order) == (0, 0, 0), (
            f"{name}: {outcome}"
        )


@pytest.mark.parametrize("cell", chosen(WEAK, only_losing=True), ids=name_of)
def test_weaker_settings_lose_what_was_acknowledged(tmp_path: Path, cell: Cell) -> None:
    REDIS_7_0.need()
    column, faults = cell
    with running_column(column, tmp_path) as group:
        found = run_faults(column, group, faults)
    for fault in faults:
        if loses(column, fault):
            assert found[fault.name].lost, f"{fault}: {found[fault.name]}"


@pytest.mark.parametrize("column", cells(STRICT), ids=str)
def test_a_failover_that_the_operator_asks_sentinel_for_loses_nothing(
    tmp_path: Path, column: Column
) -> None:
    REDIS_7_0.need()
    with running_column(column, tmp_path) as group:
        [outcome] = run_faults(column, group, [PLANNED]).values()
    assert (outcome.lost, outcome.redelivered, outcome.out_of_order) == (0, 0, 0), outcome


def test_sentinels_and_replicas_work_as_users_with_few_rights(tmp_path: Path) -> None:
    REDIS_7_0.need()
    _, _, users, login, _ = blocks("A trio under Sentinel")
    with running_group(tmp_path, users, watches=WATCHES + login) as group:
        old = group.primary()
        old.server.kill()
        group.wait_for_primary_other_than(old)
        primary = group.heal()
        assert primary is not old
        with primary.client() as client:
            assert client.xadd("s", {"k": "v"})
            clients = client.client_list()
        replicas = [one["user"] for one in clients if "S" in one["flags"]]
        sentinels = [one["user"] for one in clients if one["name"].startswith("sentinel-")]
        assert (set(replicas), set(sentinels)) == ({"replica"}, {"sentinel"})
        for node in group.nodes:
            with node.client() as client:
                eventually(lambda: client.xlen("s") == 1, "the replicas follow")


def test_the_dashboard_keeps_one_link_through_a_failover(tmp_path: Path) -> None:
    REDIS_7_0.need()
    with running_group(tmp_path, "", servers=2) as group, asyncio.Runner() as runner:
        link = SingleLink(group.url)
        old = group.primary()
        assert runner.run(link.send([WHO])) == [answer_of(old)]
        old.server.kill()
        new = group.wait_for_primary_other_than(old)
        eventually(lambda: runner.run(link.send([WHO])) == [answer_of(new)], "the link follows")
        group.heal()
        assert runner.run(link.send([("SET", "k", "v"), WHO])) == [b"OK", answer_of(new)]
        runner.run(link.close())


def answer_of(node: Node) -> list[bytes]:
    """A server says which one it is."""
    return [b"replica-announce-port", str(node.proxy.port).encode()]


def finds_the_primary(group: Group) -> None:
    """The command line, Spark and the dashboard connect to the server that the Sentinels name."""
    answer = answer_of(group.primary())
    with ServerConnection(group.url) as connection:
        assert connection.ask(*WHO) == answer
    with Servers(Place((parse_url(group.url),))) as servers:
        assert servers.ask(StreamName(b"s0"), "XLEN", "s0") >= 1

    async def ask() -> object:
        link = SingleLink(group.url)
        try:
            return await link.send([WHO])
        finally:
            await link.close()

    eventually(lambda: asyncio.run(ask()) == [answer], "the dashboard follows")
