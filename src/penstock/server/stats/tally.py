"""Counts the calls, times and errors of commands, and finds the counter of a frame's command.

A server has one `Tallies`. A lookup creates no string: the length and two bytes of the command's name select
one of 64 slots. If the slot's name is equal, its counter is the result. Otherwise engine/lookup finds the
command, and the slot is replaced. Containers (XGROUP CREATE) always use engine/lookup; they are not on the
hot path.

Times are counted in a histogram with sixteen buckets per power of two, so percentiles are exact to 6%.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core import memory, spans
from penstock.core.frame import Frame
from penstock.engine.compat import Compat
from penstock.engine.lookup import Lookup
from penstock.engine.table import NO_KEYS, Command, Flags, QuickForm
from penstock.server.session.states import KEYED_READ, KEYED_WRITE, READ_ONLY

_SLOTS = 64
_SLOT_MASK = _SLOTS - 1
_STEPS = 16
_BUCKETS = 40 * _STEPS


class Tally:
    """One command's row and its counters."""

    __slots__ = (
        "calls",
        "command",
        "failed",
        "full_in",
        "histogram",
        "is_fast",
        "is_plain",
        "keyed",
        "quick",
        "quick_calls",
        "rejected",
        "uncounted",
        "us",
        "word",
    )

    def __init__(self, command: Command) -> None:
        self.command = command
        self.is_fast = bool(command.flags & Flags.FAST)
        # A reply that shows data, or follows from a change, waits for replicas (min-replicas-ack).
        # A shard channel stands where keys stand, but is none.
        has_keys = command.keys != NO_KEYS or command.find_keys is not None
        has_keys = has_keys and "not_key" not in command.access
        self.keyed = KEYED_READ if has_keys or command.flags & Flags.READ else 0
        if command.flags & Flags.WRITE:
            self.keyed |= KEYED_WRITE
        self.is_plain = not command.flags & Flags.PROTECTED  # all clients may use it
        self.quick: QuickForm | None = command.quick
        # The states of the server in which it takes its full form. A read-only server refuses only writes.
        self.full_in = -1 if command.flags & Flags.WRITE else ~READ_ONLY
        self.uncounted = 0  # calls of the client that is served now, until the clock is read
        self.word = b" "  # the name as last received; a space matches nothing
        self.reset()

    def reset(self) -> None:
        """Reset all counters."""
        self.calls = 0
        self.quick_calls = 0  # of these, by the quick form
        self.us = 0
        self.failed = 0
        self.rejected = 0
        self.histogram = bytearray(0)

    def count(self, calls: int, us: int) -> None:
        """Count calls that took some time together."""
        self.calls += calls
        if us < 0:
            us = 0  # the clock was set back
        self.us += us
        us //= calls
        if len(self.histogram) == 0:
            self.histogram = bytearray(8 * _BUCKETS)
        bucket = us
        shift = 0
        while bucket >= 2 * _STEPS:
            bucket >>= 1
            shift += 1
        bucket += shift * _STEPS
        if bucket >= _BUCKETS:
            bucket = _BUCKETS - 1
        memory.store64(
            self.histogram, 8 * bucket, memory.load64(self.histogram, 8 * bucket) + calls
        )

    def percentile_us(self, percent: float) -> float:
        """A percentile of the call times."""
        wanted = self.calls * percent / 100
        seen = 0
        for bucket in range(len(self.histogram) // 8):
            seen += memory.load64(self.histogram, 8 * bucket)
            if seen and seen >= wanted:
                return float(_upper_us(bucket))
        return 0.0

    def buckets(self) -> list[tuple[int, int]]:
        """(upper limit in µs, calls) for each bucket that is not empty."""
        found = []
        for bucket in range(len(self.histogram) // 8):
            calls = memory.load64(self.histogram, 8 * bucket)
            if calls:
                found.append((_upper_us(bucket), calls))
        return found


def _upper_us(bucket: int) -> int:
    """The longest time of a bucket."""
    if bucket < 2 * _STEPS:
        return bucket
    shift = bucket // _STEPS - 1
    return ((bucket - shift * _STEPS + 1) << shift) - 1


class Tallies:
    """The counters of all commands of one server."""

    __slots__ = ("_containers", "_found", "_words", "by_name", "lookup")

    def __init__(self, rows: Iterable[Command], compat: Compat) -> None:
        """`rows`: of all versions; those that are newer than `compat` are left out."""
        rows = [row for row in rows if compat.knows(row.since)]
        self.lookup = Lookup(rows, compat.unknown_alone_is_short)
        self.by_name = {row.name: Tally(row) for row in rows}
        # COMMAND is a command by itself and also a container (COMMAND COUNT).
        self._containers = {row.name.split(" ")[0] for row in rows if " " in row.name}
        self._words: list[bytes] = [b""] * _SLOTS
        self._found: list[Tally | None] = [None] * _SLOTS

    def find(self, frame: Frame) -> Tally:
        """The counter of a frame's command. Raises: CommandError for an unknown command."""
        buffer = frame.buffer
        start = memory.span_start(frame.spans, 0)
        size = memory.span_size(frame.spans, 0)
        if size == 0:
            return self.by_name[self.lookup.find(frame).name]
        slot = (size + 5 * buffer[start + size // 2] + 3 * buffer[start + size - 1]) & _SLOT_MASK
        if spans.is_piece(buffer, frame.spans, 0, self._words[slot]):
            found = self._found[slot]
            if found is not None:
                found.word = self._words[slot]
                return found
        tally = self.by_name[self.lookup.find(frame).name]
        if tally.command.name.split(" ")[0] not in self._containers:
            tally.word = self._words[slot] = frame.piece(0)
            self._found[slot] = tally
        return tally
