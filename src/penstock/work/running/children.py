"""Child processes that run a handler. A child runs one attempt at a time and talks over a pipe.

A child imports the handler's module as `penstock worker` does. It never touches the server: the parent takes,
renews and settles. A child that dies is named in the log and replaced.
"""

from __future__ import annotations

import importlib
import multiprocessing
import signal
import sys
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

from penstock.errors import PenstockError
from penstock.work.feed import Entry, log
from penstock.work.handler import Handler
from penstock.work.message import Source
from penstock.work.running.attempts import Attempt, failed
from penstock.work.settlement import Outcome

_SPAWN = multiprocessing.get_context("spawn")
END_SECONDS_MAX = 5.0
# The end of a pipe is not seen while a process that the handler forked has it open.
LOOK_SECONDS = 0.5
_READY = ""


class ProcessDied(Exception):
    """The process that ran the handler ended."""


class CannotStart(PenstockError):
    """A child did not get as far as running the handler."""


class Child:
    """One child process."""

    def __init__(self, handler: Handler[Any]) -> None:
        """Raises: CannotStart."""
        self._handler = handler
        try:
            self._pipe, theirs = _SPAWN.Pipe()
            self.process = _SPAWN.Process(
                target=_serve, args=(theirs, handler.module, handler.name), daemon=True
            )
            self.process.start()
            theirs.close()
        except OSError as error:
            raise CannotStart(f"cannot start a process: {error}") from None
        self._is_ready = False
        self.is_usable = True  # it can run another attempt

    def run(self, source: Source, entries: list[Entry]) -> list[Outcome]:
        """Run one attempt. Raises: CannotStart if the handler did not begin."""
        if not self._is_ready:
            self._wait_until_ready()  # the timeout does not include the import of the module
        timeout = self._handler.options.timeout
        try:
            self._pipe.send((source.group, source.stream, entries))
            if not self._wait(timeout):
                self.kill()
                error: Exception = TimeoutError(f"after {timeout} s")
                return failed(self._handler, entries, error, trace="")
            outcomes: list[Outcome] = self._pipe.recv()
        except Exception:  # noqa: BLE001 - it died, or the handler wrote to the pipe
            how = self._end()
            ids = ",".join(entry.id for entry in entries)
            log.error("stream=%s id=%s outcome=died %s", source.stream, ids, how)
            return failed(self._handler, entries, ProcessDied(how), trace="")
        return outcomes

    def _wait_until_ready(self) -> None:
        try:
            self._wait(None)
            why = self._pipe.recv()
        except (EOFError, OSError):
            why = self._end()
        if why != _READY:
            self.kill()
            raise CannotStart(f"{self._handler.module} cannot be imported in a child: {why}")
        self._is_ready = True

    def _wait(self, seconds: float | None) -> bool:
        """Wait for a reply; False if that takes too long. Raises: EOFError if the process has ended."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            left = LOOK_SECONDS if deadline is None else deadline - time.monotonic()
            if self._pipe.poll(max(0.0, min(left, LOOK_SECONDS))):
                return True
            if not self.process.is_alive() and not self._pipe.poll():
                raise EOFError
            if left <= 0:
                return False

    def _end(self) -> str:
        """End the process, if it has not ended by itself; say how."""
        deadline = time.monotonic() + END_SECONDS_MAX
        # Not join: it waits without a limit for a process that has closed its files.
        while self.process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        code = self.process.exitcode
        self.kill()
        return f"process {self.process.pid} {_ending(code)}"

    def kill(self) -> None:
        """End the child now."""
        self.is_usable = False
        self._pipe.close()
        self.process.kill()
        self.process.join(END_SECONDS_MAX)


def _ending(code: int | None) -> str:
    if code is None:
        return "broke its pipe"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with code {code}"


def _serve(pipe: Connection, module: str, name: str) -> None:
    """The child: run attempts until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        handler = find_handler(module, name)
    except BaseException as error:  # noqa: BLE001 - the module's own code runs here
        pipe.send("".join(traceback.format_exception(error)))
        return
    pipe.send(_READY)
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
