"""Random work on an engine with a store, on a disk that may stop at any moment.

    unit        a command, or several that belong together; `states` has the state after each
    promised    the number of units that must survive a power cut at this moment
    saved       the units that the directory's snapshot may correspond to

The recovered state must be the state after some unit, and not before the last one promised.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from penstock.core.stream import Stream
from penstock.engine.clock import ManualClock
from penstock.engine.execute import TABLE, Engine
from penstock.errors import CommandError
from penstock.persist.aof.commit import Commit, Policy
from penstock.persist.layout import Layout
from penstock.persist.recovery import Recovered
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Rewrite, Store
from tests.support.disk.fake_disk import FakeDisk
from tests.support.engine.engine_state import engine_state
from tests.support.engine.engines import START_MS, command_of
from tests.support.engine.streams import frame_of, ids_of, pending_of

LAYOUT = Layout("/data")
OPTIONS = SnapshotOptions()
VERSION = "8.8"  # the first with all of the commands below
NOTHING = -1  # stands for a unit: there is no snapshot
UNITS = [
    *["XADD s * temp {n} humid 63"] * 6,
    "XADD s MAXLEN ~ 6 * text {long}",
    "XADD t MAXLEN = 3 * k {n}",
    "XADD t NOMKSTREAM MINID = {past} * k {n}",
    *["XGROUP CREATE s g 0 MKSTREAM"] * 3,
    "XGROUP CREATE t g $ MKSTREAM",
    "XGROUP CREATECONSUMER s g idle",
    "XGROUP DELCONSUMER s g bob",
    "XGROUP DESTROY t g",
    *["XREADGROUP GROUP g alice COUNT 2 STREAMS s >"] * 8,
    "XREADGROUP GROUP g bob COUNT 1 STREAMS s >",
    "XREADGROUP GROUP g carol NOACK STREAMS t >",
    "XGROUP CREATE s h 0",
    "XREADGROUP GROUP h carol COUNT 9 STREAMS s >",
    "XREADGROUP GROUP g bob CLAIM {n} COUNT 2 STREAMS s >",
    "XAUTOCLAIM s g bob 0 0 COUNT 2",
    "XACK s g {ids}",
    "XACK s h {ids}",
    "XCLAIM s g alice 0 {ids}",
    "XNACK s g {mode} IDS {count} {ids}",
    "XDEL s {ids}",
    "XDELEX s {option} IDS {count} {ids}",
    "XACKDEL s g {option} IDS {count} {ids}",
    "XTRIM s MAXLEN 5",
    "XTRIM s MAXLEN = 4 {option}",
    "XTRIM s MINID {past} {option}",
    "XADD s {option} MAXLEN = 4 * temp {n} humid 63",
    "XADD s IDMP p m{n} * temp {n} humid 63",
    "XADD s {option} IDMP p m{n} MAXLEN ~ 4 * temp {n} humid 63",
    "XADD s IDMPAUTO q * temp {n} humid 63",
    "XCFGSET s IDMP-DURATION 10{n} IDMP-MAXSIZE 2",
    "XSETID t 99999999999999-0",
    "DEL t",
    "RPUSH l job:{n} pivot {long}",
    "LPUSH l {n}",
    "LPOP l",
    "LMOVE l m LEFT RIGHT",
    "LSET l -1 {long}",
    "LINSERT l AFTER pivot {long}",
    "LMPOP 2 m l RIGHT COUNT 2",
    "SET k{n} {long} PX {span}",
    "SET k{n} v",
    "GET k{n}",
    "INCR n",
    "GETEX k{n} PX {span}",
    "SELECT",
    "MULTI",
    "wait",
]


@dataclass(frozen=True)
class Photograph:
    """The disk at one moment, and what it must hold."""

    disk: FakeDisk
    promised: int
    last: int  # the current or last unit
    saved: tuple[int, ...]
    step: str


class Work:
    """An engine, its store, and their history. With the disk of another Work it continues there."""

    def __init__(
        self,
        disk: FakeDisk,
        dice: random.Random,
        policy: Policy = Policy.ALWAYS,
        options: SnapshotOptions = OPTIONS,
    ) -> None:
        self.disk = disk
        self.dice = dice
        self.policy = policy
        self.options = options
        self.clock = ManualClock(START_MS)
        self._make_engine()
        self.states: list[list[str]] = [[]]  # unit 0: the empty state
        self.promised = 0
        self.saved: tuple[int, ...] = (NOTHING,)
        self._handed: dict[int, int] = {}
        self._commit: Commit | None = None
        self.photographs: list[Photograph] = []

    def _make_engine(self) -> None:
        self.engine = Engine(self.clock, VERSION)
        self.engine.limits.entries_max = 4
        self.store = Store(self.disk, LAYOUT, self.engine, TABLE.values())

    # --- The store -----------------------------------------------------------------------------------

    def start(self) -> Recovered:
        """Recover, and begin the log."""
        recovered = self.recover()
        self.store.begin_log(recovered, self.policy, self.options)
        self._watch_commit()
        return recovered

    def recover(self) -> Recovered:
        """Load the data on disk. The state after that is one more unit."""
        self.store.lock()
        recovery = self.store.recovery(load_truncated=True)
        recovered = recovery.with_log()
        self.engine.adopt(recovery.engine)
        self.states.append(engine_state(self.engine))
        return recovered

    def _watch_commit(self) -> None:
        self._commit = self.store.commit
        self._handed = {0: self.unit}

    @property
    def unit(self) -> int:
        """The number of the last unit."""
        return len(self.states) - 1

    @property
    def commit(self) -> Commit:
        assert self.store.commit is not None
        return self.store.commit

    def note_promised(self) -> int:
        """Update `promised`. Without a base, a new log promises nothing."""
        commit = self._commit
        if commit is not None and commit.is_based and commit.synced in self._handed:
            self.promised = max(self.promised, self._handed[commit.synced])
        return self.promised

    def note_handed(self, position: int, unit: int) -> None:
        """Record that units up to this one have a position, although another caller handed them over."""
        self._handed[position] = unit

    def photograph_all(self) -> None:
        """Record a photograph at each step from now on."""
        self.disk.on_step = self._photograph

    def _photograph(self) -> None:
        self.photographs.append(
            Photograph(
                self.disk.after_kill(),
                self.note_promised(),
                self.unit,
                self.saved,
                f"{self.disk.steps} {self.disk.log[-1]}",
            )
        )

    def hand_over(self) -> None:
        if self.store.commit is not None:
            self.commit.hand_over()
            self._handed[self.commit.position] = self.unit
            self.note_promised()

    def sync(self) -> None:
        self.hand_over()
        if self.store.commit is not None:
            self.commit.sync()
            if self.commit.failure is not None:
                raise self.commit.failure
            self.note_promised()

    def begin_rewrite(self) -> Rewrite:
        self.hand_over()
        rewrite = self.store.begin_rewrite(self.options)
        self.store.write_base(rewrite.temporary, self.options)
        return rewrite

    def finish_rewrite(self, rewrite: Rewrite) -> None:
        self.hand_over()
        self.commit.do(lambda: self.store.finish_rewrite(rewrite))

    def end_log(self) -> None:
        self.sync()
        self.store.end_log()
        self._commit = None

    def begin_new_log(self) -> Rewrite:
        rewrite = self.store.begin_new_log(self.policy, self.options)
        self._watch_commit()
        self.store.write_base(rewrite.temporary, self.options)
        return rewrite

    def save(self) -> None:
        self.saved = (*self.saved, self.unit)
        self.store.save(self.options)
        self.saved = (self.unit,)

    def restart(self) -> None:
        """Stop cleanly and start again."""
        self.sync()
        before = engine_state(self.engine)
        self.store.close()
        self._begin_again()
        assert self.states[-1] == before

    def restart_killed(self) -> None:
        """Start again as after a kill: the next process finds everything that was written."""
        found = self.disk.after_kill()
        found.on_step, found.log, found.steps = self.disk.on_step, self.disk.log, self.disk.steps
        self.disk.on_step = None
        self.disk = found
        allowed = self.states[self.note_promised() :]
        self._begin_again()
        assert self.states[-1] in allowed

    def _begin_again(self) -> None:
        self._commit = None
        self._make_engine()
        self.start()
        self.note_promised()

    # --- The engine ------------------------------------------------------------------------------------

    def run(self, line: str) -> object:
        """Run a command. A refused command changes nothing."""
        command, pieces = command_of(line.split())
        try:
            return self.engine.execute(command, frame_of(*pieces))
        except CommandError:
            return None

    def do_unit(self) -> None:
        """Run a unit, and record the state after it."""
        kind = self.dice.choice(UNITS)
        context = self.engine.context
        if kind == "SELECT":
            context.keyspace = context.databases[self.dice.choice([0, 0, 3])]
        elif kind == "wait":
            self.clock.at_ms += self.dice.randint(0, 40)
            self.expire()
        elif kind == "MULTI":
            self._do_together()
        else:
            self.run(self._words(kind))
        self.states.append(engine_state(self.engine))

    def do(self, line: str) -> None:
        """Run a unit of one command."""
        self.run(line)
        self.states.append(engine_state(self.engine))

    def expire(self) -> None:
        """Expire keys: one unit, so that there is one state after it."""
        self._begin()
        self.engine.expire_due(1000)
        self._end()

    def _do_together(self) -> None:
        self._begin()
        for _ in range(self.dice.randint(2, 4)):
            kind = self.dice.choice(
                [kind for kind in UNITS if kind not in ("MULTI", "wait", "SELECT")]
            )
            self.run(self._words(kind))
        self._end()

    def _begin(self) -> None:
        if self.engine.context.effects is not None:
            self.engine.context.effects.begin()

    def _end(self) -> None:
        if self.engine.context.effects is not None:
            self.engine.context.effects.end()

    def _words(self, kind: str) -> str:
        dice = self.dice
        known = self._ids() or ["1-1"]
        ids = dice.sample(known, min(2, len(known)))
        return kind.format(
            ids=" ".join(ids),
            count=len(ids),
            option=dice.choice(["KEEPREF", "DELREF", "ACKED"]),
            mode=dice.choice(["SILENT", "FAIL", "FATAL"]),
            n=dice.randint(0, 5),
            long="x" * dice.choice([1, 5, 300, 700]),
            past=self.clock.at_ms - dice.randint(0, 50),
            span=dice.randint(1, 200),
        )

    def _ids(self) -> list[str]:
        """The ids that are pending in the group g, or those in the stream."""
        stream = self.engine.context.keyspace.values.get(b"s")
        if not isinstance(stream, Stream):
            return []
        group = None if stream.groups is None else stream.groups.find(b"g")
        pending = [] if group is None else [row[0] for row in pending_of(group)]
        return pending if pending and self.dice.random() < 0.7 else ids_of(stream)


def log_of_two_increments(is_clean: bool = True) -> FakeDisk:
    """A base and two increments, about 1 KB, closed cleanly or left by a killed process."""
    work = Work(FakeDisk(), random.Random(5))
    work.start()
    for line in ("XADD s * temp 21", "SET k v", "XGROUP CREATE s g 0"):
        work.do(line)
        work.sync()
    rewrite = work.begin_rewrite()
    for line in ("RPUSH l a b", "XADD s * temp 22", "XREADGROUP GROUP g c STREAMS s >"):
        work.do(line)
        work.sync()
    work.finish_rewrite(rewrite)
    work.sync()
    work.begin_rewrite()
    for line in ("XACK s g 1700000000000-0", "INCR n", "XDEL s 1700000000000-1"):
        work.do(line)
        work.sync()
    if is_clean:
        work.store.close()
    return work.disk.after_kill()
