"""Loads the data at start, in a thread, while the loop replies LOADING to clients."""

from __future__ import annotations

import asyncio
import threading
import time

from penstock.errors import PenstockError
from penstock.persist.layout import Layout
from penstock.persist.recovery import Recovered, Recovery
from penstock.persist.store import Store
from penstock.server.config.settings import Config
from penstock.server.log import LOG
from penstock.server.server import Server

_REPORT_SECONDS = 1.0


def layout_of(config: Config) -> Layout:
    """The paths of the data files, from the settings."""
    return Layout(
        config.value("dir"),
        config.value("dbfilename"),
        config.value("appenddirname"),
        config.value("appendfilename"),
    )


async def load_in_thread(
    server: Server, store: Store, config: Config, stop: asyncio.Event
) -> Recovered | None:
    """Load the data into the server's engine; None if the server is stopped meanwhile.

    Raises: CorruptData, OSError.
    """
    recovery = store.recovery(config.value("aof-load-truncated"))
    server.loading = recovery.progress
    started = time.monotonic()
    done = asyncio.Event()
    job = _Job(recovery, config.value("appendonly"), asyncio.get_running_loop(), done)
    threading.Thread(target=job.run, name="penstock-load", daemon=True).start()
    stopping = asyncio.ensure_future(stop.wait())
    loaded = asyncio.ensure_future(done.wait())
    try:
        while not done.is_set() and not stop.is_set():
            await asyncio.wait(
                (stopping, loaded), timeout=_REPORT_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if not done.is_set():
                _report(recovery, time.monotonic() - started)
    finally:
        stopping.cancel()
        loaded.cancel()
        server.loading = None
    if not done.is_set():
        return None
    if job.failure is not None:
        raise job.failure
    assert job.recovered is not None
    server.engine.adopt(recovery.engine)
    _report_end(job.recovered, recovery, time.monotonic() - started)
    return job.recovered


class _Job:
    """The work of the thread, and its result."""

    def __init__(
        self,
        recovery: Recovery,
        logged: bool,
        loop: asyncio.AbstractEventLoop,
        done: asyncio.Event,
    ) -> None:
        self._recovery = recovery
        self._logged = logged
        self._loop = loop
        self._done = done
        self.recovered: Recovered | None = None
        self.failure: PenstockError | OSError | None = None

    def run(self) -> None:
        try:
            recovery = self._recovery
            self.recovered = recovery.with_log() if self._logged else recovery.snapshot_only()
        except (PenstockError, OSError) as error:
            self.failure = error
        finally:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._done.set)


def _report(recovery: Recovery, seconds: float) -> None:
    progress = recovery.progress
    done = progress.bytes_done
    percent = 100 * done // max(1, progress.bytes_total)
    entries = recovery.entries()
    LOG.info(
        "loading: %d%% of %d MB, %d entries, %d entries/s",
        min(percent, 100),
        progress.bytes_total >> 20,
        entries,
        entries / max(seconds, 0.001),
    )


def _report_end(recovered: Recovered, recovery: Recovery, seconds: float) -> None:
    if recovered.sources:
        LOG.info(
            "loaded %d keys and %d commands from %s in %.3f s",
            recovered.keys,
            recovered.commands,
            ", ".join(recovered.sources),
            seconds,
        )
    for warning in recovered.warnings:
        LOG.warning("%s", warning)
