"""Streaming reads in mode shared: the query is one consumer of a group. Delivery is at least once.

The driver claims entries and writes their ids into the offset. Workers read those ids, and `commit`
acknowledges them. A repeated batch therefore has the same entries, and an entry is acknowledged only when
Spark has finished it.

    XPENDING own consumer            entries of a run that ended between the claim and the offset
    XAUTOCLAIM JUSTID claimIdleMs    entries of dead consumers; XCLAIM RETRYCOUNT counts the delivery
    XREADGROUP >                     new entries, up to maxEntriesPerTrigger in total

Without the option `consumer` a query makes up a name and keeps it in its offsets, so two queries never share
one.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import redis
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from penstock.core.stream_id import StreamID, parse
from penstock.spark.connection import StreamName, stream_of
from penstock.spark.runtime.short_errors import short_errors
from penstock.spark.source.bounds import LATEST, start_position, streams_of
from penstock.spark.source.offsets import Claim, SharedOffset, parse_shared_offset
from penstock.spark.source.options import SHARED_ENTRIES, SourceOptions
from penstock.spark.source.partitions import ClaimPartition
from penstock.spark.source.planning import plan_parts
from penstock.spark.source.reader_base import StreamReaderBase
from penstock.spark.source.schema import EntrySchema
from penstock.spark.source.stream_state import groups_of, state_of

ACK_IDS = 1_000
READ_IDS = 500
CLAIM_IDS = 1_000


@short_errors
class SharedReader(StreamReaderBase):
    """Reads as one consumer of a group."""

    def __init__(self, options: SourceOptions, schema: EntrySchema) -> None:
        super().__init__(options, schema)
        self._initial: SharedOffset | None = None
        self._target: dict[str, StreamID] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """An offset without entries. Creates a missing group at the position in the options."""
        if self._initial is None:
            bound = self._options.starting or LATEST
            for name, stream in streams_of(self.servers, self._options).items():
                at = start_position(bound, name, stream, state_of(self.servers, stream))
                self._join(stream, at.id)
            consumer = self._options.consumer or f"spark-{secrets.token_hex(8)}"
            self._initial = SharedOffset(consumer, 0, {})
        return self._initial.to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember the end of each stream: later entries are left to other consumers."""
        streams = streams_of(self.servers, self._options)
        self._target = {
            name: state_of(self.servers, stream).last for name, stream in streams.items()
        }

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Claim the next batch. Spark has finished the entries of `start`: they are acknowledged first."""
        begun = parse_shared_offset(start)
        self._acknowledge(begun)
        left = limit.max_rows if isinstance(limit, ReadMaxRows) else SHARED_ENTRIES
        claimed = {}
        streams = list(streams_of(self.servers, self._options).items())
        # Each batch starts with another stream. Otherwise a busy stream could starve the rest.
        first = begun.batch % len(streams) if streams else 0
        for name, stream in streams[first:] + streams[:first]:
            taken = self._take(name, stream, begun.consumer, left)
            if taken:
                left -= len(taken)
                ids = sorted(taken, key=lambda one: parse(one.encode()))
                again = {one: count for one, count in taken.items() if count > 1}
                claimed[name] = Claim(tuple(ids), again)
        if not claimed:
            return start
        return SharedOffset(begun.consumer, begun.batch + 1, claimed).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The claimed ids, split into runs."""
        if start == end:
            return []
        claimed = parse_shared_offset(end).claimed
        counts: dict[str, int | None] = {name: len(claim.ids) for name, claim in claimed.items()}
        parts = plan_parts(counts, self._options.partitions_min)
        made = []
        for name, claim in claimed.items():
            stream = stream_of(self._options.place, name)
            size = -(-len(claim.ids) // parts[name])
            for at in range(0, len(claim.ids), size):
                ids = claim.ids[at : at + size]
                again = {one: claim.deliveries[one] for one in ids if one in claim.deliveries}
                made.append(ClaimPartition(stream, Claim(ids, again)))
        return made

    def commit(self, end: dict[str, Any]) -> None:
        """Spark has finished this batch."""
        self._acknowledge(parse_shared_offset(end))

    def _take(self, name: str, stream: StreamName, consumer: str, most: int) -> dict[str, int]:
        """Claim up to `most` entries for the consumer. Returns their ids and delivery counts."""
        if most <= 0:
            return {}
        try:
            taken = self._own_pending(stream, consumer, most)
            self._claim_idle(stream, consumer, taken, most)
            if len(taken) < most and self._may_read(name, stream):
                self._read_new(stream, consumer, taken, most)
        except redis.ResponseError as error:
            if "NOGROUP" not in str(error) and "no such key" not in str(error):
                raise
            # The stream is new, or it was deleted and created again: read all of it.
            if not self._join(stream, StreamID(0, 0)):
                return {}
            return self._take(name, stream, consumer, most)
        return taken

    def _own_pending(self, stream: StreamName, consumer: str, most: int) -> dict[str, int]:
        words = ("XPENDING", stream.key, self._options.group, "-", "+", most, consumer)
        found = self.servers.ask(stream, *words)
        if not found:
            return {}
        counts = {one[0].decode(): int(one[3]) for one in found}
        return self._count_again(stream, consumer, counts)

    def _claim_idle(
        self, stream: StreamName, consumer: str, taken: dict[str, int], most: int
    ) -> None:
        cursor = "0-0"
        idle = self._options.claim_idle_ms
        while len(taken) < most:
            count = min(most - len(taken), CLAIM_IDS)
            place = (stream.key, self._options.group, consumer, idle, cursor)
            reply = self.servers.ask(stream, "XAUTOCLAIM", *place, "COUNT", count, "JUSTID")
            fresh = [one.decode() for one in reply[1] if one.decode() not in taken]
            if fresh:
                counts = self._delivery_counts(stream, consumer, fresh)
                taken |= self._count_again(stream, consumer, counts)
            cursor = reply[0].decode()
            if cursor == "0-0":
                return

    def _delivery_counts(self, stream: StreamName, consumer: str, ids: list[str]) -> dict[str, int]:
        place = (stream.key, self._options.group)
        asked = [("XPENDING", *place, one, one, 1, consumer) for one in ids]
        replies = self.servers.ask_all(stream, asked)
        return {found[0][0].decode(): int(found[0][3]) for found in replies if found}

    def _count_again(
        self, stream: StreamName, consumer: str, counts: dict[str, int]
    ) -> dict[str, int]:
        """Add one to the delivery count of each entry, because JUSTID does not."""
        place = (stream.key, self._options.group, consumer, 0)
        ids = list(counts)
        self.servers.ask_all(
            stream,
            [("XCLAIM", *place, one, "RETRYCOUNT", counts[one] + 1, "JUSTID") for one in ids],
        )
        return {one: counts[one] + 1 for one in ids}

    def _may_read(self, name: str, stream: StreamName) -> bool:
        """Whether to read new entries: an AvailableNow run stops at the end it has remembered."""
        if self._target is None:
            return True
        if name not in self._target:
            return False
        for group in groups_of(self.servers, stream):
            if group.name == self._options.group.encode():
                return group.last_id < self._target[name]
        return True

    def _read_new(
        self, stream: StreamName, consumer: str, taken: dict[str, int], most: int
    ) -> None:
        place = ("XREADGROUP", "GROUP", self._options.group, consumer)
        while len(taken) < most:
            # The reply has whole entries, not only ids. Small pages bound the driver's memory.
            count = min(READ_IDS, most - len(taken))
            reply = self.servers.ask(stream, *place, "COUNT", count, "STREAMS", stream.key, ">")
            if not reply:
                return
            taken |= {entry[0].decode(): 1 for entry in reply[0][1]}
            if len(reply[0][1]) < count:
                return

    def _acknowledge(self, offset: SharedOffset) -> None:
        for name, claim in offset.claimed.items():
            stream = stream_of(self._options.place, name)
            for at in range(0, len(claim.ids), ACK_IDS):
                ids = claim.ids[at : at + ACK_IDS]
                self.servers.ask(stream, "XACK", stream.key, self._options.group, *ids)

    def _join(self, stream: StreamName, at: StreamID) -> bool:
        """Create the group if it is missing. Returns False if the stream does not exist."""
        try:
            self.servers.ask(stream, "XGROUP", "CREATE", stream.key, self._options.group, str(at))
        except redis.ResponseError as error:
            if "requires the key to exist" in str(error):
                return False
            if "BUSYGROUP" not in str(error):
                raise
        return True
