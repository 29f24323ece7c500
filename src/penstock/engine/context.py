"""What a command may touch while it runs: the keys, the time, and a note of what it changed.

    dirty      counts changes: what would have to be saved
    touched    keys that somebody who waits may find something in now
    changed()  counts a change, breaks the watches on the key, tells those who listen for events
    created()  tells that a key is new, before the event of what made it
    missed()   tells that a key was looked for in vain
    record()   gives the words that do the same again, where the client's would not (effects.py)

A handler that changed a key says so with `changed`; one that also gave waiting readers something to read
says so with `touch`. Neither costs anything while nobody watches, listens or waits.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.engine import events
from penstock.engine.channels import Channels
from penstock.engine.clock import Instant
from penstock.engine.compat import Compat
from penstock.engine.dice import Dice
from penstock.engine.effects import EffectSink
from penstock.engine.keyspace import Keyspace
from penstock.engine.waiters import Waiters


class Context:
    """One engine's context, reused for every command.

    Read: keyspace, databases, compat, now_ms, retrying, may_block, replaying, dice. Note: dirty, changed,
    changed_in, created, missed, event, touch, touch_waiting, record.
    """

    __slots__ = (
        "channels",
        "compat",
        "databases",
        "dice",
        "dirty",
        "effects",
        "event_kinds",
        "instant",
        "keyspace",
        "may_block",
        "recorded",
        "replaying",
        "retrying",
        "touched",
        "waiters",
        "waiting",
        "watching",
    )

    def __init__(self, databases: list[Keyspace], instant: Instant, compat: Compat) -> None:
        self.databases = databases
        self.keyspace = databases[0]  # the one that the caller has selected
        self.instant = instant
        self.compat = compat
        self.channels = Channels()
        self.event_kinds = 0  # which events are told to whom, see events.py
        self.dice: Callable[[int], int] = (
            Dice()
        )  # a number below the given one; a server brings its own
        self.dirty = 0
        self.effects: EffectSink | None = None  # None: nobody keeps what is done
        self.recorded = False  # the running command has given other words than its own
        self.replaying = False  # effects are being done again: times are taken as they stand
        # A blocked command runs again: it must not block anew, nor make consumers.
        self.retrying = False
        self.may_block = True  # inside of a transaction a blocking command gives up at once
        self.touched: list[tuple[int, bytes]] = []
        self.waiters = Waiters()
        self.waiting = 0  # how many readers wait; with none, nobody needs to know what was touched
        self.watching = 0  # how many keys are watched

    def start_over(self) -> None:
        """Forget the command that runs, if one was broken off."""
        self.keyspace = self.databases[0]
        self.recorded = self.retrying = False
        self.may_block = True
        self.touched = []

    def now_ms(self) -> int:
        """The time, the same for all of one command."""
        return self.instant.ms

    def record(self, words: list[bytes]) -> None:
        """Give words that do again what the running command did to the selected database.

        To be called once for each effect, or not at all; only `if context.effects is not None`, lest words
        be made that nobody takes.
        """
        self.recorded = True
        if self.effects is not None:
            self.effects.words(self.keyspace.index, words)

    def changed(self, key: bytes, kind: int, event: bytes) -> None:
        """Note that a key of the selected database has changed, and how."""
        self.dirty += 1
        if self.watching:
            self.keyspace.changed(key)
        if self.event_kinds:
            self.event(kind, event, key)

    def changed_metadata(self, key: bytes, kind: int, event: bytes) -> None:
        """Count a change that leaves the entries of a stream alone. Redis breaks no WATCH for it."""
        self.dirty += 1
        if self.event_kinds:
            self.event(kind, event, key)

    def changed_in(self, keyspace: Keyspace, key: bytes, kind: int, event: bytes) -> None:
        """As changed and touch, for one of several keys in any database; the change is counted elsewhere."""
        if self.watching:
            keyspace.changed(key)
        if self.event_kinds & kind:
            events.tell(self.channels, self.event_kinds, keyspace.index, event, key)
        if self.waiting:
            self.touched.append((keyspace.index, key))

    def created(self, keyspace: Keyspace, key: bytes) -> None:
        """Tell that a key is new in a database."""
        if self.event_kinds & events.NEW_KEY:
            events.tell(self.channels, self.event_kinds, keyspace.index, b"new", key)

    def missed(self, key: bytes) -> None:
        """Tell that a reader found nothing under a key."""
        if self.event_kinds & events.KEY_MISS:
            self.event(events.KEY_MISS, b"keymiss", key)

    def event(self, kind: int, event: bytes, key: bytes) -> None:
        """Tell an event, if that kind is to be told."""
        if self.event_kinds & kind:
            events.tell(self.channels, self.event_kinds, self.keyspace.index, event, key)

    def touch(self, key: bytes) -> None:
        """Note that somebody who waits for this key may have something to read now."""
        if self.waiting:
            self.touched.append((self.keyspace.index, key))

    def touch_waiting(self, keyspace: Keyspace) -> None:
        """Touch every key of a database that somebody waits for: anything may be there now."""
        if self.waiting:
            self.touched += [place for place in self.waiters.places() if place[0] == keyspace.index]
