"""The configurations of docs/high-availability.md, copied as they stand, with real Sentinels.

Only addresses and ports are replaced, and snapshots begin at once. With the times of the page a trio takes
half a minute, so `make test` runs the pair, and `make soak` all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from tests.support.campaign import SOAK
from tests.support.replication.links import eventually
from tests.support.replication.sentinels import blocks, here, running_group, running_nodes
from tests.support.replication.writers import hand_over
from tests.support.servers.programs import REDIS_7_0

PASSWORD = "the-password"


def pair(folder: Path) -> None:
    """FAILOVER, as the page writes it, changes the roles."""
    configuration, command = blocks("A pair")[:2]
    with running_nodes(folder, configuration, servers=2, password=PASSWORD) as nodes:
        words = here(command[command.index("FAILOVER") :], [node.proxy for node in nodes]).split()
        port = nodes[1].proxy.port
        assert words[:4] == ["FAILOVER", "TO", "127.0.0.1", str(port)]
        old, new = (node.client() for node in nodes)
        old.xadd("orders", {"qty": 1})
        hand_over(old, new, port, words[4:])
        new.xadd("orders", {"qty": 2})
        eventually(lambda: old.xlen("orders") == 2, "the old primary follows")
        with pytest.raises(redis.ReadOnlyError):
            old.xadd("orders", {"qty": 3})


def trio(folder: Path, more: str = "", login: str = "") -> None:
    """The Sentinels replace a primary that is killed; it comes back as a replica."""
    configuration, watches, *_, program = blocks("A trio under Sentinel")
    with running_group(
        folder, configuration + more, password=PASSWORD, watches=watches + login
    ) as group:
        old = group.primary()
        ports = iter(port for _, port in group.addresses)
        program = re.sub(r'"10\.0\.0\.\d", 26379', lambda _: f'"127.0.0.1", {next(ports)}', program)
        exec(program, {})
        old.server.kill()
        group.wait_for_primary_other_than(old)
        if more:
            old.restart()  # with two acks, writes need all three
        eventually(lambda: _runs(program), "writes go on", group.seconds_max)
        assert group.heal() is not old
        for node in group.nodes:
            with node.client() as client:
                eventually(lambda: client.xlen("orders") >= 2, "all have all")
        assert old.role() == "slave"


def _runs(program: str) -> bool:
    exec(program, {})
    return True


def trio_that_loses_nothing(folder: Path) -> None:
    trio(folder, more=blocks("A trio that loses nothing")[0])


def trio_with_users(folder: Path) -> None:
    _, _, users, login, _ = blocks("A trio under Sentinel")
    trio(folder, more=users, login=login)


@pytest.mark.parametrize(
    "setup",
    [pair, trio, trio_that_loses_nothing, trio_with_users] if SOAK else [pair],
    ids=lambda setup: setup.__name__,
)
def test_a_setup_of_the_page_works_as_it_stands(
    tmp_path: Path, setup: Callable[[Path], None]
) -> None:
    REDIS_7_0.need()
    setup(tmp_path)
