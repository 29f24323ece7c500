"""A forked child that writes a snapshot of what its parent had in memory at that moment.

The parent goes on at once: the system copies a page when either of them changes it. The child

    1  takes no signal for its parent: handlers and the wakeup fd of the loop are the parent's
    2  closes every file but its pipe: the lock, the listeners and the clients are the parent's as well
    3  dies with its parent, lest two of them write to one directory
    4  does its work, says how it ended into the pipe, and leaves by os._exit: nothing of the parent's is
       flushed or cleaned up twice

No thread of the parent lives on in the child, so the work must take no lock that a thread may have held.
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
    """The child could not do its work; the text says why."""


class Child:
    """A child at work. `pipe` becomes readable when it has ended."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid = pid
        self.pipe = pipe

    def finish(self) -> None:
        """Wait for its end. Raises: ChildFailed unless it did its work."""
        os.set_blocking(self.pipe, True)  # a loop that watched it may have changed that
        said = b""
        while piece := os.read(self.pipe, 4096):
            said += piece
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        if said != _DONE:
            code = os.waitstatus_to_exitcode(status)
            ended = f"it was ended by signal {-code}" if code < 0 else f"it ended with code {code}"
            raise ChildFailed(said.decode("utf-8", "replace") or ended)

    def kill(self) -> None:
        """End it; finish() is still to be called."""
        os.kill(self.pid, signal.SIGKILL)


def start_child(work: Callable[[], None]) -> Child:
    """Fork, and let the child do some work. Raises: OSError if there can be no child."""
    parent = os.getpid()
    reads, writes = os.pipe()
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of threads: the child takes none of their locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
    except OSError:
        os.close(reads)
        os.close(writes)
        raise
    if pid == 0:
        _be_child(parent, writes, work)
    os.close(writes)
    return Child(pid, reads)


def _be_child(parent: int, pipe: int, work: Callable[[], None]) -> None:
    """Never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(code)  # it ended before it could be noticed
        os.closerange(3, pipe)
        os.closerange(pipe + 1, _FDS_MAX)
        work()
        os.write(pipe, _DONE)
        code = 0
    except OSError as error:
        os.write(pipe, f"{error.strerror or error}".encode())
    except BaseException as error:  # noqa: BLE001  the parent logs it; nobody else can
        os.write(pipe, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(code)
