"""Two or three servers, of penstock or of Redis, under three real Sentinels.

Everybody reaches a server through its proxy (proxy.py), which can be cut. It has three ways in:

    peers   the port that the server announces: for Sentinels and the other servers
    near    for clients that may be cut off together with it
    far     for all other clients

A test can also connect directly.

In the texts of configuration files, `10.0.0.N 6379` is the server with the number N, as in
docs/high-availability.md. `blocks` gives the texts of that page.
"""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from tests.support.guide import blocks_of
from tests.support.replication.links import QUICK, SECONDS_MAX, eventually, linked, online
from tests.support.replication.proxy import Proxy
from tests.support.servers.durable_redis import DurableRedis, running_durable_redis
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.redis_server import (
    PORTS_TRIED_MAX,
    answers,
    end,
    free_port,
    redis_program_or_none,
)

PAGE = Path(__file__).resolve().parents[3] / "docs" / "high-availability.md"
NAME = "queue"
SENTINELS = 3
LOG_LINES = 20
PENSTOCK, REDIS = "penstock", "Redis"
FOLLOWS = "replicaof 10.0.0.1 6379\n"
# Each Sentinel's file. Faster than that of the page.
WATCHES = f"""\
sentinel monitor {NAME} 10.0.0.1 6379 2
sentinel down-after-milliseconds {NAME} 1500
sentinel failover-timeout {NAME} 4000
"""

Server = PenstockServer | DurableRedis


def blocks(heading: str) -> list[str]:
    """The fenced blocks of a section of docs/high-availability.md."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [block.text for block in blocks_of(section)]


class Node:
    """One server and its proxy. `password`: of its clients."""

    def __init__(self, server: Server, proxy: Proxy, password: str | None = None) -> None:
        self.server = server
        self.proxy = proxy
        self._password = password
        proxy.target = server.port

    def client(self) -> Any:
        """A client that connects directly, and never retries."""
        return redis.Redis(
            port=self.server.port,
            password=self._password,
            socket_timeout=5,
            retry=Retry(NoBackoff(), 0),
        )

    def role(self) -> str:
        """The first word of ROLE."""
        with self.client() as client:
            word: bytes = client.execute_command("ROLE")[0]
        return word.decode()

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
    """The servers, and a client of the Sentinels. `seconds_max`: how long a failover may take."""

    def __init__(
        self, nodes: list[Node], ports: list[int], logs: list[Path], seconds_max: float
    ) -> None:
        self.nodes = nodes
        self.seconds_max = seconds_max
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
            return node is not old and node.role() == "master"

        eventually(is_other, "another primary", self.seconds_max)
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

        eventually(is_whole, "one primary that all others follow", self.seconds_max)
        return self.primary()


def here(text: str, proxies: Sequence[Proxy]) -> str:
    """A text with the addresses of this machine."""
    for number, proxy in enumerate(proxies, start=1):
        text = text.replace(f"10.0.0.{number} 6379", f"127.0.0.1 {proxy.port}")
    assert "10.0.0." not in text
    return text


@contextmanager
def running_nodes(
    folder: Path,
    settings: str,
    servers: int = 3,
    kind: str = PENSTOCK,
    password: str | None = None,
) -> Iterator[list[Node]]:
    """Start servers that follow the first one. `settings`: lines of their configuration files."""
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy("peers", "near", "far")) for _ in range(servers)]
        if "replicaof" not in settings:
            settings += FOLLOWS
        nodes: list[Node] = []
        for number, proxy in enumerate(proxies):
            text = settings if nodes else re.sub(r"^replicaof.*\n", "", settings, flags=re.M)
            lines = f"replica-announce-port {proxy.port}\n{here(text, proxies)}"
            server = stack.enter_context(_running_server(kind, lines, folder / f"data{number}"))
            nodes.append(Node(server, proxy, password))
        for node in nodes[1:]:
            with node.client() as client:
                linked(client)
        with nodes[0].client() as client:
            online(client, servers - 1)
        yield nodes


@contextmanager
def running_group(
    folder: Path,
    settings: str,
    servers: int = 3,
    kind: str = PENSTOCK,
    password: str | None = None,
    watches: str = WATCHES,
) -> Iterator[Group]:
    """Start everything. `settings`, `watches`: lines of the files of the servers and of the Sentinels."""
    with ExitStack() as stack:
        nodes = stack.enter_context(running_nodes(folder, settings, servers, kind, password))
        lines = here(watches, [node.proxy for node in nodes])
        logs = [folder / f"sentinel{number}.log" for number in range(SENTINELS)]
        ports = [stack.enter_context(running_sentinel(lines, log)) for log in logs]
        group = Group(nodes, ports, logs, _seconds_max(lines))
        eventually(lambda: group.primary() is nodes[0], "the Sentinels know the primary")
        for port in ports:
            eventually(lambda: _knows_all(port, servers), "each Sentinel knows all")  # noqa: B023
        yield group


def _seconds_max(watches: str) -> float:
    """Sentinels try again after twice their timeout, if their first election or promotion fails."""
    times_ms = re.findall(r"^sentinel (?:down-after-|failover-)\w+ \w+ (\d+)$", watches, re.M)
    return SECONDS_MAX + 3 * sum(map(int, times_ms)) / 1000


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
def running_sentinel(
    lines: str, log: Path, port_line: str = "port", **options: Any
) -> Iterator[int]:
    """Start a Sentinel; its port. `port_line`: `tls-port` for TLS; `options`: of a client that reaches it."""
    program = redis_program_or_none()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="penstock-sentinel-") as folder:
        file = Path(folder, "sentinel.conf")
        for _ in range(PORTS_TRIED_MAX):
            port = free_port()
            file.write_text(f"dir {folder}\n{port_line} {port}\n{lines}")
            with log.open("ab") as output:
                process = subprocess.Popen(
                    [program, str(file), "--sentinel"],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            try:
                if answers(process, port, **options):
                    yield port
                    return
            finally:
                end(process)
    raise RuntimeError(f"redis-sentinel does not start:\n{log.read_text()}")
