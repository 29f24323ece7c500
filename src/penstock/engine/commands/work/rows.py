"""Pending rows of a group of workers: whose they are, when they are due, where dead entries go."""

from __future__ import annotations

import re

from penstock.core import stream_id
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import NOBODY, Group
from penstock.core.groups.records import Pending
from penstock.core.groups.results import PendingRow
from penstock.core.stream import Stream
from penstock.engine.commands.streams.groups import group_or_none
from penstock.engine.commands.work.calls import call
from penstock.engine.context import Context
from penstock.errors import no_such_group

WINDOW_MS = 86_400_000  # a row is due when it has been idle for this long
WAITING = b"waiting"  # the consumer of rows that wait for their next attempt
DELAYING = b"-"  # the consumer of entries that were sent for later
COUNT_MAX = 1000  # entries in one call
SEEN_MAX = 50  # rows that one call looks at to tell when the next is due
# How often a worker looks if it cannot tell: below the second that retries may be late.
LOOK_MS = 500
# Host, process, random: penstock.work.names.
_WORKER = re.compile(rb".+-\d+-[0-9a-f]{8}", re.DOTALL)

Fields = list[bytes]


def has_due_time(consumer: bytes) -> bool:
    """Whether the delivery times of a consumer's rows say when they are due."""
    return consumer in (WAITING, DELAYING) or _WORKER.fullmatch(consumer) is not None


class GroupRows:
    """The rows of one group, seen by one consumer."""

    __slots__ = ("_context", "_key", "consumer", "group", "group_name", "stream")

    def __init__(self, context: Context, key: bytes, group: bytes, consumer: bytes) -> None:
        """Raises: CommandError (NOGROUP, WRONGTYPE)."""
        stream = context.keyspace.stream_or_none(key)
        found = group_or_none(stream, group)
        if stream is None or found is None:
            raise no_such_group(key, group)
        self._context = context
        self._key = key
        self.stream: Stream = stream
        self.group: Group = found
        self.group_name = group
        self.consumer = consumer

    def due(self, limit: int) -> list[PendingRow]:
        """Rows that are due, by id."""
        return self._due(limit, None)

    def due_waiting(self, limit: int) -> list[PendingRow]:
        """Rows that wait for their next attempt and are due, by id."""
        waiting = self.group.consumer_or_none(WAITING)
        return [] if waiting is None else self._due(limit, waiting)

    def _due(self, limit: int, consumer: Consumer | None) -> list[PendingRow]:
        since_ms = self._context.now_ms() - WINDOW_MS
        first, last = stream_id.SMALLEST, stream_id.LARGEST
        return self.group.pending_rows(first, last, limit, consumer, since_ms)

    def mine_or_none(self, entry_id: bytes, begun: int) -> Pending | None:
        """My row for an attempt that I began; None if it is another consumer's or another attempt."""
        record = self.group.pending.find(stream_id.parse(entry_id).key)
        if record is None or record.delivery_count != begun:
            return None
        return record if self.owner_of(record) == self.consumer else None

    def waiting_or_none(self, entry_id: bytes, begun: int) -> Pending | None:
        """A row that waits for its next attempt, after this number of attempts."""
        record = self.group.pending.find(stream_id.parse(entry_id).key)
        if record is None or record.delivery_count != begun:
            return None
        return record if self.owner_of(record) == WAITING else None

    def owner_of(self, record: Pending) -> bytes:
        """The name of a row's consumer; empty if it has none."""
        if record.consumer_number == NOBODY:
            return b""
        return self.group.consumer_by_number(record.consumer_number).name

    def fields_or_none(self, entry_id: bytes) -> Fields | None:
        """The fields of an entry; None if it was deleted."""
        found = stream_id.parse(entry_id)
        entries = self.stream.range(found, found, 1).entries()
        return entries[0][1] if entries else None

    def acknowledge(self, entry_id: bytes) -> None:
        call(self._context, "XACK", self._key, self.group_name, entry_id)

    def claim(self, ids: list[bytes], consumer: bytes, due_in_ms: int, begun: int) -> None:
        """Give rows to a consumer, due after a time, with a number of attempts begun."""
        call(
            self._context,
            "XCLAIM",
            *(self._key, self.group_name, consumer, b"0", *ids),
            *(b"IDLE", b"%d" % (WINDOW_MS - due_in_ms), b"RETRYCOUNT", b"%d" % begun, b"JUSTID"),
        )

    def bury(
        self, dead: bytes, entry_id: bytes, begun: int, reason: bytes, trace: bytes = b""
    ) -> None:
        """Move an entry to the dead letters and acknowledge it."""
        fields = self.fields_or_none(entry_id)
        if fields is not None:
            facts = [b"_reason", reason, b"_source_stream", self._key, b"_source_id", entry_id]
            facts += [b"_traceback", trace, b"_attempts", b"%d" % begun]
            facts += [b"_group", self.group_name, b"_consumer", self.consumer]
            call(self._context, "XADD", dead, b"*", *fields, *facts)
        self.acknowledge(entry_id)


def shortest(waits: list[int]) -> int:
    """The shortest of some times; -1 if there is none."""
    return min(waits, default=-1)


def is_suspect(row: PendingRow) -> bool:
    """Tell whether the last attempt of a due row ended without an outcome."""
    return row.consumer != WAITING


def spent_reason(row: PendingRow) -> bytes:
    """Why a row that has used up its attempts is dead."""
    if is_suspect(row):
        return b"lease expired in attempt %d" % row.delivery_count
    return b"%d attempts were begun" % row.delivery_count
