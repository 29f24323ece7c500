"""What a command may use while it runs: the keys, the time, and the record of its changes.

    dirty      counts all changes; the rules for snapshots compare it with its last value
    touched    keys in which a waiter may now find something
    changed()  counts a change, breaks watches on the key, publishes an event
    created()  publishes that a key is new, before the event of the command that created it
    missed()   publishes that a key was not found
    record()   records words that repeat the change, if the client's own would not (effects.py)

A handler that changed a key calls `changed`; if blocked readers may now find something, it also calls
`touch`. Both cost nothing while nobody watches, listens or waits.
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
    changed_in, created, missed, event, touch, touch_waiting, record. Free: garbage.
    """

    __slots__ = (
        "channels",
        "compat",
        "databases",
        "dice",
        "dirty",
        "effects",
        "event_kinds",
        "garbage",
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
        self.garbage = databases[0].garbage
        self.keyspace = databases[0]  # the selected database
        self.instant = instant
        self.compat = compat
        self.channels = Channels()
        self.event_kinds = 0  # which events are published, see events.py
        self.dice: Callable[[int], int] = (
            Dice()
        )  # returns a number below the given one; a server sets its own
        self.dirty = 0
        self.effects: EffectSink | None = None  # None: effects are not recorded
        self.recorded = False  # the running command recorded words other than its own
        self.replaying = False  # effects are being replayed: times are used as given
        # A blocked command runs again: it must not block again, nor create consumers.
        self.retrying = False
        self.may_block = True  # in a transaction a blocking command does not wait
        self.touched: list[tuple[int, bytes]] = []
        self.waiters = Waiters(databases)
        self.waiting = 0  # the number of waiters
        self.watching = 0  # the number of watched keys

    def start_over(self) -> None:
        """Reset the state that an interrupted command left behind."""
        self.keyspace = self.databases[0]
        self.recorded = self.retrying = False
        self.may_block = True
        self.touched = []

    def now_ms(self) -> int:
        """The time; constant during one command."""
        return self.instant.ms

    def record(self, words: list[bytes]) -> None:
        """Record a command that reproduces the running command's change in the selected database.

        Call it once per effect, or never; and only `if context.effects is not None`, to avoid building words
        that are not used.
        """
        self.recorded = True
        if self.effects is not None:
            self.effects.words(self.keyspace.index, words)

    def changed(self, key: bytes, kind: int, event: bytes) -> None:
        """Record that a key of the selected database changed, and how."""
        self.dirty += 1
        if self.watching:
            self.keyspace.changed(key)
        if self.event_kinds:
            self.event(kind, event, key)

    def changed_metadata(self, key: bytes, kind: int, event: bytes) -> None:
        """Count a change that leaves the entries of a stream alone. As in Redis, no WATCH breaks."""
        self.dirty += 1
        if self.event_kinds:
            self.event(kind, event, key)

    def changed_in(self, keyspace: Keyspace, key: bytes, kind: int, event: bytes) -> None:
        """As changed plus touch, for one of several keys in any database; does not count the change."""
        if self.watching:
            keyspace.changed(key)
        if self.event_kinds & kind:
            events.publish(self.channels, self.event_kinds, keyspace.index, event, key)
        if self.waiting and key in keyspace.awaited:
            self.touched.append((keyspace.index, key))

    def created(self, keyspace: Keyspace, key: bytes) -> None:
        """Publish that a key is new in a database."""
        if self.event_kinds and self.event_kinds & events.NEW_KEY:
            events.publish(self.channels, self.event_kinds, keyspace.index, b"new", key)

    def missed(self, key: bytes) -> None:
        """Publish that a reader did not find a key."""
        if self.event_kinds and self.event_kinds & events.KEY_MISS:
            self.event(events.KEY_MISS, b"keymiss", key)

    def event(self, kind: int, event: bytes, key: bytes) -> None:
        """Publish an event, if events of this kind are enabled."""
        if self.event_kinds & kind:
            events.publish(self.channels, self.event_kinds, self.keyspace.index, event, key)

    def touch(self, key: bytes) -> None:
        """Note that waiters for this key may find something now."""
        if self.waiting and key in self.keyspace.awaited:
            self.touched.append((self.keyspace.index, key))

    def touch_waiting(self, keyspace: Keyspace) -> None:
        """Touch every key of a database that has waiters: all data may have changed."""
        self.touched += [(keyspace.index, key) for key in keyspace.awaited]
