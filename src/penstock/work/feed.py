"""The entries of one stream for one worker: take, renew, settle. Threads may share it; it starts none.

An entry that was taken is held until it is settled: its lease is renewed, and nobody else gets it. If a reply
is lost, the worker may own rows that it does not know: `recover` gives them back.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import CommandError, ConnectionLost
from penstock.work.backend import Backend, Word
from penstock.work.handler import Handler
from penstock.work.message import Source
from penstock.work.names import dead_key, delayed_key
from penstock.work.settlement import ACK, RETRY, Outcome, settlement

log = logging.getLogger("penstock.work")

ROWS_MAX = 1000
LOST = "lost"
_ENDING_MS = 1  # the shortest lease
REAP_IDLE_MS = 3_600_000  # a consumer without entries that was not seen for this long is removed


@dataclass(slots=True)
class Entry:
    """An entry that was taken for an attempt."""

    id: str
    fields: list[bytes]
    attempt: int
    suspect: bool = False  # its last attempt ended without an outcome
    key: str | None = None


@dataclass(slots=True)
class Taken:
    """The result of one take."""

    entries: list[Entry] = field(default_factory=list)
    suspects_left: bool = False  # there are suspects, which run alone
    wait: float | None = 0.0  # seconds until there may be more; None: time alone brings nothing
    # An entry behind these ids is news. None: there may be more now.
    after: dict[str, str] | None = None
    standby: bool = False  # another worker owns the stream


@dataclass(frozen=True, slots=True)
class Place:
    """Who reads, where, and by which clock (seconds)."""

    backend: Backend
    renewing: Backend  # the same server, for renewals only: they wait for nobody
    group: str
    consumer: str
    now: Callable[[], float]


class Feed:
    """The entries of a stream without keys: any number of workers share them."""

    def __init__(self, place: Place, handler: Handler[Any], source: Source) -> None:
        self.handler = handler
        self.source = source
        self.stream = source.stream
        self._place = place
        self._lease_ms = handler.options.lease_ms()
        self._attempts = handler.options.attempts
        self._held: dict[str, int] = {}
        self._missed: set[str] = set()  # the last renewal found them lost
        self._released: dict[str, int] = {}  # suspects that were given back, with their attempts
        self._is_suspect_lost = False  # the reply to a take of a suspect was lost
        self._is_release_lost = False  # the same when one was given back
        self._lock = threading.RLock()
        self.counts: Counter[str] = Counter()  # of outcomes

    def prepare(self) -> None:
        """Create the group, if it is missing; remove consumers of workers that are long gone.

        Raises: ConfigError if one step cannot change all of its keys; CommandError, ConnectionLost.
        """
        keys = [self.stream, dead_key(self.stream), delayed_key(self.stream)]
        self._place.backend.check(keys, self.handler.stream)
        try:
            self._place.backend.ask("XPENDING", self.stream, self._place.group, "-", "+", 1)
        except CommandError as error:
            if error.code != "NOGROUP":
                raise
            self._create_group()
        self._reap(REAP_IDLE_MS)

    def _create_group(self) -> None:
        """Create the group, which is missing. This needs memory, also if another worker was faster."""
        words = ("XGROUP", "CREATE", self.stream, self._place.group, "0", "MKSTREAM")
        try:
            self._place.backend.ask(*words)
        except CommandError as error:
            if error.code != "BUSYGROUP":
                raise

    def take(self, count: int, alone: bool = False) -> Taken:
        """Take entries that are due or new, at most `count`; `alone`: one suspect.

        Raises: CommandError, ConnectionLost.
        """
        if self._is_release_lost:
            self._is_release_lost = False
            self.recover()
        keys = [self.stream, dead_key(self.stream), delayed_key(self.stream)]
        mode = "ALONE" if alone else "ANY"
        words = (self._lease_ms, self._attempts, min(count, ROWS_MAX), mode)
        try:
            rows, left, wait_ms, buried, ends = self._work("TAKE", keys, *words)
        except BaseException:
            self._is_suspect_lost |= alone
            raise
        taken = Taken([], bool(left))
        if len(rows) < words[2]:
            taken.wait, taken.after = seconds_or_none(wait_ms), after_ends(self.stream, ends)
        with self._lock:
            for entry_id, fields, attempt, suspect in rows:
                entry = Entry(entry_id.decode(), fields, attempt, bool(suspect))
                self._held[entry.id] = attempt
                self._released.pop(entry.id, None)
                taken.entries.append(entry)
        self._note_buried(buried)
        return taken

    def _note_buried(self, buried: Sequence[bytes]) -> None:
        """Count and log entries that the server moved to the dead letters."""
        with self._lock:
            self.counts["dead"] += len(buried)
        for entry_id in buried:
            text = "stream=%s id=%s outcome=dead reason=attempts"
            log.warning(text, self.stream, entry_id.decode())

    def settle(self, outcomes: Sequence[Outcome]) -> list[bool]:
        """Settle outcomes in one step; False for those that are no longer ours.

        Raises: CommandError, ConnectionLost. It is safe to settle the same outcomes again.
        """
        keys, words = settlement(self.stream, [one for one in outcomes if not one.suspect])
        replies = iter(self._work("SETTLE", keys, *words) if words else ())
        accepted = [one.suspect or bool(next(replies)) for one in outcomes]
        with self._lock:
            for one, good in zip(outcomes, accepted, strict=True):
                if not one.suspect and self._held.get(one.id) == one.attempt:
                    del self._held[one.id]
                self.counts[one.kind.lower() if good else LOST] += 1
                _tell(self.stream, one, good)
        for one in outcomes:  # last: nothing may fail behind it, or it would be repeated
            if one.suspect:
                self._release([one], one.delay)
        return accepted

    def may_free(self, outcomes: Sequence[Outcome]) -> bool:
        """Tell whether there may be something to take, or to wait for, now that these have been settled."""
        return any(one.kind == RETRY for one in outcomes)

    def forget(self, outcomes: Sequence[Outcome]) -> None:
        """Drop entries that cannot be settled any more."""
        with self._lock:
            for one in outcomes:
                self._held.pop(one.id, None)

    def renew(self) -> None:
        """Extend the leases of everything that is held. Raises: CommandError, ConnectionLost."""
        with self._lock:
            held = list(self._held.items())
        for first in range(0, len(held), ROWS_MAX):
            words: list[Word] = []
            for entry_id, attempt in held[first : first + ROWS_MAX]:
                words += [entry_id, attempt, attempt]
            place = self._place
            given = [place.group, place.consumer, self._lease_ms, *words]
            lost = place.renewing.work("RENEW", [self.stream], given)
            self._forget({name.decode() for name in lost})

    def _forget(self, lost: set[str]) -> None:
        """Drop entries that were lost twice in a row: the first time they may just have been settled."""
        with self._lock:
            for entry_id in lost & self._missed:
                if self._held.pop(entry_id, None) is not None:
                    log.warning("stream=%s id=%s outcome=lost", self.stream, entry_id)
            self._missed = lost & self._held.keys()

    def recover(self) -> None:
        """Give back rows that are ours but that no reply told us of. Raises: as settle."""
        place = self._place
        words = ("XPENDING", self.stream, place.group, "-", "+", ROWS_MAX, place.consumer)
        rows = place.backend.ask(*words)
        with self._lock:
            unknown = [
                Entry(entry_id, [], row[3], self._was_suspect(entry_id, row[3]))
                for row in rows
                if (entry_id := row[0].decode()) not in self._held
                and self._released.get(entry_id) != row[3]
            ]
        if unknown:
            self.give_back(unknown)
        self._is_suspect_lost = False

    def _was_suspect(self, entry_id: str, attempt: int) -> bool:
        """Tell whether a row that is unexpectedly ours may be that of a suspect."""
        return entry_id in self._released or (self._is_suspect_lost and attempt > 1)

    def held(self) -> int:
        """How many entries are held."""
        with self._lock:
            return len(self._held)

    def give_back(self, entries: Sequence[Entry]) -> None:
        """Return entries whose attempt has not started; it does not count. A suspect stays one.

        Raises: CommandError, ConnectionLost.
        """
        suspects = [one for one in entries if one.suspect]
        outcomes = [
            Outcome(one.id, one.attempt, RETRY, next_attempt=max(0, one.attempt - 1))
            for one in entries
            if not one.suspect
        ]
        if outcomes:
            self.settle(outcomes)
        if suspects:
            self._release(suspects)

    def _release(self, suspects: Sequence[Entry | Outcome], delay: float = 0) -> None:
        """Let the leases of suspects end, later. Their rows stay ours: it shows that they are suspects."""
        with self._lock:
            self._released |= {one.id: one.attempt - 1 for one in suspects}
        lease_ms = max(_ENDING_MS, round(delay * 1000))
        self._is_release_lost |= not self._lower(suspects, [self.stream], lease_ms)
        with self._lock:
            for one in suspects:
                if one.id in self._released:  # else it was taken again
                    self._held.pop(one.id, None)

    def _lower(
        self, suspects: Sequence[Entry | Outcome], keys: Sequence[str], lease_ms: int
    ) -> bool:
        """Uncount the attempts of suspects; False if it is unknown whether the server did.

        It is tried once. A second time it might hit the next attempt, which has the same number.
        """
        words = [word for one in suspects for word in (one.id, one.attempt, one.attempt - 1)]
        try:
            self._work("RENEW", keys, lease_ms, *words)
        except (CommandError, ConnectionLost) as error:
            log.error("stream=%s cannot give back: %s", self.stream, error)
            return False
        return True

    def leave(self) -> None:
        """At the end: remove our consumer if it has nothing."""
        self._reap(0, self._place.consumer)

    def _reap(self, idle_ms: int, *consumer: str) -> None:
        words: list[Word] = [self._place.group, idle_ms, *consumer]
        self._place.backend.work("REAP", [self.stream], words)

    def _work(self, name: str, keys: Sequence[str], *words: Word) -> Any:
        """Run a work command for our group and consumer."""
        place = self._place
        return place.backend.work(name, keys, [place.group, place.consumer, *words])


def seconds_or_none(wait_ms: int) -> float | None:
    """How long to wait, by the reply of TAKE."""
    return None if wait_ms < 0 else wait_ms / 1000


def after_ends(stream: str, ends: Sequence[bytes]) -> dict[str, str]:
    """What XREAD waits for, by the reply of TAKE."""
    return dict(zip((stream, delayed_key(stream)), map(bytes.decode, ends), strict=True))


def _tell(stream: str, one: Outcome, accepted: bool) -> None:
    level = logging.DEBUG if one.kind == ACK and accepted else logging.WARNING
    if not log.isEnabledFor(level):
        return
    how = one.kind.lower() if accepted else LOST
    text = "stream=%s id=%s attempt=%d outcome=%s"
    if one.reason:
        log.log(level, text + " reason=%s", stream, one.id, one.attempt, how, one.reason)
    else:
        log.log(level, text, stream, one.id, one.attempt, how)
