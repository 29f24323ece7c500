"""How many groups of a stream have an entry pending, by entry.

    group "a"    pending 3-0, 4-0          index    3-0 ──> 1
    group "b"    pending 4-0, 5-0                   4-0 ──> 2
                                                    5-0 ──> 1

It answers at once whether any group still has an entry pending; otherwise each group would be asked. It
exists only in streams with several groups, and only once a command has asked (references.py). Groups keep it
up to date from then on.

Invariant
  X1  an entry's count is the number of groups with a pending record for it; there is no count of 0.

Cost: O(1) rax operations per pending record that is added or removed.
"""

from __future__ import annotations

from penstock.core.rax.tree import Rax


class PendingIndex:
    """Counts by the key of the entry's id."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts = Rax()

    def add(self, key: bytes) -> None:
        """One more group has this entry pending."""
        if not self.counts.try_insert(key, 1):
            self.counts.insert(key, self.counts.find(key) + 1)

    def remove(self, key: bytes) -> None:
        """One group fewer has this entry pending."""
        count = self.counts.find(key)
        if count == 1:
            self.counts.remove(key)
        else:
            self.counts.insert(key, count - 1)

    def has(self, key: bytes) -> bool:
        """Tell whether any group has this entry pending."""
        return self.counts.find(key) is not None
