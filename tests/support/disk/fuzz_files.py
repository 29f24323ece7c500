"""Data directories with a little of everything, as input for fuzz/files.py."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.disk.data_files import OurFiles, write_redis
from tests.support.engine.engines import START_MS
from tests.support.random.rdb_workload import workload
from tests.support.servers.redis_server import redis_program_or_none, running_redis

STEPS = 40


def build_sources(folder: Path) -> list[Path]:
    """Directories of penstock, with bases as snapshots or commands, and of Redis if it is installed."""
    folder.mkdir(parents=True)
    found = []
    for seed, preamble in ((1, True), (2, False), (3, True)):
        found.append(folder / f"ours-{seed}")
        _write_ours(found[-1], seed, preamble)
    shutil.rmtree(found[-1] / "appendonlydir")  # a snapshot alone
    if redis_program_or_none() is not None:
        found.append(write_redis(folder / "redis-small"))
        for seed, settings in (
            (4, ("--aof-use-rdb-preamble", "no")),
            (5, ("--rdbcompression", "yes")),
        ):
            found.append(folder / f"redis-{seed}")
            _write_redis(found[-1], seed, settings)
    return found


def _write_ours(directory: Path, seed: int, preamble: bool) -> None:
    files = OurFiles(directory, preamble)
    files.bench.clock.at_ms = START_MS
    words = workload(seed, STEPS)
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


def _write_redis(directory: Path, seed: int, settings: tuple[str, ...]) -> None:
    with running_redis("--appendonly", "yes", "--appendfsync", "always", *settings) as server:
        client = server.client
        place = Path(str(client.config_get("dir")["dir"]))
        with client.pipeline(transaction=False) as pipe:
            for words in workload(seed, STEPS):
                pipe.execute_command(*words)  # type: ignore[no-untyped-call]
            pipe.execute(raise_on_error=False)
        client.save()
        shutil.copytree(place, directory, ignore=shutil.ignore_patterns("*.log"))
