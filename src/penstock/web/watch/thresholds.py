"""From which value on something is a warning or bad. Limits of the doctor are those of `penstock doctor`.

A level is the text `bad`, `warn`, or empty. Tables show it as the "level" of a cell: a colour and a shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from penstock.doctor.finding import DISK_DANGER_SHARE, DISK_WARNING_SHARE, FSYNC_SECONDS_MAX
from penstock.doctor.server import MEMORY_SHARE_MAX
from penstock.doctor.streams import Limits

WARN, BAD, GOOD = "warn", "bad", "good"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A value is a warning from `warn` on, and bad from `bad` on."""

    warn: float
    bad: float

    def level(self, value: float | None) -> str:
        """The level of a value. An unknown value has none."""
        if value is None or value < self.warn:
            return ""
        return BAD if value >= self.bad else WARN


LAG = Threshold(1_000, 100_000)  # entries that a group has not read
PENDING_AGE_MS = Threshold(5 * 60_000, 60 * 60_000)  # since the last delivery
STILL_MS = Threshold(5 * 60_000, 30 * 60_000)  # entries wait for a pipeline, and no batch comes
DELIVERIES = Threshold(3, 5)
MEMORY_SHARE = Threshold(0.8, 0.95)  # of maxmemory
MACHINE_SHARE = Threshold(MEMORY_SHARE_MAX, MEMORY_SHARE_MAX)  # of the memory of the machine
DISK_SHARE = Threshold(1 - DISK_WARNING_SHARE, 1 - DISK_DANGER_SHARE)  # in use
FSYNC_MS = Threshold(1000 * FSYNC_SECONDS_MAX, inf)
UNREAD_MS = Limits().idle_ms  # nobody reads a group if all its consumers are silent for this long
CLIENT_SHARE = Threshold(0.8, 0.95)  # of maxclients
REPLICA_SECONDS = Threshold(5, 30)  # since a replica or primary was last heard
COMMAND_MICROSECONDS = Threshold(100_000, 1_000_000)  # one command blocks all others

CONSUMER_LEVELS = {"dead": BAD, "reads, gets nothing": WARN}
PIPELINE_LEVELS = {"running": GOOD, "failed": BAD, "stopped": WARN}


def marked(text: str, level: str) -> str | Mapping[str, str]:
    """A cell of a table with its level, or plain text if it has none."""
    return {"text": text, "level": level} if level else text
