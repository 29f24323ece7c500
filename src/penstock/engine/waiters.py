"""Blocked readers: which keys they wait for, and in which order.

A blocking read that finds nothing returns a `Blocked`: the command again, with everything that depends on the
moment of the call (the id behind `$`) already resolved. The caller parks it here as a `Waiter` and does the
waiting itself: the engine has no threads and no timers. When a key is touched, its waiters run their command
again, first come first served; a waiter that finds something leaves the queues of all its keys.

Invariants
  W1  a waiter is in the queue of each of its keys, or in none and done.
  W2  a queue is in the order in which its waiters blocked, across all keys.

Cost: park and remove are O(keys of the waiter); a waiter whose keys are not touched costs nothing. Of the
waiters with the same position (of a group or a list), only those that find something run, and one more.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from penstock.core.frame import Frame
from penstock.engine.keyspace import Keyspace
from penstock.engine.table import Command
from penstock.reply import NULL_ARRAY


class Blocked:
    """Returned by a blocking command instead of a reply."""

    __slots__ = ("frame", "keys", "on_timeout", "position", "retry_ms", "timeout_ms")

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
        self.on_timeout = on_timeout  # the reply after the timeout
        # After this time the command may find something although no key has changed: run it again.
        self.retry_ms: int | None = None


class Waiter:
    """One parked command. A subclass implements `wake`: `reply` or `error` is now set.

    If `retry_ms` is set, its owner calls Engine.retry after that time. Whenever the command runs again and
    finds nothing, `keep_waiting` sets a new time, counted from then.
    """

    def __init__(self, command: Command, blocked: Blocked, keyspace: Keyspace) -> None:
        self.command = command
        self.keyspace = keyspace
        self.frame = blocked.frame
        self.keys = blocked.keys
        self.position = blocked.position
        self.on_timeout = blocked.on_timeout
        self.retry_ms = blocked.retry_ms
        self.done = False
        self.reply: Any = None
        self.error: Exception | None = None

    def wake(self) -> None:
        raise NotImplementedError

    def keep_waiting(self, retry_ms: int) -> None:
        """The command found nothing again: it has to run after this time."""
        self.retry_ms = retry_ms


class Waiters:
    """The queues, one for each key of each database with waiters."""

    __slots__ = ("_queues", "count")

    def __init__(self) -> None:
        # A dict keeps the order and removes in O(1).
        self._queues: dict[tuple[int, bytes], dict[Waiter, None]] = {}
        self.count = 0

    def park(self, waiter: Waiter) -> None:
        """Add a waiter to the end of the queue of each of its keys."""
        for key in waiter.keys:
            self._queues.setdefault((waiter.keyspace.index, key), {})[waiter] = None
        self.count += 1

    def remove(self, waiter: Waiter) -> None:
        """Remove a waiter from all queues."""
        for key in waiter.keys:
            place = (waiter.keyspace.index, key)
            queue = self._queues.get(place)
            if queue is not None:
                queue.pop(waiter, None)
                if not queue:
                    del self._queues[place]
        self.count -= 1
        waiter.done = True

    def waiting_for(self, place: tuple[int, bytes]) -> list[Waiter]:
        """The waiters for a key of a database, in the order in which they blocked."""
        return list(self._queues.get(place, ()))

    def places(self) -> list[tuple[int, bytes]]:
        """Every database and key with waiters."""
        return list(self._queues)

    def has_group_reader(self, place: tuple[int, bytes]) -> bool:
        """Tell whether a command that waits for a key reads for a group."""
        return any(waiter.command.name == "XREADGROUP" for waiter in self._queues.get(place, ()))

    def all(self) -> list[Waiter]:
        """Every waiter, once."""
        return list(dict.fromkeys(waiter for queue in self._queues.values() for waiter in queue))
