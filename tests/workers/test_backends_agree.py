"""The commands of penstock and the scripts on Redis and Valkey do the same, for random sequences."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import penstock
from penstock.work.backend import EmbeddedBackend, ServerBackend
from tests.support.campaign import cases, seed
from tests.support.servers.exchange import check_files, theirs
from tests.support.work.backends import PROGRAMS, SERVERS, running_backend
from tests.support.work.sequences import Player, steps

STEPS = 120


@pytest.mark.parametrize("name", SERVERS)
def test_random_sequences_have_the_same_replies_and_the_same_data(name: str) -> None:
    start = seed()
    level = PROGRAMS[name].level if name in PROGRAMS else None
    with running_backend(name) as other:
        for number in range(cases(60)):
            dice = random.Random(start + number)
            with running_backend("embedded", level) as embedded:
                other.ask("FLUSHALL")
                left, right = Player(embedded), Player(other)
                for at, step in enumerate(steps(dice, STEPS)):
                    where = f"seed {start + number}, step {at}: {step}"
                    assert left.play(step) == right.play(step), where
                assert left.state() == right.state(), f"seed {start + number}"


def test_redis_loads_the_log_that_the_commands_leave(tmp_path: Path) -> None:
    PROGRAMS["redis"].need()
    start = seed()
    with penstock.open(tmp_path, compat_version="7.0") as database:
        player = Player(EmbeddedBackend(database))
        for step in steps(random.Random(start), 4 * STEPS):
            player.play(step)
        before = player.state()
    check_files(tmp_path)
    with theirs(tmp_path) as redis:
        found = ServerBackend(f"redis://127.0.0.1:{redis.port}")
        assert player.state(found) == before, f"seed {start}"
        found.close()
