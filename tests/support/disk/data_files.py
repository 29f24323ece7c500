"""Data files written by penstock and by Redis, for tests that read or damage them."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import redis

from penstock.persist.aof.commit import Policy
from penstock.persist.disk import SystemDisk
from penstock.persist.layout import Layout
from penstock.persist.rows import DATA_ROWS
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Store
from tests.support.engine.engines import STRING_KEY, Bench
from tests.support.servers.redis_server import running_redis

FIRST = (
    "XADD s 1-1 temp 21",
    "XADD s 2-1 temp 22",
    "XGROUP CREATE s g 0",
    "XREADGROUP GROUP g ann COUNT 1 STREAMS s >",
    "RPUSH l a b c",
    "SET text hello",
    "PEXPIREAT text 4000000000000",
)
SECOND = ("XADD s 3-1 temp 23", "RPUSH l d", "XACK s g 1-1", "XADD s 4-1 temp 24")


class OurFiles:
    """A data directory written by penstock, with one batch per command."""

    def __init__(self, directory: Path, preamble: bool = True, level: str | None = None) -> None:
        self.bench = Bench(level)
        self.bench.engine.context.keyspace.remove(STRING_KEY)
        self.options = SnapshotOptions(preamble=preamble)
        self.layout = Layout(str(directory))
        self.store = Store(SystemDisk(), self.layout, self.bench.engine, DATA_ROWS)
        self.store.lock()
        recovered = self.store.recovery(load_truncated=True).with_log()
        self.store.begin_log(recovered, Policy.ALWAYS, self.options)

    def do(self, *lines: str) -> None:
        assert self.store.commit is not None
        for line in lines:
            self.bench.ask(line)
            self.store.commit.hand_over()
            self.store.commit.sync()

    def rewrite(self) -> None:
        assert self.store.commit is not None
        rewrite = self.store.begin_rewrite(self.options)
        self.store.commit.sync()
        self.store.write_base(rewrite.temporary, self.options)
        self.store.finish_rewrite(rewrite)

    def new_increment(self) -> None:
        """Begin a rewrite and abandon it, so that the log continues in one more file."""
        assert self.store.commit is not None
        rewrite = self.store.begin_rewrite(self.options)
        self.store.commit.sync()
        self.store.abandon_rewrite(rewrite)


def write_ours(directory: Path, preamble: bool = True, is_clean: bool = True) -> Path:
    """A base with FIRST, an increment with SECOND, a snapshot with all of it.

    `is_clean`: the process stopped cleanly instead of being killed.
    """
    files = OurFiles(directory, preamble)
    files.do(*FIRST)
    files.rewrite()
    files.do(*SECOND)
    files.store.save(files.options)
    if is_clean:
        files.store.close()
    else:
        files.store.release_lock()
    return directory


def write_redis(directory: Path, *settings: str, rewrite: bool = True) -> Path:
    """The same data written by a real Redis; without `rewrite` all of it is in the increment."""
    # With everysec, Redis delays a write while it syncs, and the copy would lack it.
    with running_redis("--appendonly", "yes", "--appendfsync", "always", *settings) as server:
        client = server.client
        place = Path(str(client.config_get("dir")["dir"]))
        for line in FIRST:
            client.execute_command(*line.split())  # type: ignore[no-untyped-call]
        if rewrite:
            client.bgrewriteaof()
            _wait_for_rewrite(client)
        for line in SECOND:
            client.execute_command(*line.split())  # type: ignore[no-untyped-call]
        client.save()
        shutil.copytree(place, directory, ignore=shutil.ignore_patterns("*.log"))
    return directory


def _wait_for_rewrite(client: redis.Redis) -> None:
    while True:
        facts = client.info("persistence")
        if not facts["aof_rewrite_in_progress"] and not facts["aof_rewrite_scheduled"]:
            assert facts["aof_last_bgrewrite_status"] == "ok"
            return
        time.sleep(0.01)


def log_files(directory: Path, part: str) -> list[Path]:
    """The files of the log with `part` in their names (`base`, `incr`), in order."""
    return sorted((directory / "appendonlydir").glob(f"*.{part}.*"))


def log_file(directory: Path, part: str) -> Path:
    (found,) = log_files(directory, part)
    return found


def accepts(program: str, path: Path) -> bool:
    """Whether redis-check-aof or redis-check-rdb accepts a file."""
    found = shutil.which(program)
    assert found is not None
    done = subprocess.run([found, str(path)], capture_output=True, check=False, timeout=60)
    return done.returncode == 0
