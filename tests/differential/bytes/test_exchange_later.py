"""Redis 8 and Valkey 9 start from our data directory, and we start from theirs, with the same data.

The commands are random. A failure shows its seed. PENSTOCK_SEED=<the part before the slash> repeats it.
"""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.differential.bytes import test_exchange
from tests.differential.bytes.test_exchange import COMMANDS_ONLY, SNAPSHOTS_ONLY
from tests.support.campaign import SOAK, cases, seed
from tests.support.servers.exchange import ours, theirs, without_counts, without_lag
from tests.support.servers.programs import REDIS_8_0, REDIS_8_2, REDIS_8_6, VALKEY_9, Program

COMMANDS = 400
ROUNDS = cases(10)
LATER = (REDIS_8_0, REDIS_8_2, REDIS_8_6, VALKEY_9) if SOAK else (REDIS_8_6, VALKEY_9)


@pytest.fixture(params=range(ROUNDS))
def dice(request: pytest.FixtureRequest) -> random.Random:
    name = f"{seed()}/{request.param}"
    logging.getLogger(__name__).warning("seed %s", name)  # shown if the test fails
    return random.Random(name)


@pytest.fixture(params=LATER, ids=lambda program: program.title)
def program(request: pytest.FixtureRequest) -> Program:
    request.param.need()
    return request.param  # type: ignore[no-any-return]


State = dict[Any, Any]
Same = Callable[[State, State], None]


@pytest.fixture
def same(program: Program) -> Same:
    """Compare two states, for Valkey without the lag of groups."""
    if program is not VALKEY_9:
        return test_exchange.same
    return lambda left, right: test_exchange.same(without_lag(left), without_lag(right))


def test_it_starts_from_our_snapshot_and_we_from_its(
    tmp_path: Path, dice: random.Random, program: Program, same: Same
) -> None:
    with ours(tmp_path, *SNAPSHOTS_ONLY, level=program.level) as server:
        server.load(dice, COMMANDS)
        assert server.ask(b"SAVE") == "OK"
        before = server.state()
    with theirs(tmp_path, *SNAPSHOTS_ONLY, program=program) as server:
        same(before, server.state())
        server.load(dice, COMMANDS // 5)
        assert server.ask(b"SAVE") == "OK"
        before = server.state()
    with ours(tmp_path, *SNAPSHOTS_ONLY, level=program.level) as server:
        same(server.state(), before)


@pytest.mark.parametrize("options", [(), COMMANDS_ONLY], ids=["preamble", "commands"])
@pytest.mark.parametrize("rewritten", [False, True], ids=["as it came", "rewritten"])
def test_it_starts_from_our_log(
    tmp_path: Path,
    dice: random.Random,
    program: Program,
    same: Same,
    options: tuple[str, ...],
    rewritten: bool,
) -> None:
    with ours(tmp_path / "a", *options, level=program.level) as server:
        server.load(dice, COMMANDS)
        if rewritten:
            server.rewrite()
            server.load(dice, COMMANDS // 5)
        before = server.state()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with ours(tmp_path / "a", *options, level=program.level) as server:
        same(without_counts(before), without_counts(server.state()))
    with theirs(tmp_path / "b", program=program) as server:
        same(without_counts(before), without_counts(server.state()))


@pytest.mark.parametrize("options", [(), COMMANDS_ONLY], ids=["preamble", "commands"])
@pytest.mark.parametrize("rewritten", [False, True], ids=["as it came", "rewritten"])
def test_we_start_from_its_log(
    tmp_path: Path,
    dice: random.Random,
    program: Program,
    same: Same,
    options: tuple[str, ...],
    rewritten: bool,
) -> None:
    with theirs(tmp_path / "a", *options, program=program) as server:
        server.load(dice, COMMANDS)
        if rewritten:
            server.rewrite()
            if program is REDIS_8_6 and options:
                # Its base of commands lacks names of deleted entries. A duplicate of such a message then adds
                # an entry when Redis 8.6.2 replays its log, and later entries are lost.
                server.level = "8.4"
            server.load(dice, COMMANDS // 5)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    # It reads its own log too, because it does not write everything that it has in memory.
    with theirs(tmp_path / "a", *options, program=program) as server:
        expected = server.state()
    with ours(tmp_path / "b", level=program.level) as server:
        same(server.state(), expected)


def test_servers_take_turns_on_a_directory(
    tmp_path: Path, dice: random.Random, program: Program, same: Same
) -> None:
    """Each server continues the increment of the other. Valkey does not read a base of Redis 8."""
    for turn in range(2):
        with ours(tmp_path, level=program.level) as server:
            server.load(dice, COMMANDS // 2)
            before = server.state()
        with theirs(tmp_path, program=program) as server:
            same(before, server.state())
            server.load(dice, COMMANDS // 2)
            if turn:
                server.rewrite()
        copy = tmp_path.with_name(f"{tmp_path.name}-copy{turn}")
        shutil.copytree(tmp_path, copy)
        with theirs(copy, program=program) as server:
            before = server.state()
        with ours(tmp_path, level=program.level) as server:
            same(server.state(), before)
