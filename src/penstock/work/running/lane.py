"""The threads of one stream: one takes entries and starts attempts, one settles outcomes.

    take ──> slots ──> execution ──> outcomes ──> settle
     ^                                              |
     └────── slots, keys become free, retries ──────┘

If a take finds less than it asked for, the lane waits for its bell: an entry is added, a settlement may allow
more, or the next row falls due.

A connection that fails or a server that refuses is tried again after a pause. A settlement is repeated until
it has an answer: one that was already applied is refused, so nothing happens twice.
"""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass

from penstock.errors import CommandError, ConnectionLost, DatabaseClosed
from penstock.metrics.histogram import Histogram
from penstock.work.backend import PASSING, Backend
from penstock.work.feed import Entry, Feed, Taken, log
from penstock.work.options import Limiter
from penstock.work.payload import text_of
from penstock.work.running.attempts import failed
from penstock.work.running.bell import SECONDS_MAX, Bell
from penstock.work.running.execution import Done, Execution
from penstock.work.running.gate import Gate
from penstock.work.settlement import DEAD, Outcome

PAUSE_SECONDS = 0.5  # after a failure; doubles up to the next
PAUSE_SECONDS_MAX = 5.0
STANDBY_SECONDS = 1.0  # between two attempts to own a keyed stream
SETTLE_MAX = 500
GATHER_SECONDS = 0.002  # for more free slots, so that one take fills several
TAKER_SECONDS_MAX = 3.0
_END = None
SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """What the lanes of a handler share; all but the limiter also with other handlers."""

    backend: Backend
    gate: Gate
    stopping: threading.Event
    limiter: Limiter | None = None


class Lane:
    """Feeds one stream to its handler."""

    def __init__(
        self, setting: Setting, feed: Feed, execution: Execution, concurrency: int
    ) -> None:
        self.feed = feed
        self.take_failure = ""  # why the last take failed
        self._setting = setting
        self._execution = execution
        self._concurrency = concurrency
        self._options = feed.handler.options
        self._free = concurrency
        self._enough = (concurrency + 1) // 2  # free slots that are worth a take
        self._slots = threading.Condition()
        self.seconds = Histogram(SECONDS)  # of attempts
        self._outcomes: queue.SimpleQueue[list[Outcome] | None] = queue.SimpleQueue()
        self._limiter = setting.limiter
        self._later: list[Outcome] = []  # the server has no memory for what they add
        self._problem = ""  # why the last take or settling failed, if that was not expected
        name = f"penstock-{feed.stream}"
        self._bell = Bell(setting.backend, f"{name}-bell")
        self._taker = threading.Thread(target=self._take_all, name=name, daemon=True)
        self._settler = threading.Thread(
            target=self._settle_all, name=f"{name}-settle", daemon=True
        )

    def start(self) -> None:
        self._bell.start()
        self._taker.start()
        self._settler.start()

    def begin_stop(self) -> None:
        """After `stopping`: end a wait for entries."""
        self._bell.ring()

    def drain(self, deadline: float) -> bool:
        """After `stopping`: wait until all attempts have ended; False if the time is over."""
        self._taker.join(max(0.0, deadline - time.monotonic()))
        with self._slots:
            left = max(0.0, deadline - time.monotonic())
            done = self._slots.wait_for(lambda: self._free == self._concurrency, left)
        return done and not self._taker.is_alive()

    def end_taking(self) -> None:
        """Wait for the end of the last wait for entries."""
        self._taker.join(TAKER_SECONDS_MAX)

    def end(self, seconds: float) -> None:
        """Settle what has ended, and leave the group."""
        self._bell.end()
        self._outcomes.put(_END)
        self._settler.join(seconds)
        try:
            self.feed.leave()
        except (CommandError, ConnectionLost, DatabaseClosed) as error:
            log.warning("stream=%s cannot leave: %s", self.feed.stream, error)

    def problem(self) -> str:
        """Why this stream is not served, if that is no matter of its server; else empty."""
        if not all(one.is_alive() for one in (self._taker, self._settler, self._bell)):
            return f"stream={self.feed.stream} a thread has ended"
        return self._problem

    def _log(self, what: str, error: Exception) -> None:
        """Log a failure: with its traceback if nobody expects it."""
        expected = isinstance(error, CommandError | ConnectionLost)
        text = f"stream={self.feed.stream} {what}: {text_of(error)}"
        log.error("%s", text, exc_info=None if expected else error)
        self._problem = "" if expected else text

    # --- Taking ------------------------------------------------------------------------------------

    def _take_all(self) -> None:
        stopping = self._setting.stopping
        pause = PAUSE_SECONDS
        is_sound = False
        while not stopping.is_set():
            try:
                if not is_sound:
                    self.feed.prepare()
                    self.feed.recover()
                    is_sound = True
                self._take_once()
                pause = PAUSE_SECONDS
            except DatabaseClosed:
                return
            except Exception as error:  # noqa: BLE001 - the stream must not stand still
                if isinstance(error, CommandError) and error.code == "NOGROUP":
                    log.warning(
                        "stream=%s the group is gone: created again from 0", self.feed.stream
                    )
                else:
                    self._log("cannot take", error)
                is_sound = False
                self.take_failure = text_of(error)
                stopping.wait(pause)
                pause = min(PAUSE_SECONDS_MAX, pause * 2)

    def _take_once(self) -> None:
        """Take what can run now, or wait for something."""
        slots = self._wait_for_slots()
        wanted = self._wanted(slots)
        if not wanted:
            return
        gate = self._setting.gate
        if not gate.enter(wanted, 0.5):
            self._reserve_less(wanted)
            return
        taken = Taken()
        started = 0
        failure: Exception | None = None
        try:
            taken = self.feed.take(wanted)
            self.take_failure = self._problem = ""
            if taken.entries and self._options.batch is not None:
                try:
                    self._fill(taken, wanted)
                except Exception as error:  # noqa: BLE001 - what was taken runs first
                    failure = error
            if self._setting.stopping.is_set():
                self._give_back(taken.entries)
                return
            started = self._start(taken.entries)
        finally:
            gate.leave(wanted - started)
            self._reserve_less(wanted - len(taken.entries))
        if failure is not None:
            raise failure
        if taken.suspects_left and self._options.processes:
            self._take_for_child()
        elif taken.suspects_left and gate.alone_in() <= 0:
            self._take_alone()
        elif len(taken.entries) < wanted:
            self._wait_for_more(taken)

    def _give_back(self, entries: list[Entry]) -> None:
        """Entries were taken while the worker stopped: they have not started, and do not count."""
        if entries:
            self.feed.give_back(entries)

    def _wait_for_slots(self) -> int:
        """The number of free slots. If few are free, wait a moment for more."""
        if len(self._later) >= SETTLE_MAX:  # first the server must have memory for these
            self._setting.stopping.wait(PAUSE_SECONDS)
            return 0
        with self._slots:
            self._slots.wait_for(lambda: self._free > 0, 0.5)
            if self._free:
                self._slots.wait_for(lambda: self._free >= self._enough, GATHER_SECONDS)
            return self._free

    def _wanted(self, slots: int) -> int:
        """How many entries to take: for the free slots, or one batch; as the rate allows."""
        wanted = slots if self._options.batch is None or not slots else self._options.batch
        if self._limiter is not None and wanted:
            wanted = self._limiter.reserve(wanted, time.monotonic())
            if not wanted:
                self._setting.stopping.wait(self._limiter.seconds_until_one())
        return wanted

    def _reserve_less(self, entries: int) -> None:
        if self._limiter is not None:
            self._limiter.give_back(entries)

    def _fill(self, taken: Taken, wanted: int) -> None:
        """Wait a little for a batch to become full."""
        deadline = time.monotonic() + self._options.wait
        stopping = self._setting.stopping
        while len(taken.entries) < wanted and not stopping.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._bell.wait(taken.after, left if taken.wait is None else min(left, taken.wait))
            more = self.feed.take(wanted - len(taken.entries))
            taken.entries += more.entries
            taken.wait, taken.after = more.wait, more.after
            taken.suspects_left |= more.suspects_left

    def _start(self, entries: list[Entry]) -> int:
        """Start attempts; entries of a failed batch run one by one. Returns the number of entries."""
        groups = [[entry] for entry in entries]
        if self._options.batch is not None:
            fresh = [entry for entry in entries if entry.attempt == 1]
            groups = [[entry] for entry in entries if entry.attempt > 1]
            groups += [fresh] if fresh else []
        started = 0
        for group in groups:
            with self._slots:  # a failed batch becomes more groups than there are slots
                while self._free <= 0 and not self._setting.stopping.is_set():
                    self._slots.wait(0.5)
                self._free -= 1
            self._execution.start(self.feed.source, group, self._done_with(group))
            started += len(group)
        return started

    def _done_with(self, group: list[Entry], ended: threading.Event | None = None) -> Done:
        begin = time.monotonic()

        def done(outcomes: list[Outcome]) -> None:
            self._outcomes.put(outcomes)
            self._setting.gate.leave(len(group))
            with self._slots:
                self.seconds.note(time.monotonic() - begin)
                self._free += 1
                if self._free == 1 or self._free >= self._enough:
                    self._slots.notify_all()
            if ended is not None:
                ended.set()

        return done

    def _take_suspect(self) -> list[Entry]:
        """One suspect, or none. What is taken while the worker stops is given back."""
        entries = self.feed.take(1, alone=True).entries
        if not self._setting.stopping.is_set():
            return entries
        self._give_back(entries)
        return []

    def _take_for_child(self) -> None:
        """Run one suspect beside others: it can end its own child only."""
        gate = self._setting.gate
        if not self._wait_for_slots() or not gate.enter(1, 0.5):
            return
        started = 0
        try:
            started = self._start(self._take_suspect())
        finally:
            gate.leave(1 - started)

    def _take_alone(self) -> None:
        """Run one suspect while nothing else runs in this process."""
        gate = self._setting.gate
        if not gate.be_alone():
            return
        started = 0
        try:
            entries = self._take_suspect()
            if entries:
                ended = threading.Event()
                with self._slots:
                    self._free -= 1
                started = 1
                self._execution.start(self.feed.source, entries, self._done_with(entries, ended))
                ended.wait()
        finally:
            gate.leave(1 - started)
            gate.share()

    def _wait_for_more(self, taken: Taken) -> None:
        """Wait until an entry is added or may be due, or the stream or a key may be free."""
        if taken.standby:
            self._bell.wait(None, STANDBY_SECONDS)
            return
        seconds = SECONDS_MAX if taken.wait is None else taken.wait
        if taken.suspects_left:
            seconds = min(seconds, self._setting.gate.alone_in())
        self._bell.wait(taken.after, seconds)

    # --- Settling ----------------------------------------------------------------------------------

    def _settle_all(self) -> None:
        ends = False
        while not ends:
            batch, ends = self._gather()
            self._later = self._settle(batch + self._later)

    def _gather(self) -> tuple[list[Outcome], bool]:
        """Wait for outcomes, not for long if others wait for memory; tell whether the lane ends."""
        batch: list[Outcome] = []
        try:
            more = self._outcomes.get(timeout=PAUSE_SECONDS_MAX if self._later else None)
            while more is not _END:
                batch += more
                if len(batch) >= SETTLE_MAX:
                    return batch, False
                more = self._outcomes.get_nowait()
        except queue.Empty:
            return batch, False
        return batch, True

    def _settle(self, batch: list[Outcome]) -> list[Outcome]:
        """Settle outcomes, again and again until there is an answer; return those that need memory."""
        pause = PAUSE_SECONDS
        while batch:
            try:
                self.feed.settle(batch)
                if self.feed.may_free(batch):
                    self._bell.ring()
            except DatabaseClosed:
                break
            except Exception as error:  # noqa: BLE001 - whatever a handler sends, the others are settled
                self._log("cannot settle", error)
                if isinstance(error, CommandError) and error.code == "OOM":
                    # Acknowledging needs no memory, and may free some.
                    heavy = [one for one in batch if _adds(one)]
                    if heavy:
                        return self._settle([one for one in batch if not _adds(one)]) + heavy
                left = self._refused(batch, error)
                if left is not None:
                    return left
                time.sleep(pause)
                pause = min(PAUSE_SECONDS_MAX, pause * 2)
            else:
                break
        return []

    def _refused(self, batch: list[Outcome], error: Exception) -> list[Outcome] | None:
        """Handle a refusal that does not pass by itself, as _settle does; None for any other."""
        code = error.code if isinstance(error, CommandError) else ""
        if isinstance(error, ConnectionLost) or code in PASSING:
            return None
        if code == "NOGROUP":
            self.feed.forget(batch)  # with the group, everything that was pending is gone
            self._bell.ring()
        elif len(batch) > 1:  # perhaps one of them sends what the server refuses: find it
            return [left for one in batch for left in self._settle([one])]
        elif batch[0].sent:
            entry = Entry(batch[0].id, [], batch[0].attempt)
            return self._settle(failed(self.feed.handler, [entry], error))
        elif isinstance(error, CommandError):
            return None  # the stream itself or its dead letters: somebody has to repair the server
        else:
            self.feed.forget(batch)  # its lease will end
            self._bell.ring()
        return []


def _adds(one: Outcome) -> bool:
    """Tell whether settling an outcome adds entries."""
    return one.kind == DEAD or bool(one.sent)
