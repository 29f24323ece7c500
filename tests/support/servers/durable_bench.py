"""A server without sockets that keeps its data, on a disk that fails when told to, and syncs when told to.

bench = DurableBench(tmp_path)
client.tell("XADD s * a 1"), client.heard()      -> b"": nothing is on disk
bench.sync(), client.replies()                   -> the id
bench.disk.fault = ENOSPC, bench.sync()          -> and it fails
bench.tick(1000), bench.wait_for_child()         -> what a second brings about, what a child has done
bench = bench.restarted()                        -> another one, from what is on disk
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from penstock.persist.aof.commit import Commit
from penstock.persist.disk import File, SystemDisk
from penstock.persist.rows import DATA_ROWS
from penstock.persist.store import Store
from penstock.server.config.directives import default_config
from penstock.server.durability import Durability
from penstock.server.loading import layout_of
from tests.support.servers.connections import ManualClient, ServerBench


class FaultyFile:
    """A file of a FaultyDisk."""

    def __init__(self, file: File, disk: FaultyDisk, path: str) -> None:
        self._file = file
        self._disk = disk
        self._path = path

    @property
    def size(self) -> int:
        return self._file.size

    def write(self, data: bytes) -> None:
        self._disk.check("write", self._path)
        self._file.write(data)

    def sync(self) -> None:
        self._disk.check("sync", self._path)
        self._file.sync()
        self._disk.syncs += 1

    def close(self) -> None:
        self._file.close()


class FaultyDisk(SystemDisk):
    """`fault`: the error that every operation in `faulty` meets, or 0. A forked child has a copy of it.

    `faulty_name`: only files with this in their names.
    """

    def __init__(self) -> None:
        self.fault = 0
        self.faulty = {"write", "sync", "create"}
        self.faulty_name = ""
        self.syncs = 0

    def check(self, what: str, path: str) -> None:
        if self.fault and what in self.faulty and self.faulty_name in path:
            raise OSError(self.fault, os.strerror(self.fault))

    def create(self, path: str) -> File:
        self.check("create", path)
        return FaultyFile(super().create(path), self, path)

    def append_to(self, path: str) -> File:
        return FaultyFile(super().append_to(path), self, path)


class ManualSync:
    """Syncs when a test says so. `woken`: somebody waits for that."""

    def __init__(self, commit: Commit, on_done: Callable[[], None]) -> None:
        self._commit = commit
        self._on_done = on_done
        self.woken = False
        commit.wake = self.wake

    def wake(self) -> None:
        self.woken = True

    def sync(self) -> None:
        self.woken = False
        self._commit.sync()
        self._on_done()

    def stop(self) -> None:
        self._commit.sync()


class DurableBench(ServerBench):
    """Settings are given as CONFIG has them: DurableBench(folder, appendfsync="everysec")."""

    def __init__(self, folder: Path, compat_version: str | None = None, **settings: str) -> None:
        super().__init__(compat_version)
        self._folder = folder
        self._settings = settings
        self._compat_version = compat_version
        self.disk = FaultyDisk()
        config = default_config()
        config.set_at_start("dir", str(folder))
        for name, value in settings.items():
            config.set_at_start(name.replace("_", "-"), value)
        config.attach(self.server)
        self.store = Store(self.disk, layout_of(config), self.engine, DATA_ROWS)
        self.store.lock()
        self._syncer: ManualSync | None = None
        recovery = self.store.recovery(config.value("aof-load-truncated"))
        logged = config.value("appendonly")
        self.recovered = recovery.with_log() if logged else recovery.snapshot_only()
        self.engine.adopt(recovery.engine)
        self.clock.at_ms += 1
        loop = cast("asyncio.AbstractEventLoop", self.loop)
        self.durability = Durability(self.server, self.store, config, loop, self._new_syncer)
        self.server.durability = self.durability
        if logged:
            self.durability.begin_log(self.recovered)

    def _new_syncer(self, commit: Commit, on_done: Callable[[], None]) -> ManualSync:
        self._syncer = ManualSync(commit, on_done)
        return self._syncer

    @property
    def woken(self) -> bool:
        """Whether somebody waits for a sync."""
        return self._syncer is not None and self._syncer.woken

    def sync(self) -> None:
        """Let the thread that there is not do its work, and the loop hear of it."""
        assert self._syncer is not None
        self._syncer.sync()
        self.loop.run()

    def tick(self, ms: int = 0) -> None:
        """Let time go by, and do the regular work."""
        self.advance(ms)
        self.engine.context.instant.advance()
        self.durability.tick()
        self.loop.run()

    def wait_for_child(self) -> None:
        """Let a child end, and whoever syncs do what is left."""
        self.loop.wait_for_files()
        if self.woken:
            self.sync()

    def fail(self, error: int = errno.ENOSPC) -> None:
        """From now on the disk takes nothing."""
        self.disk.fault = error

    def heal(self) -> None:
        """The disk is well again."""
        self.disk.fault = 0

    def end(self, save: bool | None = None) -> bool:
        """End in good order."""
        self.server.turn.end()
        return self.durability.close(save)

    def abandon(self) -> DurableBench:
        """As if it were killed: nothing more is written. Another one, from what is on disk."""
        self.store.release_lock()
        return DurableBench(self._folder, self._compat_version, **self._settings)

    def restarted(self) -> DurableBench:
        """End in good order, and start again."""
        assert self.end()
        return DurableBench(self._folder, self._compat_version, **self._settings)


def synced(bench: DurableBench, client: ManualClient, *lines: str) -> list[Any]:
    """The replies to commands, and all of it is on disk."""
    for line in lines:
        client.tell(line)
    bench.sync()
    return client.replies()
