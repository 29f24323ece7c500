"""Real processes, killed at any moment: everything acknowledged to clients is there after a restart.

The server syncs always, rewrites its log all the time (the thresholds are small), and gets requests for
rewrites and snapshots. Meanwhile clients write, trim, read for groups, claim, acknowledge and delete, and
record the replies (tests/support/disk/ledger). After each kill the server is restarted, and its data is
compared.
"""

from __future__ import annotations

import os
import random
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.campaign import cases, seed
from tests.support.disk.consuming import read_the_rest
from tests.support.disk.ledger import Ledger
from tests.support.disk.server_state import GROUPS, STREAMS
from tests.support.disk.workload import VERSION, Workload, prepare
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.raw_redis import RawRedis

KILLS = cases(30) + 2 if cases(30) < 30 else 30
END_SECONDS_MAX = 10
SMALL = ("--auto-aof-rewrite-min-size", "64kb", "--auto-aof-rewrite-percentage", "30", "--hz", "50")
# Fields of XINFO STREAM FULL that depend on the clock and are in no file.
_FORGOTTEN = {b"seen-time", b"active-time"}
_COSTS = {b"radix-tree-keys", b"radix-tree-nodes"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PenstockServer]:
    with running_penstock(*SMALL, "--compat-version", VERSION, data=tmp_path / "data") as running:
        prepare(running.port)
        yield running


def whole_state(port: int) -> list[Any]:
    """The streams of a server, without the fields that a restart may change."""
    with RawRedis(port) as client:
        replies = client.ask([[b"XINFO", b"STREAM", s, b"FULL", b"COUNT", b"0"] for s in STREAMS])
    return [_remembered(reply) for reply in replies]


def _remembered(reply: Any) -> Any:
    if not isinstance(reply, list):
        return reply
    if reply and reply[0] in (b"length", b"name"):
        pairs = zip(reply[::2], reply[1::2], strict=True)
        dropped = _FORGOTTEN | _COSTS
        return [(name, _remembered(value)) for name, value in pairs if name not in dropped]
    return [_remembered(part) for part in reply]


def wait_for_child(server: PenstockServer) -> int:
    """Wait until the server's child has begun to write; return its pid."""
    deadline = time.monotonic() + END_SECONDS_MAX
    while time.monotonic() < deadline:
        if any(path.stat().st_size for path in server.data.rglob("temp-[rs]*")):
            [pid] = server.children()
            return pid
    raise AssertionError("there is no child")


def wait_for_end(pidfd: int) -> None:
    """Wait for the end of a process that is not our child: its pidfd becomes readable."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    assert poll.poll(END_SECONDS_MAX * 1000), "the child lives on without its parent"
    os.close(pidfd)


def open_children(server: PenstockServer) -> list[int]:
    """Pidfds of the current children."""
    found = []
    for pid in server.children():
        try:
            found.append(os.pidfd_open(pid))
        except ProcessLookupError:
            continue
    return found


def kill_and_start(server: PenstockServer, dice: random.Random) -> None:
    children = open_children(server)
    server.kill()
    for child in children:
        wait_for_end(child)
    if dice.random() < 0.3:  # the kill may also hit the start
        server.begin()
        time.sleep(dice.random() * 0.5)
        server.kill()
    server.start()


def wait_for_entries(ledger: Ledger, count: int) -> None:
    """Wait until clients have been told of this many more entries."""
    deadline = time.monotonic() + END_SECONDS_MAX
    target = len(ledger.added) + count
    while len(ledger.added) < target and time.monotonic() < deadline:
        time.sleep(0.001)


def test_acknowledged_data_survives_every_kill(server: PenstockServer) -> None:
    start = seed()
    dice = random.Random(start)
    ledger = Ledger()
    for kill in range(KILLS):
        load = Workload(server.port, ledger, dice)
        wait_for_entries(ledger, dice.randint(20, 1000))
        background = dice.choice([None, b"BGREWRITEAOF", b"BGSAVE"])
        if background is not None:
            with RawRedis(server.port) as client:
                client.ask([[background]])
            time.sleep(dice.random() * 0.02)
        kill_and_start(server, dice)
        load.join()
        try:
            ledger.check_and_settle(server.port)
        except AssertionError as error:
            raise AssertionError(f"after kill {kill}, PENSTOCK_SEED={start}: {error}") from error
    assert len(ledger.added) > 10 * KILLS
    with RawRedis(server.port) as client:
        read_the_rest(client, ledger)


def test_a_server_that_is_killed_at_rest_comes_back_the_same(server: PenstockServer) -> None:
    dice = random.Random(seed())
    ledger = Ledger()
    for _ in range(cases(20)):
        load = Workload(server.port, ledger, dice)
        wait_for_entries(ledger, 100)
        load.stop()
        before = whole_state(server.port)
        server.kill()
        server.start()
        assert whole_state(server.port) == before
        ledger.check_and_settle(server.port)


@pytest.mark.parametrize("command", [b"BGREWRITEAOF", b"BGSAVE"])
def test_a_child_dies_with_its_server_and_changes_no_data(tmp_path: Path, command: bytes) -> None:
    with running_penstock(data=tmp_path / "data") as server:
        prepare(server.port)
        with RawRedis(server.port) as client:
            add = [b"XADD", STREAMS[0], b"*", b"load", b"x" * 4000]
            client.ask([add] * 5000)
            client.ask([[b"XREADGROUP", b"GROUP", GROUPS[0], b"c", b"STREAMS", STREAMS[0], b">"]])
            client.send([[command]])
            child = wait_for_child(server)
            os.kill(child, signal.SIGSTOP)  # paused in the middle of its work
            handle = os.pidfd_open(child)
            assert isinstance(client.read(), str)
            client.ask([add] * 10)
            before = whole_state(server.port)
        server.kill()
        wait_for_end(handle)
        server.start()
        assert whole_state(server.port) == before


def test_sigterm_under_load_loses_nothing(server: PenstockServer) -> None:
    dice = random.Random(seed())
    ledger = Ledger()
    for _ in range(cases(20)):
        load = Workload(server.port, ledger, dice)
        wait_for_entries(ledger, dice.randint(50, 250))
        if dice.random() < 0.5:
            with RawRedis(server.port) as client:
                client.ask([[dice.choice([b"BGREWRITEAOF", b"BGSAVE"])]])
        assert server.end(signal.SIGTERM) == 0
        load.join()
        server.start()
        ledger.check_and_settle(server.port)
