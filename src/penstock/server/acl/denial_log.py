"""ACL LOG: refused commands and failed logins, newest first.

An event that repeats within a minute is counted by the entry that it has already, as in Redis.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

LENGTH_DEFAULT = 128
OBJECT_BYTES_MAX = 1024  # of a key or a name; a refused command must not fill the memory
_LOOKED_AT_MAX = 10  # entries that are compared with a new event
_SAME_MS_MAX = 60_000


@dataclass(slots=True)
class Event:
    """What was refused. `object`: the command, key, group or channel."""

    reason: str
    context: str
    object: bytes
    user: bytes


@dataclass(slots=True)
class Entry:
    """One entry. Times are those of the system's clock."""

    id: int
    event: Event
    created_ms: int
    updated_ms: int
    client_line: bytes
    count: int = 1


class DenialLog:
    """The entries, at most `length_max`. `counts`: all events by reason, for INFO."""

    def __init__(self) -> None:
        self.length_max = LENGTH_DEFAULT
        self.entries: deque[Entry] = deque()
        self.counts: dict[str, int] = {}
        self._next_id = 0

    def note(self, event: Event, now_ms: int, client_line: bytes) -> None:
        """Log an event."""
        event.object = event.object[:OBJECT_BYTES_MAX]
        event.user = event.user[:OBJECT_BYTES_MAX]
        self.counts[event.reason] = self.counts.get(event.reason, 0) + 1
        entry = self._same_or_none(event, now_ms)
        if entry is None:
            entry = Entry(self._next_id, event, now_ms, now_ms, client_line)
            self._next_id += 1
        else:
            self.entries.remove(entry)
            entry.count += 1
            entry.updated_ms = now_ms
            entry.client_line = client_line
        self.entries.appendleft(entry)
        self.cut()

    def _same_or_none(self, event: Event, now_ms: int) -> Entry | None:
        for entry in list(self.entries)[:_LOOKED_AT_MAX]:
            if entry.event == event and abs(now_ms - entry.updated_ms) <= _SAME_MS_MAX:
                return entry
        return None

    def cut(self) -> None:
        """Drop the oldest entries above the limit."""
        while len(self.entries) > self.length_max:
            self.entries.pop()

    def clear(self) -> None:
        """ACL LOG RESET."""
        self.entries.clear()
