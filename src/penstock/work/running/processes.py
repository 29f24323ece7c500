"""`penstock worker`: finds the App, runs it in this process or in several, restarts them.

With several processes, this one only supervises: it starts workers as `penstock worker` of their own, passes
signals on, and starts a worker again when it dies.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from penstock.embedded.database import Database
from penstock.errors import ConfigError, PenstockError
from penstock.work.app import App
from penstock.work.backend import DIRECTORY, MEMORY
from penstock.work.feed import log

LOOK_SECONDS = 0.5
RESTART_SECONDS = 1.0
KILL_SECONDS = 15.0  # beyond the drain


class NoApp(PenstockError):
    """MODULE:APP names no App."""


@dataclass(frozen=True, slots=True)
class Options:
    """What each worker process is started with."""

    app: str
    processes: int
    concurrency: int | None
    drain: float
    metrics: int | None
    metrics_bind: str

    def command(self, number: int) -> list[str]:
        """The command of one worker."""
        words = [sys.executable, "-m", "penstock", "worker", self.app, "--drain", str(self.drain)]
        if self.concurrency is not None:
            words += ["--concurrency", str(self.concurrency)]
        if self.metrics is not None:
            words += ["--metrics", str(self.metrics + number), "--metrics-bind", self.metrics_bind]
        return words


def load(name: str) -> App:
    """Import MODULE:APP. Raises: NoApp, and what the module itself raises."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise NoApp(f"{name!r} is not MODULE:APP")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise NoApp(f"cannot import {module}: {error}") from error
    except Exception as error:
        raise NoApp(f"cannot import {module}: {type(error).__name__}: {error}") from error
    app = getattr(found, attribute, None)
    if not isinstance(app, App):
        raise NoApp(f"{module} has no App named {attribute}")
    return app


def run_one(app: App, options: Options) -> bool:
    """Run a worker in this process until a signal. Raises: PenstockError."""
    return app.run(
        concurrency=options.concurrency,
        drain=options.drain,
        metrics=options.metrics,
        metrics_bind=options.metrics_bind,
    )


def run_many(app: App, options: Options, reload: bool) -> bool:
    """Run workers in processes of their own until a signal. Raises: ConfigError."""
    where = app.where
    if isinstance(where, Database) or where == MEMORY or where.startswith(DIRECTORY):
        raise ConfigError(
            "only one process can have an embedded database open: use processes=True on the handlers"
        )
    return Supervisor(options, reload).run()


class Supervisor:
    """Keeps worker processes running."""

    def __init__(self, options: Options, reload: bool) -> None:
        self._options = options
        self._reload = reload
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._stop = threading.Event()

    def run(self) -> bool:
        """Run until a signal; True if all workers finished in order."""
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, self._on_signal)
        for number in range(self._options.processes):
            self._start(number)
        seen = self._code()
        while not self._stop.wait(LOOK_SECONDS):
            self._restart_dead()
            if self._reload and (now := self._code()) != seen:
                seen = now
                log.info("code has changed: restarting")
                self._end_all()
                for number in range(self._options.processes):
                    self._start(number)
        return self._wait_for_all()

    def _start(self, number: int) -> None:
        # A session of its own: Ctrl-C reaches it once, through us.
        self._workers[number] = subprocess.Popen(
            self._options.command(number), start_new_session=True
        )

    def _on_signal(self, *_: object) -> None:
        self._stop.set()
        self._tell_all()

    def _tell_all(self) -> None:
        for worker in self._workers.values():
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)

    def _restart_dead(self) -> None:
        for number, worker in list(self._workers.items()):
            code = worker.poll()
            if code is not None and not self._stop.is_set():
                log.error("process %d ended with code %d: starting another", worker.pid, code)
                self._stop.wait(RESTART_SECONDS)
                if not self._stop.is_set():
                    self._start(number)

    def _end_all(self) -> None:
        self._tell_all()
        self._wait_for_all()

    def _wait_for_all(self) -> bool:
        deadline = time.monotonic() + self._options.drain + KILL_SECONDS
        codes = []
        for worker in self._workers.values():
            try:
                codes.append(worker.wait(max(0.0, deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                worker.kill()
                codes.append(worker.wait())
        return all(code == 0 for code in codes)

    def _code(self) -> dict[str, float]:
        """The Python files of this directory, and when they changed."""
        found = {}
        for folder, names, files in os.walk("."):
            names[:] = [name for name in names if not name.startswith((".", "__pycache__"))]
            for name in files:
                path = Path(folder, name)
                if path.suffix == ".py" and path.exists():
                    found[str(path)] = path.stat().st_mtime
        return found
