"""App: the handlers of a program, the server they read from, and the group they read for."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from penstock.embedded.database import Database
from penstock.errors import ConfigError
from penstock.metrics.listener import BIND_DEFAULT
from penstock.work.backend import Backend, backend_for
from penstock.work.handler import Handler
from penstock.work.message import Sent
from penstock.work.options import GivenOptions, Options
from penstock.work.running.metrics import MetricsServer
from penstock.work.running.schedule import Schedule
from penstock.work.running.worker import Worker
from penstock.work.settlement import Keys, sending_words

if TYPE_CHECKING:
    from penstock.work.testing import TestRun

F = TypeVar("F", bound=Callable[..., Any])


class App:
    """Handlers for streams.

    where: the URL of a server (penstock, Redis 6.2 or newer, Valkey), an open Database, "file:DIRECTORY" for
    a database that is opened on first use, or "memory:". group: the consumer group; all workers of a program
    have the same. Raises: ConfigError.
    """

    def __init__(self, where: str | Database[Any], *, group: str) -> None:
        if not group:
            raise ConfigError("group: a name, not an empty text")
        self.where = where
        self.group = group
        self.handlers: dict[str, Handler[Any]] = {}
        self.schedules: list[tuple[Handler[Any], Schedule]] = []
        self._backend: Backend | None = None
        self._lock = threading.Lock()

    @property
    def backend(self) -> Backend:
        """The connection to the server; made on first use."""
        with self._lock:
            if self._backend is None:
                self._backend = backend_for(self.where)
            return self._backend

    def on(self, stream: str, **given: Unpack[GivenOptions]) -> Callable[[F], Handler[F]]:
        """Run a function for every entry of a stream.

        key: the field of the payload whose value orders entries; entries with the same value run one after
        the other. partitions: spread the keys over this many streams, `STREAM:0` and so on.
        attempts: how often to try. backoff: seconds before the second attempt, and the longest pause.
        lease: seconds after which the entries of a dead worker are taken over.
        concurrency: attempts at a time in one worker process, for each partition.
        processes: run in child processes.
        timeout: seconds for one attempt (async functions and processes).
        batch: call with a list of up to this many payloads. wait: seconds to wait for a full batch.
        rate: `per_second(n)`, entries per second in one worker process. Raises: ConfigError.
        """
        options = Options(**given)
        names = sys._getframe(1).f_locals

        def decorate(function: F) -> Handler[F]:
            return self._add(Handler(self, function, stream, options, names))

        return decorate

    def every(self, cron: str, *, tz: str = "UTC") -> Callable[[F], Handler[F]]:
        """Run a function at the times of a cron expression, once among all workers of the group.

        The entries are in the stream `every:FUNCTION`. Raises: ConfigError.
        """
        schedule = Schedule(cron, tz)
        names = sys._getframe(1).f_locals

        def decorate(function: F) -> Handler[F]:
            stream = f"every:{self.group}:{function.__name__}"
            handler = self._add(Handler(self, function, stream, Options(), names))
            self.schedules.append((handler, schedule))
            return handler

        return decorate

    def _add(self, handler: Handler[F]) -> Handler[F]:
        for stream in handler.streams():
            for other in self.handlers.values():
                if stream in other.streams():
                    raise ConfigError(f"{stream!r} already has the handler {other.name}")
        self.handlers[handler.stream] = handler
        return handler

    def route(self, stream: str, payload: Any) -> str:
        """The stream, or the partition, that a payload belongs to."""
        handler = self.handlers.get(stream)
        return stream if handler is None else handler.stream_for(payload)

    def send_now(self, sent: Sent) -> str | None:
        """Add an entry; return its id, or None if its dedup name was used before."""
        if not sent.delay and sent.dedup is None:
            added = self.backend.ask("XADD", sent.stream, "*", *sent.fields)
        else:
            keys = Keys()
            words = sending_words(keys, sent)
            added = self.backend.work("SEND", keys.all, words)
        return None if added is None else str(added.decode())

    def worker(self, concurrency: int | None = None) -> Worker:
        """A worker for all handlers, to start and stop by yourself."""
        return Worker(self, concurrency)

    def run(
        self,
        *,
        concurrency: int | None = None,
        drain: float = 30,
        metrics: int | None = None,
        metrics_bind: str = BIND_DEFAULT,
    ) -> bool:
        """Run a worker until SIGTERM or SIGINT; True if everything was finished.

        The first signal stops taking entries and waits up to `drain` seconds for those that run; a second one
        gives them back at once. metrics: a port for Prometheus, on the address metrics_bind. Call it in the
        main thread.
        """
        worker = self.worker(concurrency)
        served: MetricsServer | None = None
        stop, now = threading.Event(), threading.Event()

        def on_signal(*_: object) -> None:
            (now if stop.is_set() else stop).set()

        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        for number in before:
            signal.signal(number, on_signal)
        try:
            if metrics is not None:  # before entries are taken: the port may be in use
                served = MetricsServer(worker, metrics, metrics_bind)
            worker.start()
            while not stop.wait(3600):
                pass
            return worker.stop(drain, now)
        finally:
            if served is not None:
                served.close()
            for number, action in before.items():
                signal.signal(number, action)

    def close(self) -> None:
        """Close the connection, and the database if this App has opened it."""
        with self._lock:
            if self._backend is not None:
                self._backend.close()
                self._backend = None

    def test(self) -> TestRun:
        """`with app.test() as t:` runs everything in memory, in this thread, by a clock set by hand."""
        from penstock.work.testing import TestRun  # noqa: PLC0415 - only tests need it

        return TestRun(self)

    def use(self, backend: Backend | None) -> Backend | None:
        """Use another backend; return the one before. For tests."""
        with self._lock:
            before, self._backend = self._backend, backend
            return before
