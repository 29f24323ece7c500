"""The commands of penstock and the scripts on Redis and Valkey do the same, for random sequences."""

from __future__ import annotations

import random

import pytest

from tests.support.campaign import cases, seed
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
