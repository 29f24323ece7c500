"""FAILOVER while clients write: between our servers, and from Redis to ours and back.

Nothing that was acknowledged is lost. benchmarks/planned_failover.py measures how long the writers wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.campaign import cells
from tests.support.replication.links import QUICK, client_of, follow, same
from tests.support.replication.writers import hand_over, lost, until_answered, working
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import REDIS_7_0, REDIS_8_6, VALKEY_9, Program
from tests.support.servers.redis_server import running_redis

FOREIGN = cells([REDIS_7_0, REDIS_8_6, VALKEY_9])


@contextmanager
def ours(folder: Path, *more: str) -> Iterator[int]:
    """The port of a server with a log."""
    with running_penstock(*QUICK, *more, data=folder) as server:
        yield server.port


@contextmanager
def theirs(program: Program) -> Iterator[int]:
    program.need()
    with running_redis(*QUICK, program=program) as server:
        yield server.port


def there_and_back(first: int, second: int) -> None:
    """The role goes from the first server to the second and back, while clients write."""
    old, new = client_of(first), client_of(second)
    with working(first, second) as writers:
        until_answered(writers)
        hand_over(old, new)
        until_answered(writers)
        hand_over(new, old)
        until_answered(writers)
    same(old, new)
    assert not lost(writers, old)
    # The way back needs no snapshot: both have the same history.
    assert old.info("stats")["sync_full"] == 1
    assert new.info("stats")["sync_full"] == 0


@pytest.mark.parametrize("acks", ["0", "1"])
def test_a_failover_between_ours_loses_nothing(tmp_path: Path, acks: str) -> None:
    setting = ("--min-replicas-ack", acks)
    with ours(tmp_path / "a", *setting) as first, ours(tmp_path / "b", *setting) as second:
        follow(client_of(second), first)
        there_and_back(first, second)


@pytest.mark.parametrize("program", FOREIGN, ids=lambda program: program.file_name)
def test_a_failover_from_redis_to_ours_and_back_loses_nothing(
    tmp_path: Path, program: Program
) -> None:
    with theirs(program) as first, ours(tmp_path, "--compat-version", program.level) as second:
        follow(client_of(second), first)
        there_and_back(first, second)
