"""A lock that costs almost nothing while no other thread wants it.

    token  [True]        the thread that pops it holds the lock; release puts it back
    queue  gate, gate    threads that found no token, each asleep on its own gate

Popping from a list is atomic in CPython, so two threads never get the token. `threading.Lock.acquire` parses
its two optional arguments at every call: one instruction in ten of an xadd (benchmarks/core.py, "xadd").

This holds for compiled code, where no signal handler runs between popping the token and noting the owner. In
plain Python a handler can run there, and the token would be lost. The plain build uses a lock of the
interpreter (`PlainTurnLock`), which notes its owner in the same step.

Callers acquire inside the `try`, so that no moment is uncovered:

    try:
        turn.acquire()
        ...
    finally:
        with suppress(RuntimeError):  # an interrupt came before the lock was acquired
            turn.release()

Fairness: a release wakes the thread that has waited longest. A running thread may take the token before that
thread is awake; then the woken thread sleeps again, still first in the queue. So threads that wait are served
in order, but a busy thread can overtake them.

Invariants
  LK1  the token is in the list, or one thread holds the lock.
  LK2  a thread sleeps only while its gate is in the queue, and it looks for the token once more after it has
      queued up. A release therefore finds the gate and wakes the thread: no wake-up is lost.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from penstock.embedded import thread_ident

_NOBODY = 0


class TurnLock:
    """Mutual exclusion between threads. A thread that holds the lock and acquires it again gets an error."""

    __slots__ = ("_owner", "_queue", "_token")

    def __init__(self) -> None:
        self._token = [True]
        self._queue: deque[threading.Lock] = deque()
        self._owner = _NOBODY

    def acquire(self) -> None:
        """Wait for the lock and take it. Raises: RuntimeError if this thread holds it."""
        if not self._take():
            if self.is_mine():
                raise inside_a_call()
            self._queue_up()
        self._owner = thread_ident.current()

    def is_mine(self) -> bool:
        """Tell whether this thread holds the lock."""
        return self._owner == thread_ident.current()

    def release(self) -> None:
        """Release the lock and wake the first waiting thread. Raises: RuntimeError if it is not held here."""
        if self._owner != thread_ident.current():
            raise RuntimeError("this thread does not hold the lock")
        self._owner = _NOBODY
        self._token.append(True)
        if self._queue:
            self._wake_first()

    def waiting(self) -> int:
        """How many threads sleep until they can have the lock."""
        return len(self._queue)

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
                gate.acquire()  # opened by a release, which has removed the gate from the queue
                if self._take():
                    return
                self._queue.appendleft(gate)  # another thread was faster: stay first in the queue
            self._leave_queue(gate)
        except BaseException:
            # Interrupted while asleep: pass a wake-up that was meant for this thread on to the next one.
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
    """The same for plain Python. Each method is one of the interpreter's, so a signal cannot split it.

    It makes no promise about the order of waiting threads. A thread that holds it could acquire it again:
    callers ask `is_mine` first.
    """

    __slots__ = ("acquire", "is_mine", "release")

    def __init__(self) -> None:
        lock = threading.RLock()
        self.acquire: Callable[[], bool | None] = lock.acquire
        self.release: Callable[[], None] = lock.release
        self.is_mine: Callable[[], bool] = lock._is_owned  # type: ignore[attr-defined]


def inside_a_call() -> RuntimeError:
    """The error for a thread that holds the lock and asks for it again."""
    return RuntimeError(
        "this thread is inside a call of this object already (from a finalizer or a signal handler)"
    )


def new_turn_lock() -> TurnLock | PlainTurnLock:
    """The lock for this build."""
    return PlainTurnLock() if __file__.endswith(".py") else TurnLock()
