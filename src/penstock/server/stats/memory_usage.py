"""MEMORY USAGE: the memory of a key and its value.

Counted are the key, its slot in the dictionary, and the value with everything it owns. For a stream these are
its nodes, the trees above them, each group with its consumers and pending records, and the names of its
producers. Of nodes, pending records and names only some are measured (SAMPLES) and the rest is extrapolated;
0 samples measure all. Groups, consumers and producers are all measured, as in Redis: one group may hold
nearly everything, and extrapolating from it would be far off.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.core.groups.group import Group
from penstock.core.idempotency import Idempotency
from penstock.core.list_value import ListValue
from penstock.core.rax.tree import Rax
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID

SLOT_BYTES = (
    104  # a dictionary's entry at its usual filling: hash, two pointers, and the free space
)


def usage_bytes(key: bytes, value: object, samples: int) -> int:
    """An estimate of the memory that DEL would free. Cost: O(samples, groups, consumers, producers)."""
    return SLOT_BYTES + sys.getsizeof(key) + value_bytes(value, samples)


def value_bytes(value: object, samples: int) -> int:
    """The memory of the value alone."""
    if isinstance(value, Stream):
        return _stream_bytes(value, samples)
    if isinstance(value, ListValue):
        return value.memory_bytes()
    return sys.getsizeof(value)


def entries_bytes(stream: Stream, samples: int) -> int:
    """The memory of a stream without its groups and producers. Cost: O(samples)."""
    nodes = _estimate(stream.nodes, samples, sys.getsizeof)
    return sys.getsizeof(stream) + stream.nodes.memory_bytes() + nodes


def _stream_bytes(stream: Stream, samples: int) -> int:
    total = entries_bytes(stream, samples)
    if stream.groups is not None:
        total += stream.groups.memory_bytes()
        total += sum(_group_bytes(group, samples) for group in _values(stream.groups))
    if stream.pending_index is not None:  # its counts are small integers, which Python shares
        total += sys.getsizeof(stream.pending_index) + stream.pending_index.counts.memory_bytes()
    if stream.idempotency is not None:
        total += _producers_bytes(stream.idempotency, samples)
    return total


def _group_bytes(group: Group, samples: int) -> int:
    total = sys.getsizeof(group) + group.pending.memory_bytes() + group.consumers.memory_bytes()
    total += _extrapolate(group.pending, group.pending.count, samples, sys.getsizeof)
    total += sys.getsizeof(group.returned)
    total += _extrapolate(group.returned, len(group.returned), samples, sys.getsizeof)
    order = group.idle_order_or_none()
    if order is not None:
        total += order.memory_bytes()
    return total + sum(map(_consumer_bytes, _values(group.consumers)))


def _producers_bytes(known: Idempotency, samples: int) -> int:
    total = sys.getsizeof(known) + sys.getsizeof(known.producers)
    for producer, names in known.producers.items():
        total += sys.getsizeof(producer) + sys.getsizeof(names)
        total += _extrapolate(names.items(), len(names), samples, _name_bytes)
    return total


def _name_bytes(item: tuple[bytes, StreamID]) -> int:
    return sys.getsizeof(item[0]) + sys.getsizeof(item[1])


def _consumer_bytes(consumer: Any) -> int:
    # The records are shared with the group and counted there.
    return (
        sys.getsizeof(consumer)
        + sys.getsizeof(consumer.name)
        + int(consumer.pending.memory_bytes())
    )


def _estimate(tree: Rax, samples: int, size_of: Callable[[Any], int]) -> int:
    """The memory of all values of a tree, extrapolated from the first ones."""
    return _extrapolate(_values(tree), tree.count, samples, size_of)


def _extrapolate(
    items: Iterable[Any], count: int, samples: int, size_of: Callable[[Any], int]
) -> int:
    """The memory of `count` items, extrapolated from the first ones."""
    total = 0
    for looked_at, item in enumerate(items):
        if samples and looked_at == samples:
            return total * count // looked_at
        total += size_of(item)
    return total


def _values(tree: Rax) -> Iterator[Any]:
    iterator = tree.iterator()
    iterator.seek("^")
    while iterator.next():
        yield iterator.value
