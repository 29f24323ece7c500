"""Measures how long loading and saving a snapshot of a million entries takes, against Redis.

    python benchmarks/_rdb.py [entries]

Redis writes the file (5 fields x 16 random bytes, default settings). Then both load and save it, in turn,
three times; the best time counts. The load time of Redis comes from its log. rdb_last_bgsave_time_sec is too
coarse, so its save time is that of SAVE as a client sees it.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis

from penstock.build import KIND
from penstock.engine.clock import ManualClock
from penstock.engine.execute import Engine
from penstock.persist.rdb.reader import RdbReader, load_databases
from penstock.persist.rdb.writer import RdbWriter, aux_fields, write_databases

PORT = 7899
ROUNDS = 3
BATCH = 1000
FIELDS = 5
FIELD_BYTES = 16


def load_seconds(path: Path, deep: bool = False) -> float:
    """The time penstock takes to load a file."""
    engine = Engine(ManualClock(0))
    started = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        load_databases(RdbReader(file, str(path), deep=deep), engine.context.databases)
    return time.perf_counter() - started


def save_seconds(path: Path, target: Path, compress: bool = True) -> float:
    """The time penstock takes to write the data of a file, without fsync."""
    engine = Engine(ManualClock(0))
    with path.open("rb", buffering=0) as file:
        load_databases(RdbReader(file, str(path)), engine.context.databases)
    started = time.perf_counter()
    with target.open("wb", buffering=0) as file:
        writer = RdbWriter(file.write, 10, compress)
        writer.begin(aux_fields("7.0.15", 0, 0))
        write_databases(writer, engine.context.databases)
        writer.end()
    return time.perf_counter() - started


def redis_load_seconds(folder: Path) -> tuple[float, float]:
    """The time of Redis to load dump.rdb, from its log, and the time of a SAVE."""
    log = folder / "redis.log"
    log.unlink(missing_ok=True)
    process = _start(folder, log)
    try:
        client = _connected()
        found = re.search(r"DB loaded from disk: ([\d.]+) seconds", log.read_text())
        assert found is not None
        started = time.perf_counter()
        client.save()
        return float(found[1]), time.perf_counter() - started
    finally:
        process.terminate()
        process.wait()


def make_file(folder: Path, entries: int) -> Path:
    """Let Redis write a snapshot of a stream with this number of entries."""
    process = _start(folder, folder / "redis.log")
    try:
        client = _connected()
        dice = random.Random(0)
        for _ in range(0, entries, BATCH):
            pipe = client.pipeline(transaction=False)
            for _ in range(BATCH):
                pipe.xadd("s", {f"field{n}": dice.randbytes(FIELD_BYTES) for n in range(FIELDS)})
            pipe.execute()
        client.save()
    finally:
        process.terminate()
        process.wait()
    return folder / "dump.rdb"


def _start(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    command = ["redis-server", "--port", str(PORT), "--dir", str(folder), "--save", ""]
    return subprocess.Popen([*command, "--logfile", str(log), "--appendonly", "no"])


def _connected() -> redis.Redis:
    client = redis.Redis(port=PORT, socket_timeout=60)
    while True:
        try:
            client.ping()
        except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
            time.sleep(0.01)
        else:
            return client


def main() -> None:
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = Path(name)
        path = make_file(folder, entries)
        print(f"{KIND}, {entries} entries, {path.stat().st_size / 1e6:.1f} MB")
        rows: dict[str, list[float]] = {}
        ours = folder / "ours.rdb"
        for _ in range(ROUNDS):
            load, save = redis_load_seconds(folder)
            rows.setdefault("Redis load", []).append(load)
            rows.setdefault("Redis save", []).append(save)
            rows.setdefault("penstock load", []).append(load_seconds(path))
            rows.setdefault("penstock load, deep", []).append(load_seconds(path, deep=True))
            rows.setdefault("penstock save", []).append(save_seconds(path, ours))
        for what, seconds in rows.items():
            print(f"{what:<22} {min(seconds):.3f} s   of {[round(s, 3) for s in seconds]}")
        print(f"our file has {ours.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
