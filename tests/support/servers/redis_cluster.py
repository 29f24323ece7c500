"""Runs a Redis Cluster of three nodes on loopback."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import redis
from redis.cluster import ClusterNode, RedisCluster

from tests.support.servers.redis_server import redis_program_or_none, running_redis

NODES = 3
SETTLE_SECONDS_MAX = 30.0


@dataclass(frozen=True)
class Cluster:
    """Three primaries that share all slots."""

    ports: tuple[int, ...]

    @property
    def url(self) -> str:
        """Some of the nodes, as a value of the option `url`."""
        return ",".join(f"redis://127.0.0.1:{port}" for port in self.ports[:2])

    def client(self) -> RedisCluster:
        """A new client that finds the node of each slot."""
        return RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", self.ports[0])])  # type: ignore[no-untyped-call]


def cluster_problem_or_none() -> str | None:
    """The reason why no cluster can be started here, if there is one."""
    if redis_program_or_none() is None:
        return "no redis-server on PATH"
    return "no redis-cli on PATH" if shutil.which("redis-cli") is None else None


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Start three nodes, join them, and stop them afterwards."""
    with ExitStack() as stack:
        settings = ("--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
        servers = [stack.enter_context(running_redis(*settings)) for _ in range(NODES)]
        cluster = Cluster(tuple(server.port for server in servers))
        addresses = [f"127.0.0.1:{port}" for port in cluster.ports]
        subprocess.run(
            ["redis-cli", "--cluster", "create", *addresses, "--cluster-yes"],
            check=True,
            capture_output=True,
            timeout=SETTLE_SECONDS_MAX,
        )
        for port in cluster.ports:
            _wait_until_settled(port)
        yield cluster


def _wait_until_settled(port: int) -> None:
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    with redis.Redis(port=port) as client:
        while client.cluster("info")["cluster_state"] != "ok":
            if time.monotonic() > deadline:
                raise RuntimeError(f"the cluster of port {port} does not settle")
            time.sleep(0.05)
