"""A server without sockets that keeps its data. The test makes its disk fail and starts its syncs.

bench = DurableBench(tmp_path)
client.tell("XADD s * a 1"), client.heard()      -> b"": not on disk yet
bench.sync(), client.replies()                   -> the id
bench.disk.fault = ENOSPC, bench.sync()          -> and it fails
bench.tick(1000), bench.wait_for_child()         -> the periodic work of a second, the end of a child
bench = bench.restarted()                        -> a new bench on the same data
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.persist.aof.commit import Commit
from penstock.persist.disk import File, Source, SystemDisk
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


class FaultySource:
    """A file of a FaultyDisk that is open for reading."""

    def __init__(self, source: Source, disk: FaultyDisk, path: str) -> None:
        self._source = source
        self._disk = disk
        self._path = path

    def readinto(self, buffer: memoryview) -> int | None:
        self._disk.check("readinto", self._path)
        return self._source.readinto(buffer)

    def close(self) -> None:
        self._source.close()


class FaultyDisk(SystemDisk):
    """A disk whose operations fail on request.

    fault         the error of all operations in `faulty`, or 0; a forked child has a copy
    faulty_name   only files with this text in their names fail
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

    def size(self, path: str) -> int:
        self.check("size", path)
        return super().size(path)

    def read(self, path: str, offset: int = 0) -> Source:
        self.check("read", path)
        return FaultySource(super().read(path, offset), self, path)

    def remove(self, path: str) -> None:
        self.check("remove", path)
        super().remove(path)

    def append_to(self, path: str) -> File:
        return FaultyFile(super().append_to(path), self, path)


class ManualSync:
    """Syncs when the test says so. `woken`: a sync was requested."""

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
    """A bench with settings, named as in CONFIG: DurableBench(folder, appendfsync="everysec")."""

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
        self.durability.quick_seconds = 0.0  # the loop does not sync
        self.server.durability = self.durability
        if logged:
            self.durability.begin_log(self.recovered)

    def _new_syncer(self, commit: Commit, on_done: Callable[[], None]) -> ManualSync:
        self._syncer = ManualSync(commit, on_done)
        return self._syncer

    @property
    def woken(self) -> bool:
        """Whether a sync was requested."""
        return self._syncer is not None and self._syncer.woken

    def sync(self) -> None:
        """Do the sync thread's work, and run the loop."""
        assert self._syncer is not None
        self._syncer.sync()
        self.loop.run()

    def tick(self, ms: int = 0) -> None:
        """Advance the time, and do the periodic work."""
        self.advance(ms)
        self.engine.context.instant.advance()
        self.durability.tick()
        self.loop.run()

    def wait_for_child(self) -> None:
        """Wait for a child, and sync if requested."""
        self.loop.wait_for_files()
        if self.woken:
            self.sync()

    def fail(self, error: int = errno.ENOSPC) -> None:
        """Make the disk fail."""
        self.disk.fault = error

    def heal(self) -> None:
        """Make the disk work again."""
        self.disk.fault = 0

    def end(self, save: bool | None = None) -> bool:
        """Shut down."""
        self.server.turn.end()
        return self.durability.close(save)

    def abandon(self) -> DurableBench:
        """A new bench on the same data, as if this one had been killed."""
        self.store.release_lock()
        return DurableBench(self._folder, self._compat_version, **self._settings)

    def restarted(self) -> DurableBench:
        """Shut down, and start a new bench on the same data."""
        assert self.end()
        return DurableBench(self._folder, self._compat_version, **self._settings)


@pytest.fixture
def bench(tmp_path: Path) -> DurableBench:
    """A test module that wants this fixture says `bench = durable_bench.bench`."""
    return DurableBench(tmp_path)


@pytest.fixture
def client(bench: DurableBench) -> ManualClient:
    """A connection to `bench`."""
    return bench.connect()


def synced(bench: DurableBench, client: ManualClient, *lines: str) -> list[Any]:
    """Run commands, sync, and return the replies."""
    for line in lines:
        client.tell(line)
    bench.sync()
    return client.replies()
