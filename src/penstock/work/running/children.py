"""Child processes that run a handler. A child runs one attempt at a time and talks over a pipe.

A child imports the handler's module as `penstock worker` does. It never touches the server: the parent takes,
renews and settles. A child that dies is named in the log and replaced.
"""

from __future__ import annotations

import importlib
import multiprocessing
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from penstock.work.feed import Entry, log
from penstock.work.handler import Handler
from penstock.work.message import Source
from penstock.work.running.attempts import Attempt, failed
from penstock.work.settlement import Outcome

_SPAWN = multiprocessing.get_context("spawn")
END_SECONDS_MAX = 5.0


class ProcessDied(Exception):
    """The process that ran the handler ended."""


class Child:
    """One child process."""

    def __init__(self, handler: Handler[Any]) -> None:
        self._handler = handler
        self._pipe, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(
            target=_serve, args=(theirs, handler.module, handler.name), daemon=True
        )
        self.process.start()
        theirs.close()
        self._is_ready = False

    def run(self, source: Source, entries: list[Entry]) -> list[Outcome]:
        """Run one attempt. Afterwards `is_alive` tells whether the child can run another."""
        timeout = self._handler.options.timeout
        try:
            if not self._is_ready:
                self._pipe.recv()  # the timeout does not include the import of the module
                self._is_ready = True
            self._pipe.send((source.group, source.stream, entries))
            if timeout is not None and not self._pipe.poll(timeout):
                self.kill()
                error: Exception = TimeoutError(f"after {timeout} s")
                return failed(self._handler, entries, error, trace="")
            outcomes: list[Outcome] = self._pipe.recv()
        except (EOFError, OSError):
            self.process.join(END_SECONDS_MAX)
            how = f"process {self.process.pid} {_ending(self.process.exitcode)}"
            ids = ",".join(entry.id for entry in entries)
            log.error("stream=%s id=%s outcome=died %s", source.stream, ids, how)
            return failed(self._handler, entries, ProcessDied(how), trace="")
        return outcomes

    @property
    def is_alive(self) -> bool:
        return self.process.is_alive()

    def kill(self) -> None:
        """End the child now."""
        self._pipe.close()
        self.process.kill()
        self.process.join(END_SECONDS_MAX)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with code {code}"


def _serve(pipe: Connection, module: str, name: str) -> None:
    """The child: run attempts until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    handler = find_handler(module, name)
    pipe.send("ready")
    while True:
        try:
            group, stream, entries = pipe.recv()
            source = Source(group, stream, handler.route)
            pipe.send(Attempt(handler, source, entries).run())
        except (EOFError, OSError):  # the parent has ended; a handler's own errors are outcomes
            return


def find_handler(module: str, name: str) -> Any:
    """Import a module and find its handler by the function's name."""
    found: Any = sys.modules.get(module) or importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
