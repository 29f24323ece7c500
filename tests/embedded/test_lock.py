"""The lock around the engine: mutual exclusion, its errors, interrupts, the order of waiting threads.

Both kinds are tested in both builds. Where only one of them makes a promise, or only the compiled code keeps
it, the test says so.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from penstock.build import KIND
from penstock.embedded import lock as lock_module
from penstock.embedded.lock import PlainTurnLock, TurnLock, new_turn_lock
from tests.embedded.test_database import Worker

SECONDS_MAX = 30.0
IS_COMPILED = KIND == "compiled"
Lock = TurnLock | PlainTurnLock

both = pytest.mark.parametrize("make", [TurnLock, PlainTurnLock])


@pytest.fixture
def often_switching() -> Iterator[None]:
    """Let the interpreter switch threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def held_by_another_thread(lock: Lock, until: threading.Event) -> Worker:
    """A thread that holds the lock until an event is set."""
    holding = threading.Event()

    def hold() -> None:
        lock.acquire()
        holding.set()
        assert until.wait(SECONDS_MAX)
        lock.release()

    worker = Worker(hold)
    assert holding.wait(SECONDS_MAX)
    return worker


def take_and_release(lock: Lock) -> None:
    lock.acquire()
    lock.release()


def wait_until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(SECONDS_MAX * 1000)):
        if condition():
            return
        pause.wait(0.001)
    pytest.fail("the condition was never met")


# --- Mutual exclusion ------------------------------------------------------------------------------


@both
@pytest.mark.usefixtures("often_switching")
def test_one_thread_at_a_time(make: Callable[[], Lock]) -> None:
    lock, threads, each = make(), 12, 400
    inside: list[int] = []
    count = [0]

    def work(number: int) -> None:
        for _ in range(each):
            lock.acquire()
            try:
                inside.append(number)
                before = count[0]
                assert inside == [number], "two threads hold the lock"
                assert lock.is_mine()
                count[0] = before + 1
                inside.pop()
            finally:
                lock.release()

    workers = [Worker(lambda number=number: work(number)) for number in range(threads)]  # type: ignore[misc]
    for worker in workers:
        worker.result()
    assert count == [threads * each]
    assert not lock.is_mine()
    lock.acquire()
    lock.release()


@both
def test_a_thread_waits_while_another_holds_the_lock(make: Callable[[], Lock]) -> None:
    lock, release, steps = make(), threading.Event(), []
    holder = held_by_another_thread(lock, release)
    assert not lock.is_mine()

    def take() -> None:
        lock.acquire()
        steps.append("acquired")
        lock.release()

    waiter = Worker(take)
    if isinstance(lock, TurnLock):
        wait_until(lambda: lock.waiting() == 1)
    assert steps == []
    release.set()
    waiter.result()
    holder.result()
    assert steps == ["acquired"]


# --- Errors ----------------------------------------------------------------------------------------


@both
def test_a_thread_that_does_not_hold_the_lock_cannot_release_it(make: Callable[[], Lock]) -> None:
    lock, release = make(), threading.Event()
    with pytest.raises(RuntimeError):
        lock.release()
    holder = held_by_another_thread(lock, release)
    with pytest.raises(RuntimeError):
        lock.release()
    release.set()
    holder.result()
    lock.acquire()
    lock.release()
    with pytest.raises(RuntimeError):
        lock.release()


def test_acquiring_twice_is_an_error_and_not_a_deadlock() -> None:
    lock = TurnLock()
    lock.acquire()
    with pytest.raises(RuntimeError, match="inside a call of this object already"):
        lock.acquire()
    assert lock.is_mine()
    lock.release()
    assert not lock.is_mine()
    Worker(lambda: take_and_release(lock)).result()


def test_the_plain_lock_tells_its_owner() -> None:
    """It can be acquired twice, so the runner asks is_mine() first."""
    lock = PlainTurnLock()
    assert not lock.is_mine()
    lock.acquire()
    assert lock.is_mine()
    assert Worker(lock.is_mine).result() is False
    lock.release()
    assert not lock.is_mine()


def test_each_build_has_its_lock() -> None:
    assert type(new_turn_lock()) is (TurnLock if IS_COMPILED else PlainTurnLock)
    assert lock_module.__file__.endswith(".py") is not IS_COMPILED


# --- Order -----------------------------------------------------------------------------------------


def test_waiting_threads_are_served_in_order() -> None:
    """While nobody else wants the lock: a thread that runs may overtake one that has to wake up."""
    lock, order = TurnLock(), list[int]()
    may_release = threading.Semaphore(0)
    taken = threading.Semaphore(0)

    def take(number: int) -> None:
        lock.acquire()
        order.append(number)
        taken.release()
        assert may_release.acquire(timeout=SECONDS_MAX)
        lock.release()

    lock.acquire()
    workers = []
    for number in range(6):
        workers.append(Worker(lambda number=number: take(number)))  # type: ignore[misc]
        wait_until(lambda expected=number + 1: lock.waiting() == expected)  # type: ignore[misc]
    lock.release()
    for number in range(6):
        assert taken.acquire(timeout=SECONDS_MAX)
        assert order == list(range(number + 1))
        may_release.release()
    for worker in workers:
        worker.result()
    assert lock.waiting() == 0


@pytest.mark.usefixtures("often_switching")
def test_no_wake_up_is_lost_when_a_running_thread_overtakes() -> None:
    """One thread takes and releases all the time; those that wait get their turns too, and end."""
    lock, stop = TurnLock(), threading.Event()

    def spin() -> None:
        while not stop.is_set():
            lock.acquire()
            lock.release()

    def work() -> None:
        for _ in range(200):
            lock.acquire()
            lock.release()

    spinner = Worker(spin)
    for worker in [Worker(work) for _ in range(4)]:
        worker.result()
    stop.set()
    spinner.result()
    assert lock.waiting() == 0


# --- Interrupts ------------------------------------------------------------------------------------


class Interrupt(Exception):
    """Raised by a signal handler."""


@pytest.fixture
def interrupting() -> Iterator[None]:
    def handler(_number: int, _frame: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGUSR1, handler)
    yield
    signal.signal(signal.SIGUSR1, before)


def interrupt_when(condition: Callable[[], bool]) -> Worker:
    """Interrupt the main thread once a condition holds."""
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        wait_until(condition)
        signal.pthread_kill(main, signal.SIGUSR1)

    return Worker(interrupt)


@pytest.mark.usefixtures("interrupting")
def test_an_interrupted_wait_leaves_the_queue() -> None:
    lock, release = TurnLock(), threading.Event()
    holder = held_by_another_thread(lock, release)
    interrupter = interrupt_when(lambda: lock.waiting() == 1)
    with pytest.raises(Interrupt):
        lock.acquire()
    interrupter.result()
    assert lock.waiting() == 0
    assert not lock.is_mine()
    with pytest.raises(RuntimeError):
        lock.release()
    release.set()
    holder.result()
    lock.acquire()
    lock.release()


@pytest.mark.usefixtures("interrupting")
def test_an_interrupted_thread_passes_its_wake_up_on() -> None:
    """Both are woken by the same release: the interrupt must not keep the other one asleep."""
    for _ in range(20):
        lock, release, taken = TurnLock(), threading.Event(), threading.Event()
        holder = held_by_another_thread(lock, release)

        def take(lock: TurnLock = lock, taken: threading.Event = taken) -> None:
            lock.acquire()
            taken.set()
            lock.release()

        def queue_up_behind(lock: TurnLock = lock, release: threading.Event = release) -> None:
            wait_until(lambda: lock.waiting() == 1)
            behind = Worker(take)
            wait_until(lambda: lock.waiting() == 2)
            release.set()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            behind.result()

        director = Worker(queue_up_behind)
        try:
            lock.acquire()
            lock.release()
            signal.pause()  # the interrupt came after the lock was acquired and released
        except Interrupt:
            if lock.is_mine():
                lock.release()
        director.result()
        holder.result()
        assert taken.is_set()
        assert lock.waiting() == 0


@both
def test_a_storm_of_interrupts_loses_no_token(make: Callable[[], Lock]) -> None:
    """With the frame that the runner uses, and several threads that want the lock."""
    if make is TurnLock and not IS_COMPILED:
        pytest.skip("in plain Python a handler can run between two steps of TurnLock")
    lock, stop, main = make(), threading.Event(), threading.main_thread().ident or 0
    armed: list[bool] = []
    interrupts = 0

    def handler(_number: int, _frame: object) -> None:
        if armed:
            armed.pop()
            raise Interrupt

    def want() -> None:
        while not stop.is_set():
            lock.acquire()
            lock.release()

    def storm() -> None:
        pause = threading.Event()
        while not stop.is_set():
            signal.pthread_kill(main, signal.SIGUSR1)
            pause.wait(0.001)

    def frame() -> None:
        try:
            lock.acquire()
            assert lock.is_mine()
        finally:
            try:  # noqa: SIM105 - as in the runner
                lock.release()
            except RuntimeError:
                pass

    before = signal.signal(signal.SIGUSR1, handler)
    workers = [Worker(storm), *(Worker(want) for _ in range(3))]
    while interrupts < 100:
        try:
            armed.append(True)
            for _ in range(1000):
                frame()
            armed.clear()
        except Interrupt:
            interrupts += 1
    stop.set()
    for worker in workers:
        worker.result()
    signal.signal(signal.SIGUSR1, before)
    assert not lock.is_mine()
    Worker(lambda: take_and_release(lock)).result()
