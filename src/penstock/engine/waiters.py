"""Readers that wait for entries: who, for which keys, in which order.

A blocking read that finds nothing returns a `Blocked`: the command again, with everything that depended on
the moment of the call (the id behind `$`) already resolved. Its caller parks it here as a `Waiter` and does
the waiting itself: the engine has no thread and no timer. When a key is touched, the waiters of that key
run their command again, first come first served; one that finds something is freed from all its keys.

Invariants
  W1  a waiter is in the queue of each of its keys, or in none and done.
  W2  a queue's order is the order in which its waiters blocked, over all keys.

Cost: park and free are O(keys of the waiter); a waiter that nothing touches costs nothing. Of a group's
waiters only those run that find something, and one more.
"""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.engine.table import Command


class Blocked:
    """What a blocking command returns instead of a reply."""

    __slots__ = ("frame", "group", "keys", "timeout_ms")

    def __init__(
        self, frame: Frame, keys: list[bytes], timeout_ms: int, group: bytes | None = None
    ) -> None:
        self.frame = frame
        self.keys = keys
        self.timeout_ms = timeout_ms  # 0: for ever
        self.group = group  # the readers of one group share one position, whoever they are


class Waiter:
    """One parked command. A subclass's `wake` tells whoever waits that `reply` or `error` is there."""

    def __init__(self, command: Command, blocked: Blocked) -> None:
        self.command = command
        self.frame = blocked.frame
        self.keys = blocked.keys
        self.group = blocked.group
        self.done = False
        self.reply: Any = None
        self.error: Exception | None = None

    def wake(self) -> None:
        raise NotImplementedError


class Waiters:
    """The queues, one for each key that somebody waits for."""

    __slots__ = ("_queues", "count")

    def __init__(self) -> None:
        self._queues: dict[bytes, dict[Waiter, None]] = {}  # a dict keeps order and removes in O(1)
        self.count = 0

    def park(self, waiter: Waiter) -> None:
        """Put a waiter at the end of the queue of each of its keys."""
        for key in waiter.keys:
            self._queues.setdefault(key, {})[waiter] = None
        self.count += 1

    def free(self, waiter: Waiter) -> None:
        """Take a waiter out of all queues."""
        for key in waiter.keys:
            queue = self._queues.get(key)
            if queue is not None:
                queue.pop(waiter, None)
                if not queue:
                    del self._queues[key]
        self.count -= 1
        waiter.done = True

    def waiting_for(self, key: bytes) -> list[Waiter]:
        """The waiters of a key, in the order in which they blocked."""
        return list(self._queues.get(key, ()))

    def all(self) -> list[Waiter]:
        """Every waiter, once."""
        return list(dict.fromkeys(waiter for queue in self._queues.values() for waiter in queue))
