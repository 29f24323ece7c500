"""The composition root: builds the parts of a server, connects them, runs and stops them."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

from penstock._version import VERSION
from penstock.build import KIND
from penstock.engine.execute import Engine
from penstock.errors import CommandError, ConfigError, CorruptData, DirectoryInUse
from penstock.metrics.histogram import Histogram
from penstock.persist.disk import Disk
from penstock.persist.rows import DATA_ROWS
from penstock.persist.store import Store
from penstock.persist.watched_disk import timed_disk
from penstock.server import log
from penstock.server.acl.user_file import start_users
from penstock.server.command_table import ROWS
from penstock.server.config.settings import Config
from penstock.server.cron import Cron
from penstock.server.durability import Durability
from penstock.server.lifecycle import StopRequest
from penstock.server.loading import layout_of, load_in_thread
from penstock.server.log import LOG
from penstock.server.metrics.endpoint import MetricsEndpoint
from penstock.server.metrics.figures import Timings
from penstock.server.net.announcement import client_urls, exposure_or_none
from penstock.server.net.buffered import BufferedConnection
from penstock.server.net.connection import Connection
from penstock.server.net.listener import (
    Door,
    Sockets,
    allow_clients,
    open_sockets,
    shown_address,
)
from penstock.server.net.tls import Tls
from penstock.server.net.tls_listener import TlsListener
from penstock.server.server import Loop, Server
from penstock.server.session.states import BROKEN, LOADING
from penstock.server.shared_log import LogOwner, SharedLog
from penstock.server.supervision.daemon import go_to_background, pid_file
from penstock.server.supervision.systemd import NO, Notifier, supervisor_name

try:
    import uvloop
except ImportError:  # uvloop does not support the platform
    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    new_event_loop = uvloop.new_event_loop

FAREWELL_SECONDS_MAX = 2.0  # for clients to read their last replies
_INTERRUPTED = 130


def _call(call: Callable[[], None]) -> None:
    call()


class App:
    """A server with its sockets. `broken`: it had to stop. Implements lifecycle.Lifecycle."""

    def __init__(
        self,
        engine: Engine,
        config: Config,
        loop: Loop,
        guard: Callable[[Callable[[], None]], None] = _call,
    ) -> None:
        engine.context.dice = random.randrange
        self._guard = guard  # embedded.serving calls with the database's lock held
        self.server = Server(engine, ROWS, loop)
        self.server.door = Door(self.server, config)
        self.server.lifecycle = self
        config.attach(self.server)
        start_users(self.server.users, config)
        if config.value("tls-port"):
            self.server.tls = Tls(config)
        self.new_connection = partial(Connection, self.server)
        # A connection has a protocol's methods but not its base class: uvloop needs no more.
        self.protocol: Callable[[], Any] = self.new_connection
        if new_event_loop is asyncio.new_event_loop:
            self.protocol = lambda: BufferedConnection(self.new_connection())
        self.addresses: list[str] = []
        self.cron = Cron(self.server, config)
        self._backlog: int = config.value("tcp-backlog")
        self._listeners: list[asyncio.Server | TlsListener] = []
        self._paths: list[str] = []
        self._stop = asyncio.Event()
        self.broken = False
        self._config = config
        self._durability: Durability | None = None
        self._shared_log: SharedLog | None = None
        self._request: StopRequest | None = None  # of SHUTDOWN, if there was one
        self._save: bool | None = None
        self._is_waiting = False  # a stop waits for replicas
        self._is_aborted = False

    async def start(self, sockets: Sockets) -> None:
        """Accept clients."""
        loop = asyncio.get_running_loop()
        factory = cast("Callable[[], asyncio.BaseProtocol]", self.protocol)
        for listening in sockets.tls:
            assert self.server.tls is not None
            self.addresses.append(f"{shown_address(listening.getsockname())} (TLS)")
            accepting = TlsListener(listening, self.server, self.server.tls, self.protocol)
            accepting.start()
            self._listeners.append(accepting)
        # The loop calls listen() again: without the argument it would replace the backlog.
        for listening in sockets.plain:
            place = listening.getsockname()
            self.addresses.append(shown_address(place))
            if listening.family == socket.AF_UNIX:
                self._paths.append(place)
                listener = await loop.create_unix_server(
                    factory, sock=listening, backlog=self._backlog
                )
            else:
                listener = await loop.create_server(factory, sock=listening, backlog=self._backlog)
            self._listeners.append(listener)
        self._guard(self.cron.start)

    def request_stop(self, request: StopRequest | None = None) -> None:
        """Stop the server at the end of this turn."""
        if request is not None:
            self._request = request
            self._save = request.save
        self._stop.set()

    def abort_stop(self) -> bool:
        """Give up a stop that still waits for replicas; False if there is none."""
        self._is_aborted = self._is_waiting
        return self._is_waiting

    def report_broken(self, command: str) -> None:
        """Stop: a command failed halfway and may have left a partial change in memory."""
        LOG.critical("%s failed halfway: the data in memory cannot be trusted, stopping", command)
        self.broken = True
        self.server.state |= BROKEN
        self._stop.set()

    async def load(self, store: Store) -> None:
        """Load the data, and log changes from then on; until then clients get LOADING.

        A stop request ends the loading. Raises: CorruptData, OSError.
        """
        loop = asyncio.get_running_loop()
        self.server.state |= LOADING
        logged = self._config.value("appendonly")
        recovered = await load_in_thread(self.server, store, self._config, self._stop)
        if recovered is None:
            return
        durability = Durability(self.server, store, self._config, loop)
        if logged:
            durability.begin_log(recovered)
        self._durability = self.server.durability = durability
        self.server.state &= ~LOADING
        self.server.replication.start(recovered.point)

    def share_log(self, owner: LogOwner, post: Callable[[Callable[[], None]], object]) -> None:
        """Let replies wait for the log of an embedded database."""
        shared = SharedLog(self.server, owner, post)
        shared.begin()
        self._shared_log = shared

    async def until_stopped(self) -> None:
        """Wait until the server must stop. A stop that was requested may be given up, as in Redis."""
        await self._stop.wait()
        while not await self._may_stop():
            self.server.pause.release_writes("stop")
            self._request = self._save = None
            self._stop.clear()
            error = CommandError("Errors trying to SHUTDOWN. Check logs.")
            for session in list(self.server.sessions.values()):
                if session.waiter is not None and session.waiter.command.name == "SHUTDOWN":
                    session.waiter.fail(error)
            await self._stop.wait()

    async def _may_stop(self) -> bool:
        """Wait for replicas, and save; False if that was aborted or has failed."""
        if self.broken:
            return True
        self._is_waiting, self._is_aborted = True, False
        await self.server.replication.wait_for_replicas(self._is_wait_over)
        self._is_waiting = False
        if self._is_aborted:
            LOG.info("the stop was aborted: SHUTDOWN ABORT")
            return False
        request = self._request
        if request is None or request.force or self._durability is None or self.broken:
            return True
        if not self._durability.save_at_end(request.save):
            LOG.error(
                "the snapshot failed, so the server does not stop: SHUTDOWN FORCE ignores that"
            )
            return False
        self._save = False
        return True

    def _is_wait_over(self) -> bool:
        is_urgent = self._request is not None and self._request.now
        return is_urgent or self._is_aborted or self.broken

    async def end(self) -> None:
        """Stop: accept no clients, save, send the remaining replies, close all connections."""
        for listener in self._listeners:
            listener.close()
        for path in self._paths:
            Path(path).unlink(missing_ok=True)
        self.cron.stop()
        self.server.replication.stop()
        self._guard(self.server.turn.end_all)
        if self._durability is not None:
            # A partial change is in memory: it must not replace the last snapshot.
            save = False if self.server.state & BROKEN else self._save
            self.broken |= not self._durability.close(save)
        if self._shared_log is not None:
            self._shared_log.end()
        self._guard(self._close_all)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FAREWELL_SECONDS_MAX
        while self.server.sessions and loop.time() < deadline:
            await asyncio.sleep(0.005)
        self._guard(self._kill_all)
        await asyncio.sleep(0)

    def _close_all(self) -> None:
        for session in list(self.server.sessions.values()):
            session.close()
        self.server.turn.end()

    def _kill_all(self) -> None:
        for session in list(self.server.sessions.values()):
            session.kill()


def run(config: Config, disk: Disk | None = None) -> bool:
    """Serve until a stop is requested; False if an error forced it. Raises: ConfigError."""
    os.umask(0o077)  # only this user may read the files, the log file included
    try:
        log.start(config.value("logfile"), config.value("log-format"))
    except OSError as error:
        raise ConfigError(f"logfile {config.value('logfile')}: {error.strerror}") from error
    log.set_level(config.value("loglevel"))
    if config.ignored_names():
        LOG.warning("directives without effect, ignored: %s", ", ".join(config.ignored_names()))
    make_dir(config)
    allow_clients(config)
    sockets = open_sockets(config)
    notifier = Notifier(config)
    if config.value("daemonize") and supervisor_name(config) == NO:
        go_to_background()
    try:
        with (
            pid_file(config.value("pidfile")),
            asyncio.Runner(loop_factory=new_event_loop) as runner,
        ):
            return runner.run(_serve(config, sockets, disk, notifier))
    except DirectoryInUse as error:
        raise ConfigError(str(error)) from error
    except CorruptData as error:
        hint = "" if "penstock check" in str(error) else "; see penstock check, and its --repair"
        raise ConfigError(f"{error}{hint}") from error
    except OSError as error:
        raise ConfigError(f"{error.filename or config.value('dir')}: {error.strerror}") from error


def make_dir(config: Config) -> None:
    """Create the data directory. Raises: ConfigError."""
    path = Path(config.value("dir")).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"dir {path}: {error.strerror}") from error
    config.values["dir"] = str(path)


async def _serve(config: Config, sockets: Sockets, disk: Disk | None, notifier: Notifier) -> bool:
    fsyncs = Histogram()
    if disk is None:
        disk = timed_disk(fsyncs.note)
    loop = asyncio.get_running_loop()
    engine = Engine(
        compat_version=config.value("compat-version"), databases=config.value("databases")
    )
    store = Store(disk, layout_of(config), engine, DATA_ROWS)
    store.lock()
    app = App(engine, config, loop)
    metrics = MetricsEndpoint(app.server, Timings(fsyncs, app.cron.delays))
    loop.set_exception_handler(_on_loop_error)
    loop.add_signal_handler(signal.SIGTERM, _on_signal, app, "SIGTERM")
    loop.add_signal_handler(signal.SIGINT, _on_interrupt, app)
    await app.start(sockets)
    await metrics.start(sockets.metrics)
    notifier.watch(loop)
    await app.load(store)
    _log_ready(config, app, sockets)
    notifier.ready(f"serving on {', '.join(app.addresses)}")
    # Entries and pending records never form reference cycles, and a full collection over a million of them
    # would stop the server for 63 ms.
    gc.collect()
    gc.freeze()
    gc.disable()
    await app.until_stopped()
    notifier.stopping()
    LOG.info("stopping: %d clients", len(app.server.sessions))
    await app.end()
    metrics.close()
    LOG.info("stopped")
    return not app.broken


def _log_ready(config: Config, app: App, sockets: Sockets) -> None:
    if new_event_loop is asyncio.new_event_loop:
        LOG.warning("uvloop is not installed: asyncio's own event loop is slower")
    if KIND == "interpreted":
        LOG.warning(
            "THIS BUILD IS INTERPRETED and many times slower than a compiled one: install a C compiler and"
            " Python's headers, then reinstall penstock"
        )
    if not config.value("appendonly") and not config.value("save"):
        LOG.warning("appendonly no and no save points: the data is in memory only")
    needs_login = app.server.users.needs_login()
    exposure = None if needs_login else exposure_or_none([*sockets.plain, *sockets.tls], config)
    if exposure is not None:
        LOG.warning("%s", exposure)
    urls = client_urls(sockets, has_password=needs_login)
    LOG.info("connect with %s", " or ".join(urls))
    LOG.info(
        "ready on %s (penstock %s, %s, compat %s, pid %d)",
        ", ".join(app.addresses),
        VERSION,
        KIND,
        config.value("compat-version"),
        os.getpid(),
    )


def _on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    LOG.error("%s", context["message"], exc_info=context.get("exception"))


def _on_signal(app: App, name: str) -> None:
    LOG.info("%s", name)
    app.request_stop()


def _on_interrupt(app: App) -> None:
    """The first Ctrl-C stops the server, the second exits at once."""
    _on_signal(app, "SIGINT")
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, os._exit, _INTERRUPTED)
