"""MEMORY USAGE: the memory of a key and its value.

Counted are the key, its slot in the dictionary, and the value with everything it owns. For a stream these are
its nodes, the trees above them, and each group with its consumers and pending records. Of nodes and pending
records only some are measured (SAMPLES) and the rest is extrapolated; 0 samples measure all. Groups and
consumers are all measured, as in Redis: one group may hold nearly everything, and extrapolating from it would
be far off.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from penstock.core.groups.group import Group
from penstock.core.list_value import ListValue
from penstock.core.rax.tree import Rax
from penstock.core.stream import Stream

SLOT_BYTES = (
    104  # a dictionary's entry at its usual filling: hash, two pointers, and the free space
)


def usage_bytes(key: bytes, value: object, samples: int) -> int:
    """An estimate of the memory that DEL would free. Cost: O(samples, groups, consumers)."""
    return SLOT_BYTES + sys.getsizeof(key) + value_bytes(value, samples)


def value_bytes(value: object, samples: int) -> int:
    """The memory of the value alone."""
    if isinstance(value, Stream):
        return _stream_bytes(value, samples)
    if isinstance(value, ListValue):
        return value.memory_bytes()
    return sys.getsizeof(value)


def _stream_bytes(stream: Stream, samples: int) -> int:
    nodes = _estimate(stream.nodes, samples, sys.getsizeof)
    total = sys.getsizeof(stream) + stream.nodes.memory_bytes() + nodes
    if stream.groups is not None:
        total += stream.groups.memory_bytes()
        total += sum(_group_bytes(group, samples) for group in _values(stream.groups))
    return total


def _group_bytes(group: Group, samples: int) -> int:
    total = sys.getsizeof(group) + group.pending.memory_bytes() + group.consumers.memory_bytes()
    total += _estimate(group.pending, samples, sys.getsizeof)
    return total + sum(map(_consumer_bytes, _values(group.consumers)))


def _consumer_bytes(consumer: Any) -> int:
    # The records are shared with the group and counted there.
    return (
        sys.getsizeof(consumer)
        + sys.getsizeof(consumer.name)
        + int(consumer.pending.memory_bytes())
    )


def _estimate(tree: Rax, samples: int, size_of: Any) -> int:
    """The memory of all values of a tree, extrapolated from the first ones."""
    total = 0
    for looked_at, value in enumerate(_values(tree)):
        if samples and looked_at == samples:
            return total * tree.count // looked_at
        total += size_of(value)
    return total


def _values(tree: Rax) -> Iterator[Any]:
    iterator = tree.iterator()
    iterator.seek("^")
    while iterator.next():
        yield iterator.value
