"""Three penstock servers under three real Sentinels.

Sentinels and servers reach each server through a proxy (proxy.py), which can be cut. Clients connect
directly, so a test can isolate a primary together with some of its clients.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from tests.support.replication.links import QUICK, eventually, linked, online
from tests.support.replication.proxy import Proxy
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.redis_server import free_port, redis_program_or_none

NAME = "queue"
QUORUM = 2
DOWN_AFTER_MS = 1000
FAILOVER_MS = 4000


class Node:
    """One server and its proxy."""

    def __init__(self, server: PenstockServer, proxy: Proxy) -> None:
        self.server = server
        self.proxy = proxy
        proxy.target = server.port

    def client(self) -> Any:
        """A client that connects directly, and never retries."""
        return redis.Redis(port=self.server.port, socket_timeout=5, retry=Retry(NoBackoff(), 0))

    def restart(self) -> None:
        """Start the server again, on its data."""
        self.server.start()
        self.proxy.target = self.server.port


class Trio:
    """The three servers, and a client of the Sentinels."""

    def __init__(self, nodes: list[Node], ports: list[int]) -> None:
        self.nodes = nodes
        self.addresses = [("127.0.0.1", port) for port in ports]
        self.sentinel: Any = Sentinel(self.addresses, socket_timeout=2)  # type: ignore[no-untyped-call]

    def primary(self) -> Node:
        """The server that the Sentinels name."""
        _, port = self.sentinel.discover_master(NAME)
        return next(node for node in self.nodes if node.proxy.port == port)

    def wait_for_primary_other_than(self, old: Node) -> Node:
        """Wait until the Sentinels name another server, which is a primary."""
        found: list[Node] = []

        def is_other() -> bool:
            node = self.primary()
            found[:] = [node]
            with node.client() as client:
                return node is not old and client.info("replication")["role"] == "master"

        eventually(is_other, "another primary")
        return found[0]

    def heal(self) -> Node:
        """Undo all faults, and wait until two replicas follow one primary; return that."""
        for node in self.nodes:
            if node.server.process.poll() is not None:
                node.restart()
            node.proxy.heal()

        def is_whole() -> bool:
            primary = self.primary()
            with primary.client() as client:
                role = client.execute_command("ROLE")
            # A server that is named may still be a replica for a moment.
            return role[0] in (b"master", "master") and len(role[2]) == 2

        eventually(is_whole, "one primary with two replicas")
        return self.primary()


@contextmanager
def running_trio(folder: Path, settings: str) -> Iterator[Trio]:
    """Start everything. `settings`: lines of the servers' configuration files."""
    with ExitStack() as stack:
        nodes: list[Node] = []
        for number in range(3):
            proxy = stack.enter_context(Proxy())
            lines = f"replica-announce-port {proxy.port}\n{settings}"
            if nodes:
                lines += f"replicaof 127.0.0.1 {nodes[0].proxy.port}\n"
            server = running_penstock(*QUICK, file=lines, data=folder / f"data{number}")
            nodes.append(Node(stack.enter_context(server), proxy))
        for node in nodes[1:]:
            with node.client() as client:
                linked(client)
        with nodes[0].client() as client:
            online(client, 2)
        ports = [stack.enter_context(_running_sentinel(nodes[0].proxy.port)) for _ in range(3)]
        trio = Trio(nodes, ports)
        eventually(lambda: trio.primary() is nodes[0], "the Sentinels know the primary")
        eventually(lambda: len(trio.sentinel.discover_slaves(NAME)) == 2, "and the replicas")
        for port in ports:
            with redis.Redis(port=port) as client:
                question = ("SENTINEL", "CKQUORUM", NAME)
                eventually(lambda: client.execute_command(*question), "they have a quorum")  # noqa: B023
        yield trio


@contextmanager
def _running_sentinel(primary_port: int) -> Iterator[int]:
    program = redis_program_or_none()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="penstock-sentinel-") as folder:
        port = free_port()
        file = Path(folder, "sentinel.conf")
        file.write_text(
            f"port {port}\ndir {folder}\n"
            f"sentinel monitor {NAME} 127.0.0.1 {primary_port} {QUORUM}\n"
            f"sentinel down-after-milliseconds {NAME} {DOWN_AFTER_MS}\n"
            f"sentinel failover-timeout {NAME} {FAILOVER_MS}\n"
        )
        process = subprocess.Popen(
            [program, str(file), "--sentinel"], stdout=subprocess.DEVNULL, start_new_session=True
        )
        try:
            yield port
        finally:
            process.terminate()
            process.wait(timeout=20)
