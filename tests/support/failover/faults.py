"""What is done to a primary. `Group.heal` undoes all of it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass

import redis

from tests.support.replication.links import eventually
from tests.support.replication.proxy import BOTH, FROM_SERVER, TO_SERVER
from tests.support.replication.sentinels import NAME, Group, Node


@dataclass(frozen=True, slots=True)
class Fault:
    """`begin` does it; `is_replaced`: the Sentinels then choose another primary."""

    name: str
    begin: Callable[[Group, Node], None]
    is_replaced: bool = True
    servers_min: int = 2

    def __str__(self) -> str:
        return self.name


def _isolate(group: Group, primary: Node) -> None:
    primary.proxy.cut()


def _isolate_with_clients(group: Group, primary: Node) -> None:
    _cut_off(primary, BOTH)


def _isolate_with_replica(group: Group, primary: Node) -> None:
    """The replica still gets everything, but no Sentinel reaches it."""
    replica = next(node for node in group.nodes if node is not primary)
    replica.proxy.cut("peers")
    _cut_off(primary, BOTH, replica.proxy.port)


def _silence(group: Group, primary: Node) -> None:
    _cut_off(primary, FROM_SERVER)


def _deafen(group: Group, primary: Node) -> None:
    _cut_off(primary, TO_SERVER)


def _cut_off(primary: Node, directions: int, but_replica: int = 0) -> None:
    """Near clients still reach the primary; others do not."""
    primary.proxy.cut("peers", directions, but_replica)
    primary.proxy.cut("far", directions)


def _stop(group: Group, primary: Node) -> None:
    primary.server.process.send_signal(signal.SIGSTOP)


def _kill(group: Group, primary: Node) -> None:
    primary.server.kill()


def _kill_and_restart(group: Group, primary: Node) -> None:
    primary.server.kill()
    primary.restart()


def _ask_sentinel(group: Group, primary: Node) -> None:
    """The operator asks for another primary: nothing is wrong with this one."""
    host, port = group.addresses[0]
    with redis.Redis(host, port) as sentinel:
        eventually(lambda: sentinel.execute_command("SENTINEL", "FAILOVER", NAME), "it begins")


PLANNED = Fault("SENTINEL FAILOVER", _ask_sentinel)
"""No fault, and not in FAULTS: it shows that a planned change of roles loses nothing."""

ISOLATED = Fault("cut off alone", _isolate)
WITH_CLIENTS = Fault("cut off with some clients", _isolate_with_clients)
WITH_REPLICA = Fault(
    "cut off with some clients and a replica", _isolate_with_replica, servers_min=3
)
SILENT = Fault("one way: nothing comes from it", _silence)
DEAF = Fault("one way: nothing reaches it", _deafen)

FAULTS = [
    ISOLATED,
    WITH_CLIENTS,
    WITH_REPLICA,
    SILENT,
    DEAF,
    Fault("SIGSTOP", _stop),
    Fault("kill -9, back late", _kill),
    Fault("kill -9, back at once", _kill_and_restart, is_replaced=False),
]


def faults_of(servers: int) -> list[Fault]:
    """The faults that can happen to this many servers."""
    return [fault for fault in FAULTS if servers >= fault.servers_min]
