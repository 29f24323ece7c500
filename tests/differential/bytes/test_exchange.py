"""A real Redis 7.0 starts from our data directory, and we start from its directory, with the same data.

The commands are random. A failure shows its seed. PENSTOCK_SEED=<the part before the slash> repeats it.
"""

from __future__ import annotations

import logging
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NO_REDIS
from tests.support.campaign import cases, seed
from tests.support.servers.exchange import check_files, ours, theirs
from tests.support.servers.redis_server import redis_program_or_none

COMMANDS = 500
ROUNDS = cases(10)
COMMANDS_ONLY = ("--aof-use-rdb-preamble", "no")
SNAPSHOTS_ONLY = ("--appendonly", "no")

pytestmark = pytest.mark.skipif(redis_program_or_none() is None, reason=NO_REDIS)


@pytest.fixture(params=range(ROUNDS))
def dice(request: pytest.FixtureRequest) -> random.Random:
    name = f"{seed()}/{request.param}"
    logging.getLogger(__name__).warning("seed %s", name)  # shown if the test fails
    return random.Random(name)


def same(left: dict[Any, Any], right: dict[Any, Any]) -> None:
    """Compare key by key, so that a failure does not show thousands of lines."""
    assert sorted(left) == sorted(right)
    for place, value in left.items():
        for ours_part, their_part in zip(value, right[place], strict=True):
            assert ours_part == their_part, place


@pytest.mark.parametrize("options", [(), COMMANDS_ONLY], ids=["preamble", "commands"])
def test_redis_starts_from_our_log(
    tmp_path: Path, dice: random.Random, options: tuple[str, ...]
) -> None:
    with ours(tmp_path, *options) as server:
        server.load(dice, COMMANDS)
        before = server.state()
    check_files(tmp_path)
    with theirs(tmp_path) as server:
        same(before, server.state())


@pytest.mark.parametrize("options", [(), COMMANDS_ONLY], ids=["preamble", "commands"])
def test_redis_and_we_start_from_our_rewritten_log(
    tmp_path: Path, dice: random.Random, options: tuple[str, ...]
) -> None:
    with ours(tmp_path / "a", *options) as server:
        server.load(dice, COMMANDS)
        server.rewrite()
        server.load(dice, COMMANDS // 5)
        before = server.state()
    check_files(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with ours(tmp_path / "a", *options) as server:
        same(before, server.state())
    with theirs(tmp_path / "b") as server:
        same(before, server.state())


@pytest.mark.parametrize(
    "options",
    [
        (),
        COMMANDS_ONLY,
        ("--aof-timestamp-enabled", "yes"),
        (*COMMANDS_ONLY, "--aof-timestamp-enabled", "yes"),
    ],
    ids=["preamble", "commands", "times", "commands and times"],
)
@pytest.mark.parametrize("rewritten", [False, True], ids=["as it came", "rewritten"])
def test_we_start_from_a_log_of_redis(
    tmp_path: Path, dice: random.Random, options: tuple[str, ...], rewritten: bool
) -> None:
    with theirs(tmp_path / "a", *options) as server:
        server.load(dice, COMMANDS)
        if rewritten:
            server.rewrite()
            server.load(dice, COMMANDS // 5)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    # Redis reads its own log too, because it does not write everything that it has in memory.
    with theirs(tmp_path / "a", *options) as server:
        expected = server.state()
    with ours(tmp_path / "b") as server:
        same(server.state(), expected)


def test_redis_starts_from_our_snapshot(tmp_path: Path, dice: random.Random) -> None:
    with ours(tmp_path, *SNAPSHOTS_ONLY) as server:
        server.load(dice, COMMANDS)
        assert server.ask(b"SAVE") == "OK"
        before = server.state()
    check_files(tmp_path)
    with theirs(tmp_path, *SNAPSHOTS_ONLY) as server:
        same(before, server.state())
        assert server.ask(b"SAVE") == "OK"
    with ours(tmp_path, *SNAPSHOTS_ONLY) as server:
        same(server.state(), before)


def test_a_snapshot_of_redis_becomes_the_base_of_our_log(
    tmp_path: Path, dice: random.Random
) -> None:
    with theirs(tmp_path, *SNAPSHOTS_ONLY) as server:
        server.load(dice, COMMANDS)
        assert server.ask(b"SAVE") == "OK"
        before = server.state()
    with ours(tmp_path) as server:
        same(server.state(), before)
        server.load(dice, COMMANDS // 5)
        before = server.state()
    check_files(tmp_path)
    (tmp_path / "dump.rdb").unlink()
    with theirs(tmp_path) as server:
        same(before, server.state())


@pytest.mark.parametrize("with_base", [True, False], ids=["snapshot first", "commands only"])
def test_we_start_from_the_single_file_of_an_older_redis(
    tmp_path: Path, dice: random.Random, with_base: bool
) -> None:
    with theirs(tmp_path / "a") as server:
        server.load(dice, COMMANDS)
        if with_base:
            server.rewrite()
            server.load(dice, COMMANDS // 5)
    parts = tmp_path / "a/appendonlydir"
    [base] = parts.glob("*.base.rdb")
    [increment] = parts.glob("*.incr.aof")
    (tmp_path / "b").mkdir()
    single = increment.read_bytes()
    (tmp_path / "b/appendonly.aof").write_bytes(base.read_bytes() + single if with_base else single)
    with theirs(tmp_path / "a") as server:
        expected = server.state()
    with ours(tmp_path / "b") as server:
        same(server.state(), expected)
        server.load(dice, COMMANDS // 5)
        expected = server.state()
    with ours(tmp_path / "b") as server:
        same(server.state(), expected)


def test_servers_take_turns_on_a_directory(tmp_path: Path, dice: random.Random) -> None:
    """Each server continues the increment of the other, and rewrites it."""
    rewrites = dice.random() < 0.5
    before: dict[Any, Any] = {}
    for turn in range(4):
        if turn % 2 == 0:
            with ours(tmp_path) as server:
                same(server.state(), before)
                server.load(dice, COMMANDS // 2)
                before = server.state()
            check_files(tmp_path)
        else:
            with theirs(tmp_path) as server:
                same(before, server.state())
                server.load(dice, COMMANDS // 2)
                if rewrites:
                    server.rewrite()
            # Redis does not log everything that it has in memory.
            copy = tmp_path.with_name(f"{tmp_path.name}-copy{turn}")
            shutil.copytree(tmp_path, copy)
            with theirs(copy) as server:
                before = server.state()
    with theirs(tmp_path) as server:
        same(before, server.state())
