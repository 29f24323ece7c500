"""Workers on a real Redis Cluster of three nodes: hash tags, refusals, slots that move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from redis.crc import key_slot

from penstock.errors import CommandError, ConfigError, ConnectionLost
from penstock.work import App, Message
from tests.support.servers.redis_cluster import Cluster, cluster_problem_or_none, running_cluster
from tests.support.work.waiting import wait_until


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    problem = cluster_problem_or_none()
    if problem is not None:
        pytest.skip(problem)
    with running_cluster() as made:
        yield made


@pytest.fixture
def app(cluster: Cluster) -> Iterator[App]:
    made = App(f"redis://127.0.0.1:{cluster.ports[0]}", group="g")
    yield made
    made.close()


def test_handlers_run_where_their_streams_share_a_hash_tag(app: App) -> None:
    ran: list[int] = []
    receipts: list[int] = []

    @app.on("{shop}jobs", attempts=2, backoff=(0.01, 0.02))
    def job(number: int, msg: Message) -> None:
        if number == 3:
            raise ValueError("a test")
        msg.send("{shop}keyed", {"key": number, "number": number})

    @app.on("{shop}keyed", key="key", partitions=2)
    def keyed(payload: dict[str, int]) -> None:
        receipts.append(payload["number"])

    for name in ("{a}other", "{b}other", "{c}other"):  # on all nodes

        @app.on(name)
        def other(number: int) -> None:
            ran.append(number)

    assert job.send(1, dedup="one") is not None
    assert job.send(1, dedup="one") is None
    worker = app.worker()
    worker.start()
    job.send(2, delay=0.05)
    job.send(3)
    for number, name in enumerate(("{a}other", "{b}other", "{c}other")):
        app.handlers[name].send(number)
    wait_until(lambda: sorted(receipts) == [1, 2] and sorted(ran) == [0, 1, 2])
    wait_until(lambda: app.backend.ask("XLEN", "{shop}jobs:dead") == 1)
    assert worker.stop()
    assert app.backend.ask("XPENDING", "{shop}jobs", "g")[0] == 0


def test_a_stream_without_a_hash_tag_is_refused_at_the_start(app: App) -> None:
    @app.on("jobs")
    def job(number: int) -> None: ...

    with pytest.raises(
        ConfigError, match=r"'jobs' and 'jobs:dead' are on different nodes .* '{jobs}'"
    ):
        app.worker().start()


def test_a_partition_without_a_hash_tag_is_refused_with_the_name_of_its_handler(app: App) -> None:
    @app.on("jobs", key="key", partitions=2)
    def job(payload: dict[str, int]) -> None: ...

    with pytest.raises(ConfigError, match=r"'jobs:0' and 'jobs:0:dead' are .* '{jobs}'"):
        app.worker().start()


def test_what_is_sent_to_another_slot_fails_the_attempt(app: App) -> None:
    @app.on("{one}jobs", attempts=1)
    def job(number: int, msg: Message) -> None:
        msg.send("{two}out" if number == 1 else "{one}out", number)

    worker = app.worker()
    worker.start()
    for number in range(4):
        job.send(number)
    wait_until(lambda: app.backend.ask("XLEN", "{one}out") == 3)
    wait_until(lambda: app.backend.ask("XLEN", "{one}jobs:dead") == 1)
    assert worker.stop()
    [(_, fields)] = app.backend.ask("XRANGE", "{one}jobs:dead", "-", "+")
    assert any(piece.startswith(b"CommandError: CROSSSLOT") for piece in fields)


def test_workers_follow_a_slot_that_moves(app: App, cluster: Cluster) -> None:
    ran: set[int] = set()

    @app.on("{moving}jobs", lease=60, attempts=1)
    def job(number: int, msg: Message) -> None:
        ran.add(number)
        msg.send("{moving}out", number)

    worker = app.worker()
    worker.start()
    job.send(0)
    wait_until(lambda: ran == {0})
    nodes: list[Any] = [redis.Redis(port=port) for port in cluster.ports]
    names = [node.execute_command("CLUSTER", "MYID").decode() for node in nodes]
    slot = key_slot(b"{moving}")
    [at] = [at for at, node in enumerate(nodes) if _counts(node, slot)]
    to = (at + 1) % len(nodes)
    for rounds in range(1, 3):
        nodes[to].execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", names[at])
        nodes[at].execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", names[to])
        wait_until(lambda: _sends(job, 10 * rounds))  # noqa: B023
        for key in nodes[at].execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            nodes[at].execute_command("MIGRATE", "127.0.0.1", cluster.ports[to], key, 0, 5000)
        wait_until(lambda: _sends(job, 10 * rounds + 1))  # noqa: B023
        for node in (nodes[to], nodes[at]):
            node.execute_command("CLUSTER", "SETSLOT", slot, "NODE", names[to])
        wait_until(lambda: _sends(job, 10 * rounds + 2))  # noqa: B023
        wait_until(lambda: ran >= {10 * rounds, 10 * rounds + 1, 10 * rounds + 2})  # noqa: B023
        at, to = to, at
    assert worker.stop()
    assert app.backend.ask("XPENDING", "{moving}jobs", "g")[0] == 0
    assert app.backend.ask("XLEN", "{moving}jobs:dead") == 0
    found = [int(fields[1]) for _, fields in app.backend.ask("XRANGE", "{moving}out", "-", "+")]
    assert sorted(found) == sorted(ran)
    for node in nodes:
        node.close()


def _counts(node: Any, slot: int) -> int:
    return int(node.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot))


def _sends(job: Any, number: int) -> bool:
    """Send; False while the slot is being moved."""
    try:
        job.send(number)
    except (CommandError, ConnectionLost):
        return False
    return True
