"""Forks a child that writes a snapshot of its parent's memory as it is at that moment.

The parent continues at once: memory is copied page by page when either process changes it. The child

    1  resets the signal handlers and the loop's wakeup fd, which belong to the parent
    2  closes every file except its pipe, and one that its work may need: the lock, the listeners and the
       clients belong to the parent too
    3  dies with its parent, so that no two processes write to one directory
    4  does its work, reports the result through the pipe, and calls os._exit, which does not flush buffers
       or run exit handlers of the parent

The parent's threads do not exist in the child, so the work must take no lock that one of them may hold.
"""

from __future__ import annotations

import ctypes
import os
import signal
import warnings
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_DONE = b"done"
_RESET = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGCHLD,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_FDS_MAX = 1 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)


class ChildFailed(Exception):
    """The child failed. The text says why."""


class Child:
    """A running child. `pipe` becomes readable when it ends."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid = pid
        self.pipe = pipe

    def finish(self) -> None:
        """Wait until the child ends. Raises: ChildFailed unless it succeeded."""
        os.set_blocking(self.pipe, True)  # an event loop may have made it non-blocking
        said = b""
        while piece := os.read(self.pipe, 4096):
            said += piece
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        if said != _DONE:
            code = os.waitstatus_to_exitcode(status)
            ended = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
            raise ChildFailed(said.decode("utf-8", "replace") or ended)

    def kill(self) -> None:
        """Kill the child. The caller still calls finish()."""
        os.kill(self.pid, signal.SIGKILL)


def start_child(work: Callable[[], None], keep: int | None = None) -> Child:
    """Fork, and run `work` in the child. `keep`: a file that it needs. Raises: OSError if the fork fails."""
    parent = os.getpid()
    reads, writes = os.pipe()
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns about threads. The child takes none of their locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
    except OSError:
        os.close(reads)
        os.close(writes)
        raise
    if pid == 0:
        _be_child(parent, writes, work, writes if keep is None else keep)
    os.close(writes)
    return Child(pid, reads)


def _be_child(parent: int, pipe: int, work: Callable[[], None], keep: int) -> None:
    """Run in the child. Never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(code)  # the parent ended before prctl
        first, second = sorted((pipe, keep))
        os.closerange(3, first)
        os.closerange(first + 1, second)
        os.closerange(second + 1, _FDS_MAX)
        work()
        os.write(pipe, _DONE)
        code = 0
    except OSError as error:
        os.write(pipe, f"{error.strerror or error}".encode())
    except BaseException as error:  # noqa: BLE001  only the parent can log it
        os.write(pipe, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(code)
