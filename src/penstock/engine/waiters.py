"""Blocked readers: which keys they wait for, and in which order.

A blocking read that finds nothing returns a `Blocked`: the command again, with everything that depends on the
moment of the call (the id behind `$`) already resolved. The caller parks it here as a `Waiter` and does the
waiting itself: the engine has no threads and no timers. When a key is touched, its waiters run their command
again, first come first served; a waiter that finds something leaves the queues of all its keys.

The queue of a key consists of lines (`Keyspace.awaited`). Waiters that read from the same place stand in one
line: if the first finds nothing, nobody behind it does. The first waiters of all lines are served in the
order in which they blocked.

    awaited  s ──> group g          ──> a (1), c (4), d (5)      the numbers are tickets
                   XREAD after 8-0  ──> x (2), y (6), z (7)      one reply for all three
                   group h          ──> b (3)

Invariants
  W1  a waiter is in one line of each of its keys, or in none and done.
  W2  a line is in the order of its tickets, which are given out in the order of blocking.
  W3  no line is empty, and every key of `awaited` has one.

Cost: park and remove are O(keys of the waiter); a waiter whose keys are not touched costs nothing. Serving a
key runs one command for each line and each waiter served, however many wait. A line whose waiters all get the
same reply (XREAD) runs one command.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from penstock.core.frame import Frame
from penstock.engine.keyspace import Keyspace
from penstock.reply import NULL_ARRAY

if TYPE_CHECKING:
    from penstock.engine.table import Command

# What the waiters of one line have in common.
ALIKE_IN_NOTHING = 0
ALIKE_IN_ERRORS = 1  # if one gets an error, all with the same keys get the same
ALIKE = 2  # all get the same reply

Line = OrderedDict["Waiter", None]


class Blocked:
    """Returned by a blocking command instead of a reply."""

    __slots__ = ("alike", "frame", "keys", "on_timeout", "position", "retry_ms", "timeout_ms")

    def __init__(
        self,
        frame: Frame,
        keys: list[bytes],
        timeout_ms: int,
        position: Hashable | None = None,
        on_timeout: Any = NULL_ARRAY,
    ) -> None:
        self.frame = frame
        self.keys = keys
        self.timeout_ms = timeout_ms  # 0: no timeout
        # Waiters with the same position read from the same place: if one finds nothing, none does.
        self.position = position
        self.alike = ALIKE_IN_NOTHING
        self.on_timeout = on_timeout  # the reply after the timeout
        # After this time the command may find something although no key has changed: run it again.
        self.retry_ms: int | None = None


# For a command that runs again, and finds nothing again.
STILL_BLOCKED = Blocked(Frame(), [], 0)


class Waiter:
    """One parked command. A subclass implements `wake`: `reply` or `error` is now set.

    If `retry_ms` is set, its owner calls Engine.retry after that time. Whenever the command runs again and
    finds nothing, `keep_waiting` sets a new time, counted from then.

    `reply_form`: waiters of one line and one form can be given the same reply (wake_all). 0: they cannot.
    """

    reply_form = 0

    def __init__(self, command: Command, blocked: Blocked, keyspace: Keyspace) -> None:
        self.command = command
        self.keyspace = keyspace
        self.frame = blocked.frame
        self.keys = blocked.keys
        self.position = blocked.position
        self.alike = blocked.alike
        self.ticket = 0
        self.on_timeout = blocked.on_timeout
        self.retry_ms = blocked.retry_ms
        self.done = False
        self.reply: Any = None
        self.error: Exception | None = None

    def line(self) -> Hashable:
        """The name of its line."""
        return self if self.position is None else (self.position, self.reply_form)

    def wake(self) -> None:
        raise NotImplementedError

    def wake_all(self, alike: list[Any]) -> None:
        """As wake, for itself and others that get the same reply or error."""
        raise NotImplementedError

    def keep_waiting(self, retry_ms: int) -> None:
        """The command found nothing again: it has to run after this time."""
        self.retry_ms = retry_ms


class Waiters:
    """The waiters of all keys of all databases."""

    __slots__ = ("_databases", "_tickets", "count")

    def __init__(self, databases: list[Keyspace]) -> None:
        self._databases = databases
        self._tickets = 0
        self.count = 0

    def park(self, waiter: Waiter) -> None:
        """Add a waiter to the end of its line, for each of its keys."""
        self._tickets += 1
        waiter.ticket = self._tickets
        name = waiter.line()
        for key in waiter.keys:
            lines: dict[Hashable, Line] = waiter.keyspace.awaited.setdefault(key, {})
            if name not in lines:
                # Not a plain dict: finding its first key would cost O(keys removed before it).
                lines[name] = OrderedDict()
            lines[name][waiter] = None
        self.count += 1

    def remove(self, waiter: Waiter) -> None:
        """Remove a waiter from all lines."""
        awaited = waiter.keyspace.awaited
        name = waiter.line()
        for key in waiter.keys:
            lines = awaited.get(key)
            line = None if lines is None else lines.get(name)
            if line is not None:
                line.pop(waiter, None)
                if not line:
                    _drop_line(awaited, key, name)
        self.count -= 1
        waiter.done = True

    def alike(self, waiter: Waiter) -> list[Waiter]:
        """A waiter and those in its line that wait for the same keys, in order."""
        line = waiter.keyspace.awaited[waiter.keys[0]][waiter.line()]
        return [other for other in line if other.keys == waiter.keys]

    def remove_all(self, alike: list[Waiter]) -> None:
        """Remove waiters of one line that wait for the same keys."""
        first = alike[0]
        awaited = first.keyspace.awaited
        name = first.line()
        if len(alike) < len(awaited[first.keys[0]][name]):
            for waiter in alike:
                self.remove(waiter)
            return
        for key in dict.fromkeys(first.keys):
            _drop_line(awaited, key, name)
        self.count -= len(alike)
        for waiter in alike:
            waiter.done = True

    def places(self) -> list[tuple[int, bytes]]:
        """Every database and key with waiters."""
        return [(keyspace.index, key) for keyspace in self._databases for key in keyspace.awaited]

    def has_group_reader(self, place: tuple[int, bytes]) -> bool:
        """Tell whether a command that waits for a key reads for a group."""
        lines = self._databases[place[0]].awaited[place[1]].values()
        return any(next(iter(line)).command.name == "XREADGROUP" for line in lines)

    def all(self) -> list[Waiter]:
        """Every waiter, once."""
        lines = [
            line
            for keyspace in self._databases
            for lines in keyspace.awaited.values()
            for line in lines.values()
        ]
        return list(dict.fromkeys(waiter for line in lines for waiter in line))


def _drop_line(awaited: dict[bytes, dict[Hashable, Line]], key: bytes, name: Hashable) -> None:
    lines = awaited[key]
    del lines[name]
    if not lines:
        del awaited[key]
