"""The entries of a keyed stream: one owner, and for each key one entry at a time, in the order of the stream.

The owner reads all entries and parks them by key. The first entry of a key runs when it is due; the others
wait behind it. A retry keeps its place, so it holds its own key back and no other. Entries are not counted as
attempts while they are parked: PENSTOCK RENEW counts an attempt when it begins.

    ann  ──> 1-0 (running)   4-0   5-0
    bob  ──> 2-0 (due in 3 s)   7-0
    cid  ──> 3-0

Ownership is a lease on one key. The owner renews it, not the rows: a new owner adopts all rows at once, and
from then on the old one can settle nothing and take nothing.

Partitions are streams of their own. A worker that stands by for one asks for it: it writes how many it owns.
An owner that has at least two more gives one partition to the one who asks: it begins no more attempts there,
waits for those that run, gives back what it has parked and names the new owner. If they do not end soon, it
keeps the partition and tries again later, with more patience.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import CommandError
from penstock.work.backend import PASSING, Backend, Word
from penstock.work.feed import (
    ROWS_MAX,
    Entry,
    Feed,
    Place,
    Taken,
    after_ends,
    log,
    seconds_or_none,
)
from penstock.work.handler import Handler
from penstock.work.message import Source
from penstock.work.names import asks_key, dead_key, delayed_key, owner_key
from penstock.work.patience import Patience
from penstock.work.payload import BadPayload, key_of
from penstock.work.settlement import DEAD, RETRY, Outcome, settlement

PARKED_MAX = 10_000
_NOW = 0.0  # the time of the next adoption, if nothing may begin before it


@dataclass(slots=True)
class Parked:
    """An entry in the queue of its key."""

    id: str
    fields: list[bytes]
    begun: int  # attempts
    counted: int  # the same by the server: one more if an attempt was counted that did not begin
    suspect: bool
    due: float


class KeyedFeed(Feed):
    """A keyed stream, or one partition of it."""

    def __init__(self, place: Place, handler: Handler[Any], source: Source) -> None:
        super().__init__(place, handler, source)
        self._owner_key = owner_key(self.stream, place.group)
        self._asks_key = asks_key(self.stream, place.group)
        self._owned = False
        self._adopt_at = _NOW
        self._queues: dict[str, deque[Parked]] = {}
        self._keys: dict[str, str] = {}  # of the entries that are parked or running
        self._running: set[str] = set()  # keys
        self._unsure: dict[str, Parked] = {}  # by id: the reply to the count of an attempt was lost
        self.partitions: Sequence[KeyedFeed] = [self]  # of this handler in this worker
        self._next_owner: str | None = None  # it gets this partition when nothing runs
        self._give_until: float | None = None  # until then nothing begins
        self._patience = Patience()
        self._asked = ("", 0.0)  # what was written, and until when it counts

    def take(self, count: int, alone: bool = False) -> Taken:
        if not self._own():
            return Taken([], standby=True)
        if self._next_owner is not None and (nothing := self._hand_over(self._next_owner)):
            return nothing
        try:
            if self._place.now() >= self._adopt_at:
                self._adopt()
            wait, after = (0.0, None) if alone else self._read(count)
            entries = self._begin(self._ready(count, alone))
        except CommandError as error:
            if error.code != "NOTOWNER":
                raise
            self._lose()
            return Taken([], standby=True)
        with self._lock:
            now = self._place.now()
            heads = [queue[0] for _, queue in self._idle()]
            suspects = any(head.suspect and head.due <= now for head in heads)
            later = (head.due for head in heads if not head.suspect or head.due > now)
            own = max(0.0, min([self._adopt_at, *later]) - now)
            return Taken(entries, suspects, own if wait is None else min(own, wait), after)

    def settle(self, outcomes: Sequence[Outcome]) -> list[bool]:
        accepted = super().settle(outcomes)
        with self._lock:
            for one, good in zip(outcomes, accepted, strict=True):
                if not one.suspect:
                    self._settled(one, good)
        return accepted

    def may_free(self, outcomes: Sequence[Outcome]) -> bool:
        with self._lock:  # another of its key, an adoption, or a partition to give away
            return bool(self._keys) or self._adopt_at == _NOW or self._next_owner is not None

    def forget(self, outcomes: Sequence[Outcome]) -> None:
        super().forget(outcomes)
        with self._lock:
            for one in outcomes:
                self._settled(one, False)

    def renew(self) -> None:
        place = self._place
        if self._owned and not self._ask_to_own(place.renewing, "KEEP"):
            self._lose()
        may_share = self._next_owner is None and self._patience.begins_in(place.now()) <= 0
        if self._owned and len(self.partitions) > 1 and may_share:
            self._share()

    def recover(self) -> None:
        self._adopt_at = _NOW

    def leave(self) -> None:
        self._give_up(self._place.consumer, 0)
        super().leave()

    def _give_up(self, *how: Word) -> None:
        """Give back what is parked, and the stream."""
        with self._lock:
            idle = [parked for _, queue in self._idle() for parked in queue]
        # Rows that wait for their next attempt are not ours: they are refused, and stay as they are.
        # Suspects stay ours: it shows that they are suspects.
        outcomes = [
            Outcome(one.id, one.counted, RETRY, next_attempt=one.begun)
            for one in idle
            if not one.suspect
        ]
        for first in range(0, len(outcomes), ROWS_MAX):
            keys, words = settlement(self.stream, outcomes[first : first + ROWS_MAX])
            self._work("SETTLE", keys, *words)
        with self._lock:
            self._lose()
        self._place.backend.work("OWN", [self._owner_key], how)

    def _release(self, suspects: Sequence[Entry | Outcome], delay: float = 0) -> None:
        is_sure = self._lower(suspects, [self.stream, self._owner_key], self._lease_ms)
        with self._lock:
            for one in suspects:
                self._held.pop(one.id, None)
                head = self._running_or_none(one.id)
                if head is None:
                    continue
                head.begun = one.attempt - 1
                head.due = self._place.now() + delay
                if is_sure:
                    head.counted = head.begun
                else:
                    self._unsure[head.id] = head
                    self._adopt_at = _NOW
                self._running.discard(self._keys[head.id])

    # --- Ownership ---------------------------------------------------------------------------------

    def _own(self) -> bool:
        """Own the stream, or try to. Raises: CommandError, ConnectionLost."""
        if not self._owned and self._ask_to_own(self._place.backend):
            log.info("stream=%s owner=%s", self.stream, self._place.consumer)
            with self._lock:
                self._owned = True
                self._adopt_at = _NOW
        if not self._owned and len(self.partitions) > 1:
            self._ask_for_it()
        return self._owned

    def _ask_for_it(self) -> None:
        """Tell the owner of this partition how many partitions we own. Half a lease later tell it again."""
        text = f"{sum(one._owned for one in self.partitions)} {self._place.consumer}"
        now = self._place.now()
        if self._asked[0] != text or now >= self._asked[1]:
            _try(self._place.backend, "SET", self._asks_key, text, "PX", self._lease_ms)
            self._asked = (text, now + self._lease_ms / 2000)

    def _share(self) -> None:
        """Choose who gets this partition, if a worker has asked for it that has fewer than we."""
        found = _try(self._place.renewing, "GET", self._asks_key)
        if found is None:
            return
        # A worker that still wants it asks again, with a new number.
        _try(self._place.renewing, "DEL", self._asks_key)
        count, _, name = found.decode().partition(" ")
        ours = sum(one._owned and one._next_owner is None for one in self.partitions)
        theirs = int(count) + sum(one._next_owner == name for one in self.partitions)
        if name != self._place.consumer and ours > theirs + 1:
            log.info("stream=%s next_owner=%s", self.stream, name)
            self._give_until = None
            self._next_owner = name

    def _hand_over(self, next_owner: str) -> Taken | None:
        """Give the partition away if nothing runs, or wait for that; None if it takes too long."""
        now = self._place.now()
        if not self._running:
            self._give_up(self._place.consumer, self._lease_ms, "TO", next_owner)
            return Taken([], standby=True)
        if self._give_until is None:
            self._give_until = now + self._patience.seconds
        if now < self._give_until:
            return Taken([], wait=self._give_until - now)
        self._patience.in_vain(now)
        self._next_owner = None
        return None

    def _ask_to_own(self, backend: Backend, *option: Word) -> bool:
        """Extend our lease, or begin one. With KEEP only extend it: after a gap the rows must be adopted."""
        words = (self._place.consumer, self._lease_ms, *option)
        return bool(backend.work("OWN", [self._owner_key], words))

    def _lose(self) -> None:
        """Another worker is the owner: forget all but the running attempts, which can settle nothing."""
        with self._lock:
            self._owned = False
            self._next_owner = None
            self._queues = {key: deque([self._queues[key][0]]) for key in self._running}
            self._keys = {queue[0].id: key for key, queue in self._queues.items()}
            self._unsure.clear()

    # --- Queues ------------------------------------------------------------------------------------

    def _idle(self) -> list[tuple[str, deque[Parked]]]:
        """The queues of which no entry runs. Under the lock."""
        return [(key, queue) for key, queue in self._queues.items() if key not in self._running]

    def _adopt(self) -> None:
        """Park all pending rows that are not known."""
        self._adopt_at = self._place.now() + self.handler.options.lease
        keys = [self.stream, dead_key(self.stream), self._owner_key]
        start: Any = b"0-0"
        while start is not None:
            words = (self._lease_ms, self._attempts, start, ROWS_MAX)
            rows, start, buried = self._work("ADOPT", keys, *words)
            self._note_buried(buried)
            now = self._place.now()
            for entry_id, fields, begun, suspect, due_in_ms in rows:
                due = now + due_in_ms / 1000
                parked = Parked(entry_id.decode(), fields, begun, begun, bool(suspect), due)
                self._make_sure(parked)
                self._park(parked)

    def _read(self, count: int) -> tuple[float | None, dict[str, str] | None]:
        """Park new entries until enough keys are ready, or nothing is new, or too much is parked.

        Return how long to wait for delayed entries and what to wait for, as Taken has them.
        """
        keys = [self.stream, dead_key(self.stream), delayed_key(self.stream), self._owner_key]
        while self._adopt_at != _NOW and len(self._keys) < PARKED_MAX:
            if len(self._ready(count, False)) >= count:
                return 0.0, None  # some may have used up their attempts, and do not run
            size = min(ROWS_MAX, max(count, 100), PARKED_MAX - len(self._keys))
            words = (self._lease_ms, self._attempts, size, "NEW")
            rows, _, wait_ms, _, ends = self._work("TAKE", keys, *words)
            for entry_id, fields, begun, _ in rows:
                self._park(Parked(entry_id.decode(), fields, begun, begun, False, 0.0))
            if len(rows) < size:
                return seconds_or_none(wait_ms), after_ends(self.stream, ends)
        return None, None

    def _make_sure(self, found: Parked) -> None:
        """Note what the server has counted, if that was not known. We have owned the stream all the time."""
        with self._lock:
            known = self._unsure.pop(found.id, None)
            if known is not None:
                if found.counted not in (known.counted, known.begun + 1):
                    known.begun = found.counted
                known.counted = found.counted

    def _park(self, parked: Parked) -> None:
        with self._lock:
            if parked.id in self._keys:
                return
            key = self._key_of(parked)
            queue = self._queues.setdefault(key, deque())
            self._keys[parked.id] = key
            place = len(queue)
            while place > (key in self._running) and _order(queue[place - 1].id) > _order(
                parked.id
            ):
                place -= 1
            queue.insert(place, parked)

    def _key_of(self, parked: Parked) -> str:
        """The key of an entry. One that cannot be read has a key of its own; its attempt will fail."""
        assert self.handler.options.key is not None
        try:
            return "=" + key_of(
                self.handler.payload.decode(parked.fields), self.handler.options.key
            )
        except BadPayload:
            return "!" + parked.id

    def _ready(self, count: int, alone: bool) -> list[tuple[str, Parked]]:
        """The first entries of keys that can run now. None before an adoption that is due at once."""
        now = self._place.now()
        with self._lock:
            if self._adopt_at == _NOW:
                return []
            found = [
                (key, queue[0])
                for key, queue in self._idle()
                if queue[0].due <= now and queue[0].suspect == alone
            ]
        found.sort(key=lambda one: _order(one[1].id))
        return found[: 1 if alone else count]

    def _begin(self, ready: list[tuple[str, Parked]]) -> list[Entry]:
        """Count an attempt of each entry; return those that are still ours."""
        if not ready:
            return []
        words: list[Word] = []
        for _, parked in ready:
            spent = parked.begun >= self._attempts
            words += [parked.id, parked.counted, parked.begun + (not spent)]
        with self._lock:
            self._running |= {key for key, _ in ready}
        keys = [self.stream, self._owner_key]
        try:
            lost = {name.decode() for name in self._work("RENEW", keys, self._lease_ms, *words)}
        except BaseException:
            with self._lock:
                self._running -= {key for key, _ in ready}
                self._unsure |= {parked.id: parked for _, parked in ready}
                self._adopt_at = _NOW
            raise
        entries = []
        spent_outcomes = []
        with self._lock:
            for key, parked in ready:
                if parked.id in lost:
                    # Another client changed the row, which may still be pending: nothing may overtake it.
                    self._adopt_at = _NOW
                    self._drop(key)
                elif parked.begun >= self._attempts:
                    reason = f"{parked.begun} attempts were begun"
                    if parked.suspect:
                        reason = f"lease expired in attempt {parked.begun}"
                    spent_outcomes.append(Outcome(parked.id, parked.begun, DEAD, reason=reason))
                else:
                    parked.begun += 1
                    parked.counted = parked.begun
                    shown = key[1:] if key.startswith("=") else None
                    entry = Entry(parked.id, parked.fields, parked.begun, parked.suspect, shown)
                    self._held[parked.id] = parked.begun
                    entries.append(entry)
        if spent_outcomes:
            self.settle(spent_outcomes)
        return entries

    def _running_or_none(self, entry_id: str) -> Parked | None:
        """An entry, if its attempt runs. Under the lock."""
        key = self._keys.get(entry_id)
        if key is None or key not in self._running or self._queues[key][0].id != entry_id:
            return None
        return self._queues[key][0]

    def _settled(self, one: Outcome, accepted: bool) -> None:
        """Free the key of a settled entry. Under the lock."""
        head = self._running_or_none(one.id)
        if head is None:
            return
        key = self._keys[one.id]
        if not accepted:
            # Perhaps the server had noted it, and its reply was lost: the row may wait for a retry.
            self._adopt_at = _NOW
        if not accepted or one.kind != RETRY:
            self._drop(key)
            return
        head.begun = head.counted = one.next_attempt
        head.suspect = False
        head.due = self._place.now() + one.delay
        self._running.discard(key)

    def _drop(self, key: str) -> None:
        """Remove the first entry of a key. Under the lock."""
        queue = self._queues[key]
        del self._keys[queue.popleft().id]
        self._running.discard(key)
        if not queue:
            del self._queues[key]


def _try(backend: Backend, *words: Word) -> Any:
    """Run a command that may also wait: None if the server refuses it for now, as when it has no memory."""
    try:
        return backend.ask(*words)
    except CommandError as error:
        if error.code not in PASSING:
            raise
        return None


def _order(entry_id: str) -> tuple[int, int]:
    ms, seq = entry_id.split("-")
    return int(ms), int(seq)
