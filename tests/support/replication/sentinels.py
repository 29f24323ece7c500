"""Two or three servers, of penstock or of Redis, under three real Sentinels.

Everybody reaches a server through its proxy (proxy.py), which can be cut. It has three ways in:

    peers   the port that the server announces: for Sentinels and the other servers
    near    for clients that may be cut off together with it
    far     for all other clients

A test can also connect directly.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from tests.support.replication.links import QUICK, eventually, linked, online
from tests.support.replication.proxy import Proxy
from tests.support.servers.durable_redis import DurableRedis, running_durable_redis
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.redis_server import free_port, redis_program_or_none

NAME = "queue"
QUORUM = 2
SENTINELS = 3
DOWN_AFTER_MS = 1500
FAILOVER_MS = 4000
LOG_LINES = 20
PENSTOCK, REDIS = "penstock", "Redis"

Server = PenstockServer | DurableRedis


class Node:
    """One server and its proxy."""

    def __init__(self, server: Server, proxy: Proxy) -> None:
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

    def heal(self) -> None:
        """Undo all faults."""
        if self.server.process.poll() is None:
            self.server.process.send_signal(signal.SIGCONT)
        else:
            self.restart()
        self.proxy.heal()


class Group:
    """The servers, and a client of the Sentinels."""

    def __init__(self, nodes: list[Node], ports: list[int], logs: list[Path]) -> None:
        self.nodes = nodes
        self._logs = logs
        self.addresses = [("127.0.0.1", port) for port in ports]
        self.sentinel: Any = Sentinel(self.addresses, socket_timeout=2)  # type: ignore[no-untyped-call]

    @property
    def url(self) -> str:
        """The URL that penstock's programs take."""
        hosts = ",".join(f"{host}:{port}" for host, port in self.addresses)
        return f"redis+sentinel://{hosts}/{NAME}"

    def ends_of_logs(self) -> str:
        """The last lines of each Sentinel, to explain a failure."""
        ends = [log.read_text().splitlines()[-LOG_LINES:] for log in self._logs]
        return "\n".join(line for lines in ends for line in (*lines, ""))

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
        """Undo all faults, and wait until all servers follow one primary; return that."""
        for node in self.nodes:
            node.heal()

        def is_whole() -> bool:
            primary = self.primary()
            with primary.client() as client:
                role = client.execute_command("ROLE")
            # A server that is named may still be a replica for a moment.
            return role[0] in (b"master", "master") and len(role[2]) == len(self.nodes) - 1

        eventually(is_whole, "one primary that all others follow")
        return self.primary()


@contextmanager
def running_group(
    folder: Path, settings: str, servers: int = 3, kind: str = PENSTOCK, login: str = ""
) -> Iterator[Group]:
    """Start everything. `settings`: lines of the servers' configuration files; `login`: of the Sentinels'."""
    with ExitStack() as stack:
        nodes: list[Node] = []
        for number in range(servers):
            proxy = stack.enter_context(Proxy("peers", "near", "far"))
            lines = f"replica-announce-port {proxy.port}\n{settings}"
            if nodes:
                lines += f"replicaof 127.0.0.1 {nodes[0].proxy.port}\n"
            server = _running_server(kind, lines, folder / f"data{number}")
            nodes.append(Node(stack.enter_context(server), proxy))
        for node in nodes[1:]:
            with node.client() as client:
                linked(client)
        with nodes[0].client() as client:
            online(client, servers - 1)
        first = nodes[0].proxy.port
        logs = [folder / f"sentinel{number}.log" for number in range(SENTINELS)]
        ports = [stack.enter_context(_running_sentinel(first, log, login)) for log in logs]
        group = Group(nodes, ports, logs)
        eventually(lambda: group.primary() is nodes[0], "the Sentinels know the primary")
        for port in ports:
            eventually(lambda: _knows_all(port, servers), "each Sentinel knows all")  # noqa: B023
        yield group


def _running_server(kind: str, lines: str, data: Path) -> AbstractContextManager[Server]:
    if kind == PENSTOCK:
        return running_penstock(*QUICK, file=lines, data=data)
    quick = "".join(
        f"{name.removeprefix('--')} {value}\n"
        for name, value in zip(QUICK[::2], QUICK[1::2], strict=True)
    )
    return running_durable_redis(data, quick + lines)


def _knows_all(port: int, servers: int) -> bool:
    """Tell whether a Sentinel has a quorum and has seen every replica."""
    with redis.Redis(port=port) as client:
        client.execute_command("SENTINEL", "CKQUORUM", NAME)
        known = client.sentinel_master(NAME)
    return bool(
        known["num-slaves"] == servers - 1 and known["num-other-sentinels"] == SENTINELS - 1
    )


@contextmanager
def _running_sentinel(primary_port: int, log: Path, login: str) -> Iterator[int]:
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
            f"{login}"
        )
        with log.open("wb") as output:
            process = subprocess.Popen(
                [program, str(file), "--sentinel"], stdout=output, start_new_session=True
            )
        try:
            yield port
        finally:
            process.terminate()
            process.wait(timeout=20)
