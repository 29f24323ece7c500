"""Three servers under real Sentinels; the primary is killed, stopped and isolated while clients work.

With `min-replicas-ack` at the number of replicas, nothing that was acknowledged may be lost: an entry whose
XADD was answered is there, and an entry whose XACK was answered is not pending again. Without it an isolated
primary goes on taking writes that the failover then drops: the test must see that loss, or it sees nothing.
"""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from penstock.cli.connect import ServerConnection
from penstock.client.address import parse_url
from penstock.spark.connection import Servers, StreamName
from penstock.spark.place import Place
from penstock.web.server.links import SingleLink
from tests.conftest import NO_REDIS
from tests.support.campaign import SOAK, cells, seed
from tests.support.replication.links import eventually, same
from tests.support.replication.sentinels import NAME, Node, Trio, running_trio
from tests.support.servers.redis_server import redis_program_or_none

STRICT = "appendfsync always\nmin-replicas-ack 2\nmin-replicas-ack-timeout 500\n"
STRICT_ON_DISK = STRICT + "min-replicas-ack-fsync yes\n"
WEAK = "appendfsync everysec\n"
FAULTS = ("kill", "stop", "isolate", "failover")
ROUNDS = 12 if SOAK else 2
ENOUGH = 30  # answered writes before and after each fault


class Producer(threading.Thread):
    """Adds entries to the server that the Sentinels name, and acks them in a group. Notes every answer."""

    def __init__(self, trio: Trio, name: str) -> None:
        super().__init__(daemon=True)
        self._trio = trio
        self._name = name
        self._ends = threading.Event()
        self.added: list[bytes] = []
        self.acked: list[bytes] = []

    def run(self) -> None:
        number = 0
        client: Any | None = None
        while not self._ends.is_set():
            try:
                if client is None:
                    client = self._trio.primary().client()
                number += 1
                entry = client.xadd("s", {"from": self._name, "n": number})
                self.added.append(entry)
                for _, entries in client.xreadgroup("g", self._name, {"s": ">"}, count=3) or ():
                    for found, _ in entries:
                        if client.xack("s", "g", found):
                            self.acked.append(found)
            except redis.RedisError:
                if client is not None:
                    client.close()
                client = None
                time.sleep(0.02)
        if client is not None:
            client.close()

    def stop(self) -> None:
        self._ends.set()
        self.join()


def hurt(trio: Trio, fault: str) -> Node:
    """Do something to the primary; return it."""
    primary = trio.primary()
    if fault == "kill":
        primary.server.kill()
    elif fault == "stop":
        primary.server.process.send_signal(signal.SIGSTOP)
    elif fault == "isolate":
        primary.proxy.cut()
    else:
        with primary.client() as client:
            client.execute_command("FAILOVER", "TIMEOUT", 10000)
    return primary


def undo(node: Node, fault: str) -> None:
    if fault == "stop":
        node.server.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("acked_in", cells(["memory", "on disk"]))
def test_nothing_acknowledged_is_lost(tmp_path: Path, acked_in: str) -> None:
    if redis_program_or_none() is None:
        pytest.skip(NO_REDIS)
    dice = random.Random(seed())
    with running_trio(tmp_path, STRICT if acked_in == "memory" else STRICT_ON_DISK) as trio:
        with trio.primary().client() as client:
            eventually(lambda: client.xgroup_create("s", "g", mkstream=True))
        producers = [Producer(trio, f"p{number}") for number in range(3)]
        for producer in producers:
            producer.start()

        def count() -> int:
            return sum(len(producer.added) for producer in producers)

        first = list(FAULTS)
        dice.shuffle(first)
        for number in range(ROUNDS):
            fault = first[number] if number < len(first) else dice.choice(FAULTS)
            before = count()
            eventually(lambda: count() >= before + ENOUGH, "writes are answered")  # noqa: B023
            old = hurt(trio, fault)
            trio.wait_for_primary_other_than(old)
            undo(old, fault)
            trio.heal()
        before = count()
        eventually(lambda: count() >= before + ENOUGH, "writes are answered at the end")
        for producer in producers:
            producer.stop()
        primary = trio.heal()
        with primary.client() as client:
            for node in trio.nodes:
                with node.client() as other:
                    same(client, other)
            there = {entry for entry, _ in client.xrange("s")}
            pending = {
                row["message_id"] for row in client.xpending_range("s", "g", "-", "+", 10**6)
            }
        for producer in producers:
            assert [entry for entry in producer.added if entry not in there] == []
            assert [entry for entry in producer.acked if entry in pending] == []
            assert producer.added == sorted(producer.added, key=order)


def order(entry: bytes) -> tuple[int, int]:
    ms, _, number = entry.partition(b"-")
    return int(ms), int(number)


@pytest.mark.skipif(not SOAK, reason="make soak shows that the test above can see a loss")
def test_without_acks_the_writes_of_an_isolated_primary_are_lost(tmp_path: Path) -> None:
    """This shows that the test above can see a loss."""
    if redis_program_or_none() is None:
        pytest.skip(NO_REDIS)
    with running_trio(tmp_path, WEAK) as trio:
        old = trio.primary()
        with old.client() as client:
            client.xadd("s", {"from": "before"})
            old.proxy.cut()
            trio.wait_for_primary_other_than(old)
            lost = client.xadd("s", {"from": "isolated"})
        primary = trio.heal()
        with primary.client() as client:
            there = {entry for entry, _ in client.xrange("s")}
            assert len(there) == 1
            assert lost not in there


def test_with_acks_an_isolated_primary_takes_no_writes(tmp_path: Path) -> None:
    if redis_program_or_none() is None:
        pytest.skip(NO_REDIS)
    with running_trio(tmp_path, STRICT) as trio:
        old = trio.primary()
        with old.client() as client:
            eventually(lambda: client.xadd("s", {"from": "before"}))
            old.proxy.cut()
            with pytest.raises(redis.RedisError, match="Not enough good replicas"):
                client.xadd("s", {"from": "isolated"})
            assert client.ping()
        trio.wait_for_primary_other_than(old)
        finds_the_primary(trio, old)


def finds_the_primary(trio: Trio, old: Node) -> None:
    """The command line, Spark and the dashboard connect to the server that the Sentinels name."""
    hosts = ",".join(f"{host}:{port}" for host, port in trio.addresses)
    url = f"redis+sentinel://{hosts}/{NAME}"
    words = ("CONFIG", "GET", "replica-announce-port")
    new = str(trio.primary().proxy.port).encode()
    assert new != str(old.proxy.port).encode()
    with ServerConnection(url) as connection:
        assert connection.ask(*words) == [b"replica-announce-port", new]
    with Servers(Place((parse_url(url),))) as servers:
        assert servers.ask(StreamName(b"s"), "XLEN", "s") >= 1

    async def ask() -> object:
        link = SingleLink(url)
        try:
            return await link.send([words])
        finally:
            await link.close()

    assert asyncio.run(ask()) == [[b"replica-announce-port", new]]
