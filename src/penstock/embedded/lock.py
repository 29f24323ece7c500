"""A lock that costs next to nothing while nobody else wants it.

    token  [True]        who pops it has the turn; who is done puts it back
    queue  gate, gate    threads that found no token, each asleep on a gate of its own

Popping from a list is atomic in CPython, so the token is never had twice. `threading.Lock.acquire` parses
its two optional arguments at every call: one instruction in ten of an xadd (benchmarks/core.py, "xadd").

That holds for compiled code, where no signal handler runs between popping the token and noting who has it. In
plain Python one can, and the token would be lost. There the lock is one of the interpreter's own
(`PlainTurnLock`), which notes its owner in the same step.

A caller takes the turn inside of its `try`, so that no moment is left uncovered:

    try:
        turn.acquire()
        ...
    finally:
        with suppress(RuntimeError):  # an interrupt came before it was ours
            turn.release()

Invariants
  T1  the token is in the list, or one thread has the turn.
  T2  a thread sleeps only while its gate is in the queue, and it looks for the token once more after it has
      queued up. So whoever gives the token back finds it there and wakes it: no wake-up is lost.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from penstock.embedded import thread_ident

_NOBODY = 0


class TurnLock:
    """Mutual exclusion between threads. Who has the turn and asks for it again gets an error."""

    __slots__ = ("_owner", "_queue", "_token")

    def __init__(self) -> None:
        self._token = [True]
        self._queue: deque[threading.Lock] = deque()
        self._owner = _NOBODY

    def acquire(self) -> None:
        """Wait for the turn and take it. Raises: RuntimeError for the thread that has it."""
        if not self._take():
            if self.is_mine():
                raise inside_a_call()
            self._queue_up()
        self._owner = thread_ident.current()

    def is_mine(self) -> bool:
        """Tell whether this thread has the turn."""
        return self._owner == thread_ident.current()

    def release(self) -> None:
        """Give the turn back. Raises: RuntimeError for a thread that does not have it."""
        if self._owner != thread_ident.current():
            raise RuntimeError("the turn is another thread's")
        self._owner = _NOBODY
        self._token.append(True)
        if self._queue:
            self._wake_first()

    def _take(self) -> bool:
        try:
            self._token.pop()
        except IndexError:
            return False
        return True

    def _queue_up(self) -> None:
        gate = threading.Lock()
        gate.acquire()
        self._queue.append(gate)
        try:
            while not self._take():
                gate.acquire()  # opened by a release, which has taken the gate out of the queue
                if self._take():
                    return
                self._queue.appendleft(gate)  # somebody was quicker: stay the first in the queue
            self._leave_queue(gate)
        except BaseException:
            # Interrupted in its sleep: a wake-up that was meant for this thread goes to the next.
            if not self._leave_queue(gate) and self._token:
                self._wake_first()
            raise

    def _leave_queue(self, gate: threading.Lock) -> bool:
        try:
            self._queue.remove(gate)
        except ValueError:
            return False
        return True

    def _wake_first(self) -> None:
        try:
            gate = self._queue.popleft()
        except IndexError:
            return  # it has found the token by itself
        gate.release()


class PlainTurnLock:
    """The same for plain Python: each method is one of the interpreter's, and one step."""

    __slots__ = ("acquire", "is_mine", "release")

    def __init__(self) -> None:
        lock = threading.RLock()
        self.acquire: Callable[[], bool | None] = lock.acquire
        self.release: Callable[[], None] = lock.release
        self.is_mine: Callable[[], bool] = lock._is_owned  # type: ignore[attr-defined]


def inside_a_call() -> RuntimeError:
    """What a thread is told that has the turn and asks for it again."""
    return RuntimeError(
        "this thread is inside a call of this object already (from a finalizer or a signal handler)"
    )


def new_turn_lock() -> TurnLock | PlainTurnLock:
    """The lock for this build."""
    return PlainTurnLock() if __file__.endswith(".py") else TurnLock()
