"""For how long nobody has read the groups of streams.

A group with consumers is as idle as the one that was seen last. One without consumers has no time of its own:
it counts from when it was noticed first.
"""

from __future__ import annotations

from penstock.core.groups.group import Group
from penstock.engine.retention.group_needs import seen_ms_or_none

Place = tuple[int, bytes, bytes]  # database, stream, group


class IdleGroups:
    """Groups without consumers, and when each was noticed: idle_ms, keep."""

    __slots__ = ("_noticed_ms",)

    def __init__(self) -> None:
        self._noticed_ms: dict[Place, int] = {}

    def idle_ms(self, place: Place, group: Group, now_ms: int) -> int:
        """For how long nobody has read a group."""
        seen_ms = seen_ms_or_none(group)
        if seen_ms is None:
            return now_ms - self._noticed_ms.setdefault(place, now_ms)
        self._noticed_ms.pop(place, None)
        return now_ms - seen_ms

    def keep(self, places: set[Place]) -> None:
        """Forget all groups but these."""
        self._noticed_ms = {place: ms for place, ms in self._noticed_ms.items() if place in places}
