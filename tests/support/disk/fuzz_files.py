"""Data directories with a little of everything, as input for fuzz/files.py."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.disk.data_files import OurFiles, write_redis
from tests.support.engine.engines import START_MS
from tests.support.random.rdb_workload import workload
from tests.support.servers.programs import REDIS_7_0, REDIS_8_6, VALKEY_9, Program
from tests.support.servers.redis_server import redis_program_or_none, running_redis

STEPS = 40


def build_sources(folder: Path) -> list[Path]:
    """Directories of penstock, with bases as snapshots or commands, and of Redis and Valkey if installed."""
    folder.mkdir(parents=True)
    found = []
    for seed, preamble, level in ((1, True, "8.10"), (2, False, "8.10"), (3, True, "8.6")):
        found.append(folder / f"ours-{seed}")
        _write_ours(found[-1], seed, preamble, level)
    shutil.rmtree(found[-1] / "appendonlydir")  # a snapshot alone
    if redis_program_or_none() is not None:
        found.append(write_redis(folder / "redis-small"))
    for seed, program, settings in (
        (4, REDIS_7_0, ("--aof-use-rdb-preamble", "no")),
        (5, REDIS_7_0, ("--rdbcompression", "yes")),
        (6, REDIS_8_6, ("--rdbcompression", "no")),
        (7, VALKEY_9, ("--rdbcompression", "no")),
    ):
        if program.path_or_none() is not None:
            found.append(folder / f"redis-{seed}")
            _write_redis(found[-1], seed, program, settings)
    return found


def _write_ours(directory: Path, seed: int, preamble: bool, level: str) -> None:
    files = OurFiles(directory, preamble, level)
    files.bench.clock.at_ms = START_MS
    words = workload(seed, STEPS, level)
    third = len(words) // 3
    _do(files, words[:third])
    files.rewrite()
    _do(files, words[third : 2 * third])
    files.new_increment()
    _do(files, words[2 * third :])
    files.store.save(files.options)
    files.store.close()
    (directory / "penstock.lock").unlink(missing_ok=True)


def _do(files: OurFiles, commands: list[list[bytes]]) -> None:
    assert files.store.commit is not None
    for number, words in enumerate(commands):
        files.bench.run(*words)
        if number % 3 == 0:  # several commands in a batch, and several batches
            files.store.commit.hand_over()
            files.store.commit.sync()
    files.store.commit.hand_over()
    files.store.commit.sync()


def _write_redis(directory: Path, seed: int, program: Program, settings: tuple[str, ...]) -> None:
    arguments = ("--appendonly", "yes", "--appendfsync", "always", *settings)
    with running_redis(*arguments, program=program) as server:
        client = server.client
        place = Path(str(client.config_get("dir")["dir"]))
        with client.pipeline(transaction=False) as pipe:
            for words in workload(seed, STEPS, program.level):
                pipe.execute_command(*words)  # type: ignore[no-untyped-call]
            pipe.execute(raise_on_error=False)
        client.save()
        shutil.copytree(place, directory, ignore=shutil.ignore_patterns("*.log"))
