"""Simulates a power cut at every step of some work, and checks what survives."""

from __future__ import annotations

import random
from collections.abc import Iterator

from penstock.core.stream import Stream
from penstock.errors import CorruptData
from penstock.persist.aof.commit import Policy
from tests.support.disk.durable_work import LAYOUT, NOTHING, Photograph, Work
from tests.support.disk.fake_disk import OUTCOMES, Bytes, FakeDisk, Names, Outcome
from tests.support.engine.engine_state import engine_state
from tests.support.engine.streams import sid

WORST = Outcome(Bytes.NONE, Names.NONE)


class PowerCuts:
    """Photographs of some work, and the possible disks after a power cut at each."""

    def __init__(self, work: Work, seed: int) -> None:
        self._work = work
        self._dice = random.Random(seed)
        self._seen: set[object] = set()
        work.photograph_all()

    def check_all(self, go_on_every: int = 9) -> None:
        """Check each photograph with each outcome; equal disks are checked once."""
        self._work.disk.on_step = None
        for number, photograph in enumerate(self._work.photographs):
            for outcome, disk in self._left(photograph):
                try:
                    found = self._recovered(photograph, self._mended(disk))
                    self._check_snapshot(photograph, disk)
                    if number % go_on_every == 0:
                        check_goes_on(found)
                except BaseException as error:
                    error.add_note(f"step {photograph.step}, {outcome}: {sorted(disk.contents())}")
                    raise

    def _left(self, photograph: Photograph) -> Iterator[tuple[Outcome, FakeDisk]]:
        for outcome in OUTCOMES:
            disk = photograph.disk.after_cut(outcome, self._dice)
            left = (tuple(disk.contents().items()), photograph.promised)
            if left not in self._seen:
                self._seen.add(left)
                yield outcome, disk

    def _mended(self, disk: FakeDisk) -> FakeDisk:
        """The disk; if a person would have to decide, cut at the damage.

        With `always` no power cut leaves a valid batch after damage, so this is never needed. With the other
        policies the system may have written a later block before an earlier one.
        """
        if self._work.policy is Policy.ALWAYS:
            return disk
        work = Work(disk.after_kill(), random.Random(1))
        try:
            work.start()
        except CorruptData as error:
            refusal = error
        else:
            return disk
        assert "sound batches follow" in str(refusal)
        path = str(refusal).partition(": ")[0]
        disk.put(path, disk.contents()[path][: refusal.offset])
        return disk

    def _recovered(self, photograph: Photograph, disk: FakeDisk) -> Work:
        """Check that the state is that of some unit, not before the last one promised."""
        work = Work(disk, random.Random(1))
        work.start()
        states = self._work.states
        assert work.states[1] in states, "a state that never was"
        allowed = states[photograph.promised : photograph.last + 1]
        assert work.states[1] in allowed, (
            f"the state after unit {states.index(work.states[1])}, promised was {photograph.promised}"
        )
        return work

    def _check_snapshot(self, photograph: Photograph, disk: FakeDisk) -> None:
        """Check that the snapshot is the last one, or the one being written."""
        found = NOTHING
        if disk.exists(LAYOUT.snapshot):
            work = Work(disk, random.Random(1))
            recovery = work.store.recovery(load_truncated=True)
            recovery.snapshot_only()
            state = engine_state(recovery.engine)
            found = next(
                (n for n in photograph.saved if n >= 0 and self._work.states[n] == state), -2
            )
        assert found in photograph.saved


def check_goes_on(work: Work) -> None:
    """Check that more work survives another power cut, and that ids rise although the clock was set back."""
    work.clock.at_ms = 1
    stream = work.engine.context.databases[0].values.get(b"s")
    last = stream.last_id if isinstance(stream, Stream) else sid("0-0")
    added = work.run("XADD s * after all")
    assert added is None or sid(added.decode()).key > last.key  # type: ignore[attr-defined]
    for _ in range(3):
        work.do_unit()
    work.sync()
    again = Work(work.disk.after_cut(WORST, work.dice), random.Random(2))
    again.start()
    assert again.states[1] == engine_state(work.engine)
