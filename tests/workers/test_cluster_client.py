"""The client of a Redis Cluster when nodes move slots, know old maps, or fail."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.errors import CommandError, ConfigError, ConnectionLost
from penstock.work.backend import PASSING, ServerBackend
from tests.support.servers.redis_server import free_port
from tests.support.work.nodes import Answer, Command, Node, slots_of
from tests.support.work.waiting import SECONDS_MAX

HOST = "127.0.0.1"
LAST = 16383
ADD = ("XADD", "{a}s", "*", "f", "v")
ADDED = b"$3\r\n1-0\r\n"


@pytest.fixture
def seed() -> Iterator[Node]:
    with Node() as node:
        yield node


@pytest.fixture
def other() -> Iterator[Node]:
    with Node() as node:
        yield node


@pytest.fixture
def backend(seed: Node) -> Iterator[ServerBackend]:
    made = ServerBackend(f"redis://{HOST}:{seed.port}")
    yield made
    made.close()


def answers(slots: bytes, reply: bytes) -> Answer:
    """A node with a map that says this to everything else."""
    return lambda command: slots if command[0] == b"CLUSTER" else reply


def moved(port: int, host: str = HOST) -> bytes:
    return b"-MOVED 15495 %b:%d\r\n" % (host.encode(), port)


@pytest.mark.parametrize("host", [HOST, ""])
def test_moved_is_followed_though_the_map_is_old(
    seed: Node, other: Node, backend: ServerBackend, host: str
) -> None:
    seed.answer = answers(slots_of((0, LAST, HOST, seed.port)), moved(other.port, host))
    other.answer = answers(b"-ERR nobody asks\r\n", ADDED)
    assert backend.ask(*ADD) == b"1-0"
    before = len(seed.commands)
    assert backend.ask(*ADD) == b"1-0"
    assert len(seed.commands) == before  # the right node was noted
    assert other.names() == [b"XADD", b"XADD"]


def test_a_slot_that_no_node_admits_to_have_is_an_error_that_passes(
    seed: Node, other: Node, backend: ServerBackend
) -> None:
    seed.answer = answers(slots_of((0, LAST, HOST, seed.port)), moved(other.port))
    other.answer = answers(b"", moved(seed.port))
    with pytest.raises(CommandError) as refused:
        backend.ask(*ADD)
    assert refused.value.code == "MOVED"
    seed.answer = other.answer = lambda _: b"-ASK 15495 127.0.0.1:%d\r\n" % seed.port
    with pytest.raises(CommandError) as refused:
        backend.ask(*ADD)
    assert refused.value.code == "ASK"
    assert {"MOVED", "ASK"} <= PASSING


@pytest.mark.parametrize("code", ["BUSYGROUP", "NOGROUP", "NOTOWNER", "WRONGTYPE"])
def test_an_error_behind_asking_keeps_its_code(
    seed: Node, other: Node, backend: ServerBackend, code: str
) -> None:
    seed.answer = answers(slots_of((0, LAST, HOST, seed.port)), moved(seed.port))
    with pytest.raises(CommandError):
        backend.ask(*ADD)  # now it is known to be a cluster
    seed.answer = answers(b"", b"-ASK 15495 127.0.0.1:%d\r\n" % other.port)

    def answer(command: Command) -> bytes:
        return b"+OK\r\n" if command == [b"ASKING"] else b"-%b a test\r\n" % code.encode()

    other.answer = answer
    with pytest.raises(CommandError) as refused:
        backend.ask("XGROUP", "CREATE", "{a}s", "g", "0")
    assert refused.value.code == code
    other.answer = lambda _: b"+OK\r\n"
    assert backend.ask("XGROUP", "CREATE", "{a}s", "g", "0") == b"OK"
    assert other.names() == [b"ASKING", b"XGROUP"] * 2


def test_a_slot_that_the_map_lacks_is_asked_for_again(seed: Node, backend: ServerBackend) -> None:
    half = slots_of((0, 5000, HOST, seed.port))
    first = [moved(seed.port)]
    seed.answer = lambda command: (
        half if command[0] == b"CLUSTER" else first.pop() if first else ADDED
    )
    for _ in range(2):
        with pytest.raises(CommandError) as refused:
            backend.ask(*ADD)
        assert refused.value.code == "CLUSTERDOWN"
    seed.answer = answers(slots_of((0, LAST, HOST, seed.port)), ADDED)
    assert backend.ask(*ADD) == b"1-0"


def test_another_node_is_asked_for_the_map_after_a_failure(
    seed: Node, other: Node, backend: ServerBackend
) -> None:
    """The seed still knows a node that is gone; the other has taken over its slots."""
    gone = free_port()
    old = slots_of((0, 100, HOST, other.port), (101, LAST, HOST, gone))
    seed.answer = answers(old, moved(gone))
    other.answer = answers(slots_of((0, LAST, HOST, other.port)), ADDED)
    with pytest.raises(ConnectionLost):
        backend.ask(*ADD)
    assert backend.ask(*ADD) == b"1-0"


def test_a_cluster_is_found_through_a_unix_socket(tmp_path: Path, other: Node) -> None:
    with Node(tmp_path / "socket") as near:

        def answer(command: Command) -> bytes:
            if command[0] == b"INFO":
                return b"$17\r\ncluster_enabled:1\r\n"
            if command[0] == b"CLUSTER":
                return slots_of((0, LAST, "", other.port))
            return b"-ERR unknown command\r\n"

        near.answer = answer
        other.answer = lambda _: ADDED
        backend = ServerBackend(f"unix://{tmp_path}/socket")
        with pytest.raises(ConfigError, match=r"'\{s\}'"):
            backend.check(["s:0", "s:0:dead"], "s")
        assert backend.ask(*ADD) == b"1-0"
        backend.close()


def test_threads_that_find_out_together_that_it_is_a_cluster_all_send(
    seed: Node, other: Node, backend: ServerBackend
) -> None:
    together = threading.Barrier(8)
    slots = slots_of((0, LAST, HOST, other.port))

    def answer(command: Command) -> bytes:
        if command[0] == b"CLUSTER":
            return slots
        together.wait(SECONDS_MAX)
        return moved(other.port)

    seed.answer = answer
    other.answer = lambda _: ADDED
    with ThreadPoolExecutor(8) as threads:
        sent = [threads.submit(backend.ask, *ADD) for _ in range(8)]
        assert [one.result() for one in sent] == [b"1-0"] * 8


def test_a_lost_reply_at_the_start_does_not_hide_the_cluster(
    seed: Node, backend: ServerBackend
) -> None:
    lost = [True]

    def answer(command: Command) -> bytes:
        if command[0] == b"INFO":
            return b"" if lost.pop() else b"$17\r\ncluster_enabled:1\r\n"
        return b"-ERR unknown command\r\n"

    seed.answer = answer
    with pytest.raises(ConnectionLost):
        backend.check(["s", "s:dead"], "s")
    lost.append(False)
    with pytest.raises(ConfigError, match="hash tag"):
        backend.check(["s", "s:dead"], "s")
