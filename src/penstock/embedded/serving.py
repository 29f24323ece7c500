"""Serves the engine of a Database on a socket: the event loop in a thread, one lock for loop and program.

A stand-alone server has no lock. Here the loop's thread takes the lock of the Database around everything it
does. Commands of the program can affect clients: they serve blocked readers and publish events. These effects
are handed over to the loop's thread:

    the loop's thread                            any other thread
    bytes in     locked, then the session        db.xadd() holds the lock, and runs the waiting read:
    timers       locked, unless cancelled          the reply is written into the session's output
    end of turn  locked; the replies go out        `call_soon` asks the loop's thread to end the turn
    transports   used by this thread only          `abort` is handed over too

Invariants
  SV1  a session, the turn and the engine are used only under the lock.
  SV2  a transport, a timer of the loop and a socket are used only by the loop's thread.
  SV3  whenever the lock is free, database 0 is selected, which is the one that a Database works on.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from penstock.engine.execute import Engine
from penstock.server.app import App, new_event_loop
from penstock.server.config.settings import Config
from penstock.server.net.buffered import BufferedConnection
from penstock.server.net.connection import Connection
from penstock.server.net.listener import RESERVED_FILES, Sockets, open_sockets
from penstock.server.shared_log import LogOwner

_T = TypeVar("_T")


class Lock(Protocol):
    """The part of a lock that the loop needs."""

    @property
    def acquire(self) -> Callable[[], object]: ...

    @property
    def release(self) -> Callable[[], None]: ...


class SharedLoop:
    """A server's loop (server.Loop) for callers on any thread. Its callbacks run under the lock."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        lock: Lock,
        engine: Engine,
        owner: LogOwner | None = None,
    ) -> None:
        self._loop = loop
        self._lock = lock
        self._engine = engine
        self._owner = owner
        self._context = engine.context
        self._thread = threading.get_ident()
        self.descriptors: set[int] = set()  # of the connections, for a forked child to close
        self._inside = False  # the loop's thread holds the lock; only that thread uses this

    def locked(self, call: Callable[[], _T]) -> _T:
        """Call a function under the lock, on the loop's thread. Calls may be nested."""
        if self._inside:
            return call()
        self._lock.acquire()
        self._inside = True
        try:
            if self._engine.unfinished and self._owner is not None:
                self._owner.read_again()  # a call of the program was interrupted half-way
            return call()
        finally:
            self._context.keyspace = self._context.databases[0]
            self._inside = False
            self._lock.release()

    def on_loop(self, call: Callable[[], Any]) -> None:
        """Call a function on the loop's thread: now if this is that thread, otherwise soon."""
        if threading.get_ident() == self._thread:
            call()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Call a function under the lock, in the next round of the loop."""
        if threading.get_ident() == self._thread:
            return self._loop.call_soon(self.locked, callback)
        return self._loop.call_soon_threadsafe(self.locked, callback)

    def call_later(self, delay: float, callback: Callable[[], None]) -> SharedTimer:
        """Call a function under the lock, after `delay` seconds."""
        timer = SharedTimer(self, callback)
        self.on_loop(lambda: timer.start(self._loop, delay))
        return timer


class SharedTimer:
    """A timer that any thread may cancel while it holds the lock."""

    def __init__(self, shared: SharedLoop, callback: Callable[[], None]) -> None:
        self._shared = shared
        self._callback: Callable[[], None] | None = callback
        self._handle: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop, delay: float) -> None:
        """Start the timer, on the loop's thread."""
        if self._callback is not None:
            self._handle = loop.call_later(delay, self._shared.locked, self._fire)

    def cancel(self) -> None:
        """Cancel the timer. Its function is not called after this."""
        self._callback = None
        self._shared.on_loop(self._stop)

    def _stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self) -> None:
        # Read under the lock: a thread may have cancelled the timer while this waited for the lock.
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


class SharedTransport:
    """The part of a transport that a connection uses, for callers on any thread."""

    def __init__(self, shared: SharedLoop, transport: Any) -> None:
        self._shared = shared
        self._transport = transport
        self.write = transport.write  # called only at the end of a turn, by the loop's thread
        self.get_extra_info = transport.get_extra_info
        self.get_write_buffer_size = transport.get_write_buffer_size
        self.pause_reading = transport.pause_reading  # called only by the loop's thread
        self.resume_reading = transport.resume_reading

    def close(self) -> None:
        """Close after everything is sent."""
        self._shared.on_loop(self._transport.close)

    def abort(self) -> None:
        """Close at once."""
        self._shared.on_loop(self._transport.abort)


class SharedConnection(BufferedConnection):
    """A connection that does every step under the lock. Its buffer belongs to it alone."""

    def __init__(self, shared: SharedLoop, make: Callable[[], Connection]) -> None:
        super().__init__(shared.locked(make))
        self._shared = shared
        self._descriptor = -1

    def connection_made(self, transport: Any) -> None:
        self._descriptor = transport.get_extra_info("socket").fileno()
        self._shared.descriptors.add(self._descriptor)
        shared = SharedTransport(self._shared, transport)
        self._shared.locked(lambda: self._connection.connection_made(shared))

    def connection_lost(self, exc: Exception | None) -> None:
        self._shared.descriptors.discard(self._descriptor)
        self._shared.locked(lambda: self._connection.connection_lost(exc))

    def buffer_updated(self, nbytes: int) -> None:
        self._shared.locked(lambda: self._connection.buffer_updated(nbytes))

    def eof_received(self) -> bool:
        return self._shared.locked(self._connection.eof_received)

    def pause_writing(self) -> None:
        self._shared.locked(self._connection.pause_writing)

    def resume_writing(self) -> None:
        self._shared.locked(self._connection.resume_writing)


class Serving:
    """A database on a socket, served by a thread. `port` is the TCP port. close() or `with` ends it."""

    def __init__(
        self,
        engine: Engine,
        lock: Lock,
        config: Config,
        owner: LogOwner | None,
        database: object,
    ) -> None:
        self._engine = engine
        self._owner = owner
        self._database = database  # a reference: an unreferenced Database would be closed
        self._lock = lock
        self._config = config
        self._sockets = sockets = open_sockets(config, any_port=True)
        tcp = [found for found in sockets.plain if found.family != socket.AF_UNIX]
        self.port: int | None = tcp[0].getsockname()[1] if tcp else None
        config.values["port"] = self.port or 0
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._app: App | None = None
        self._shared: SharedLoop | None = None
        self._thread = threading.Thread(
            target=self._run, args=(sockets,), name="penstock-serve", daemon=True
        )
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Disconnect the clients and end the thread. The database stays open."""
        app = self._app
        if app is not None and self._shared is not None and self._thread.is_alive():
            self._shared.on_loop(app.request_stop)
        self._thread.join()
        self._database = None

    def leave_to_parent(self) -> None:
        """In a forked copy of the process: close the sockets. They would keep the port and the clients."""
        descriptors = set() if self._shared is None else self._shared.descriptors
        # Not socket.close(): uvloop keeps a reference, and the descriptor would stay open.
        for descriptor in (*descriptors, *self._sockets.descriptors()):
            if descriptor >= 0:
                os.close(descriptor)

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, sockets: Sockets) -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._serve(sockets))
        except BaseException as error:  # noqa: BLE001 - the starting thread raises it
            self._failure = error
        finally:
            sockets.close()
            self._started.set()

    async def _serve(self, sockets: Sockets) -> None:
        shared = SharedLoop(asyncio.get_running_loop(), self._lock, self._engine, self._owner)
        app = shared.locked(lambda: App(self._engine, self._config, shared, shared.locked))
        app.protocol = lambda: SharedConnection(shared, app.new_connection)
        self._app, self._shared = app, shared
        if self._owner is not None:
            owner = self._owner
            shared.locked(lambda: app.share_log(owner, shared.call_soon))
        await app.start(sockets)
        self._started.set()
        await app.until_stopped()
        await app.end()


def serve(
    engine: Engine,
    lock: Lock,
    config: Config,
    owner: LogOwner | None = None,
    database: object = None,
) -> Serving:
    """Serve an engine from a thread. Raises: ConfigError without a socket.

    `owner` keeps the data of the engine. `database` is the program's Database, which is kept alive meanwhile.
    """
    limits = engine.limits
    config.values["stream-node-max-bytes"] = limits.bytes_max
    config.values["stream-node-max-entries"] = limits.entries_max
    config.values["stream-idmp-duration"] = limits.idempotency.duration_s
    config.values["stream-idmp-maxsize"] = limits.idempotency.size_max
    config.values["compat-version"] = engine.context.compat.version
    config.values["databases"] = len(engine.context.databases)
    config.values["notify-keyspace-events"] = engine.context.event_kinds
    # The limit of open files belongs to the embedding program: stay within it.
    open_files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if open_files_max != resource.RLIM_INFINITY:
        most = max(1, open_files_max - RESERVED_FILES)
        config.values["maxclients"] = min(config.value("maxclients"), most)
    return Serving(engine, lock, config, owner, database)
