"""Either side of a full sync is killed at each step of it.

The killed server starts again on its files, and the sync is then completed. Until the snapshot is loaded the
replica has its own data, also after its restart; afterwards it has the data of the primary, never a mixture.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.campaign import cells
from tests.support.replication.links import (
    QUICK,
    client_of,
    digest,
    eventually,
    linked,
    same,
)
from tests.support.replication.proxy import Proxy
from tests.support.servers.penstock_server import PenstockServer, running_penstock

KEYS = 64
VALUE_BYTES = 256 * 1024  # random, so a snapshot is not smaller: it fills all buffers on the way
SNAPSHOT_BYTES = KEYS * VALUE_BYTES

# The link falls silent after this many bytes of the primary.
STALLS = {
    "before the first reply": 0,
    "in the handshake": len(b"+PONG\r\n+OK\r\n"),
    "in the reply to PSYNC": len(b"+PONG\r\n") + 3 * len(b"+OK\r\n") + 20,
    "at the first bytes of the snapshot": 150,
    "in the snapshot": SNAPSHOT_BYTES // 8,
    "before the end of the snapshot": SNAPSHOT_BYTES,
}
LOADING = "while the snapshot is loaded"
LOADED = "when the snapshot is loaded"
STEPS = [*STALLS, LOADING, LOADED]
TRANSFERS = {"diskless": "yes", "with a disk": "no"}
CELLS = list(itertools.product(STEPS, TRANSFERS))


class Sync:
    """A primary with data, and a server with other data that begins to follow it through a proxy."""

    def __init__(self, primary: PenstockServer, replica: PenstockServer, proxy: Proxy) -> None:
        self.primary = primary
        self.replica = replica
        self.proxy = proxy
        proxy.target = primary.port
        client = client_of(primary.port)
        for number in range(KEYS):
            client.set(f"k{number}", os.urandom(VALUE_BYTES))
        self.wanted = digest(client)
        own = client_of(replica.port)
        own.set("own", "1")
        self.own = digest(own)

    def begin(self, step: str) -> None:
        """Begin the sync, and wait until it is at a step."""
        if step in STALLS:
            self.proxy.stalls = True
            self.proxy.bytes_max = [STALLS[step]]
        client_of(self.replica.port).execute_command("REPLICAOF", "127.0.0.1", self.proxy.port)
        if step in STALLS:
            eventually(self.proxy.has_stalled, step)
        elif step == LOADING:
            eventually(lambda: self._received() >= SNAPSHOT_BYTES or self._has_loaded(), step)
        else:
            eventually(self._has_loaded, step)

    def _received(self) -> int:
        return sum(path.stat().st_size for path in self.replica.data.glob("temp-from-primary-*"))

    def _has_loaded(self) -> bool:
        return "bytes loaded" in self.replica.log()

    def data_of_replica(self) -> Any:
        return digest(client_of(self.replica.port))

    def is_completed(self) -> None:
        """Let the sync run to its end."""
        self.proxy.stalls = False
        self.proxy.heal()
        linked(client_of(self.replica.port))
        same(client_of(self.primary.port), client_of(self.replica.port))
        assert digest(client_of(self.primary.port)) == self.wanted
        for server in (self.primary, self.replica):
            assert "Traceback" not in server.log()
            eventually(lambda: not list(server.data.glob("temp-*")), "no part of a snapshot")  # noqa: B023


def kill_primary(sync: Sync, may_have_loaded: bool) -> None:
    sync.primary.kill()
    found = sync.data_of_replica()
    assert found == sync.own or (may_have_loaded and found == sync.wanted)
    sync.primary.start()
    sync.proxy.target = sync.primary.port


def kill_replica(sync: Sync, may_have_loaded: bool) -> None:
    sync.replica.kill()
    assert digest(client_of(sync.primary.port)) == sync.wanted
    sync.replica.start()
    found = sync.data_of_replica()
    assert found == sync.own or (may_have_loaded and found == sync.wanted)
    assert not list(sync.replica.data.glob("temp-from-primary-*"))
    client_of(sync.replica.port).execute_command("REPLICAOF", "127.0.0.1", sync.proxy.port)


def complete_after(
    kill: Callable[[Sync, bool], None], step: str, transfer: str, folder: Path
) -> None:
    arguments = (*QUICK, "--repl-diskless-sync", TRANSFERS[transfer])
    with (
        Proxy() as proxy,
        running_penstock(*arguments, data=folder / "a") as primary,
        running_penstock(*QUICK, data=folder / "b") as replica,
    ):
        sync = Sync(primary, replica, proxy)
        sync.begin(step)
        kill(sync, step not in STALLS)
        sync.is_completed()


@pytest.mark.parametrize(("step", "transfer"), cells(CELLS))
def test_a_primary_is_killed(tmp_path: Path, step: str, transfer: str) -> None:
    complete_after(kill_primary, step, transfer, tmp_path)


@pytest.mark.parametrize(("step", "transfer"), cells(CELLS[::-1]))
def test_a_replica_is_killed(tmp_path: Path, step: str, transfer: str) -> None:
    complete_after(kill_replica, step, transfer, tmp_path)
