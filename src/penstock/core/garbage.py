"""Garbage: data that is no longer used, to be freed a part at a time.

Freeing a stream of ten million entries takes 10 to 50 ms, and nobody else is served meanwhile. So a value
that was deleted, replaced or trimmed is only detached from the data, and thrown in here. The owner of the
event loop frees a part of it in each of the next turns.

    discard(stream)      parts  [ stream ]
    free_some()          parts  [ nodes of the stream, blocks of records of its group and its consumers ]
    free_some()          parts  [ nodes of the stream, half of the blocks ]   ...

A part is a list of small objects, a dictionary of values, or an object that `parts_of` can take apart. No
part is reachable from any data any more, so whatever runs between two steps sees the same data as if
everything had been freed at once. Only the memory of the process shrinks later.

`wake` is called when there is something to free. Without it nobody would call free_some: an embedded database
has no loop. Then `discard` does nothing, and the value is freed as soon as its last reference is gone.

Invariants
  GA1  a part that somebody else still refers to is never taken apart, only dropped: a reply may not be
       written yet.
  GA2  parts are empty if `wake` is None.

Cost: discard is O(1). One free_some frees about OBJECTS_AT_ONCE objects, 0.1 to 0.3 ms.

Rejected: a thread. It would hold the interpreter's lock while it frees, so clients would wait all the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import Group
from penstock.core.list_value import ListValue
from penstock.core.rax import cutting
from penstock.core.stream import Stream

OBJECTS_AT_ONCE = 2048

_LARGE = (Stream, Group, Consumer, ListValue)
_OBJECTS_PER_VALUE = 16  # taking a small stream apart costs as much as freeing this many records


class Garbage:
    """What one engine has to free. Throw in: discard. Free: free_some, free_all. Look: count."""

    __slots__ = ("_parts", "freed", "wake")

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self.freed = 0  # the number of values discarded and freed
        self.wake: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._parts)

    def discard(self, value: object) -> None:
        """Free a value, or a list or dictionary of values, later. Nothing may use it any more."""
        if self.wake is None or value is None or type(value) is bytes:
            return
        idle = not self._parts
        self._parts.append(value)
        if idle:
            self.wake()

    def free_some(self) -> bool:
        """Free a part; True if there is more."""
        parts = self._parts
        left = OBJECTS_AT_ONCE
        while parts and left > 0:
            kind = type(parts[-1])
            if kind is list:
                left -= 1 + self._free_items(left)
            elif issubclass(kind, dict):
                left -= 1 + self._free_values(left)
            else:
                left -= _OBJECTS_PER_VALUE
                self.freed += 1
                if _is_last_owned(parts):
                    parts += parts_of(parts.pop())
                else:
                    parts.pop()  # GA1: the last owner frees it
        return bool(parts)

    def free_all(self) -> None:
        """Free everything now."""
        while self.free_some():
            pass

    def _free_items(self, most: int) -> int:
        """Free the last items of the list that is the last part; return how many."""
        items = self._parts[-1]
        count = min(most, len(items))
        del items[len(items) - count :]
        if not items:
            self._parts.pop()
        return count

    def _free_values(self, most: int) -> int:
        """Free values of the dictionary that is the last part, until one has to be taken apart."""
        values = self._parts[-1]
        count = 0
        while values and count < most:
            _, value = values.popitem()
            count += 1
            if isinstance(value, _LARGE):
                self._parts.append(value)
                return count
        if not values:
            self._parts.pop()
        return count


def parts_of(value: object) -> list[Any]:
    """Take a stream, a list or a group apart: everything in it that may consist of many objects."""
    if isinstance(value, Stream):
        parts: list[Any] = [cutting.take_values(value.nodes)]
        if value.groups is not None:
            parts += cutting.take_values(value.groups)
        if value.pending_index is not None:
            parts.append(cutting.take_values(value.pending_index.counts))
        return parts
    if isinstance(value, Group):
        parts = [*value.pending.take_blocks(), value.returned]
        order = value.idle_order_or_none()
        if order is not None:
            parts.append(cutting.take_values(order))
        return parts + cutting.take_values(value.consumers)
    if isinstance(value, Consumer):
        return list(value.pending.take_blocks())
    if isinstance(value, ListValue):
        return [value.inside()[0]]
    return []


def _is_last_owned(parts: list[Any]) -> bool:
    """Tell whether nothing but this list refers to its last item."""
    return sys.getrefcount(parts[-1]) <= _REFERENCES_OWNED


_OWNED = [object()]
_REFERENCES_OWNED = sys.getrefcount(_OWNED[-1])  # depends on the interpreter
