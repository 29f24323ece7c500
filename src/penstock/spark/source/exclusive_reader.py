"""Streaming reads in mode exclusive: offsets are in Spark's checkpoint, and batches are fixed ranges of ids.

A restart needs nothing from this object. Its attributes avoid repeated requests, or keep the answer that
a new query must get twice. The optional group mirrors the position of the query. `commit` sets it, and so
does `latestOffset`, because Spark commits the last batch of an AvailableNow query only in the next run.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import redis
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from penstock.core.stream_id import SMALLEST
from penstock.errors import PenstockError
from penstock.spark.connection import Servers, StreamName, stream_of
from penstock.spark.runtime.short_errors import short_errors
from penstock.spark.source.bounds import LATEST, start_position, streams_of
from penstock.spark.source.offsets import Offset, Position, parse_offset
from penstock.spark.source.options import SourceOptions
from penstock.spark.source.planning import (
    DataLoss,
    StreamState,
    loss_text,
    lost_or_none,
    range_between,
    share_limit,
)
from penstock.spark.source.reader_base import StreamReaderBase, split_ranges
from penstock.spark.source.schema import EntrySchema
from penstock.spark.source.stream_state import counted, group_in_use_or_none, kth_id, state_of

log = logging.getLogger(__name__)


class GroupInUse(PenstockError):
    """Other consumers use the group."""


@short_errors
class ExclusiveReader(StreamReaderBase):
    """Reads ranges of ids, which are the same whenever a batch is repeated."""

    def __init__(self, options: SourceOptions, schema: EntrySchema) -> None:
        super().__init__(options, schema)
        self._initial: Offset | None = None
        self._target: dict[str, Position] | None = None
        self._seen: dict[str, Position] = {}
        self._mirrored: dict[str, Position] = {}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a new query starts. Spark asks twice, and "latest" must mean the same position both times."""
        if self._initial is None:
            bound = self._options.starting or LATEST
            positions = {}
            for name, stream in streams_of(self.servers, self._options).items():
                state = state_of(self.servers, stream)
                start = start_position(bound, name, stream, state)
                positions[name] = counted(self.servers, stream, start, state)
            self._initial = Offset(positions)
        return self._initial.to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember the end of each stream: this run stops there."""
        streams = streams_of(self.servers, self._options)
        self._target = {
            name: state_of(self.servers, stream).end for name, stream in streams.items()
        }

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch. Spark has finished everything before `start`."""
        begun = parse_offset(start)
        self._mirror(begun)
        starts, ends = self._look(begun)
        self._seen = ends
        if isinstance(limit, ReadMaxRows):
            ends = self._limited(starts, ends, limit.max_rows)
        return Offset(ends).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The last known ends of the streams, for Spark's progress reports."""
        return Offset(self._seen).to_json() if self._seen else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The ranges between two offsets. After a restart the offsets may be old."""
        begun = parse_offset(start).streams
        ranges = {}
        for name, until in parse_offset(end).streams.items():
            stream = stream_of(self._options.place, name)
            since = begun.get(name)
            if since == until:
                continue
            state = state_of(self.servers, stream)
            since = self._checked(name, since, state)
            ranges[stream] = range_between(since, until)
        return split_ranges(self.servers, ranges.items(), self._options)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark has finished all entries up to this offset."""
        self._mirror(parse_offset(end))

    def _look(self, begun: Offset) -> tuple[dict[str, Position], dict[str, Position]]:
        """Each stream's position before the next batch, and its current end. New streams are read in full."""
        streams = {name: stream_of(self._options.place, name) for name in begun.streams}
        asked_for = streams_of(self.servers, self._options)
        streams |= asked_for
        starts, ends = {}, {}
        for name, stream in streams.items():
            since = begun.streams.get(name)
            is_new = self._target is not None and name not in self._target
            # The user has removed it from the option. A stream of a pattern is still checked for a loss.
            was_dropped = bool(self._options.streams) and name not in asked_for
            if is_new or was_dropped:
                if since is not None:
                    starts[name] = ends[name] = since
                continue
            state = state_of(self.servers, stream)
            starts[name] = self._checked(name, since, state)
            end = state.end
            if self._target is not None and self._target[name].id < end.id:
                end = self._target[name]
            # The start is in the future, or the stream is gone: the batch is empty.
            ends[name] = end if end.id > starts[name].id else (since or starts[name])
        return starts, ends

    def _checked(self, name: str, since: Position | None, state: StreamState) -> Position:
        """The position to read from. Raises: DataLoss, with failOnDataLoss."""
        if since is None:
            return state.beginning
        lost = None if since.n is None else lost_or_none(name, since, state)
        if lost is None:
            return since
        if self._options.fail_on_data_loss:
            raise DataLoss(loss_text(lost))
        log.warning("%s", lost)
        return state.beginning if state.last < since.id else Position(since.id, state.removed)

    def _limited(
        self, starts: dict[str, Position], ends: dict[str, Position], limit: int
    ) -> dict[str, Position]:
        """Move the ends back so that the batch has at most `limit` entries."""
        ranges = {name: range_between(starts[name], end) for name, end in ends.items()}
        waiting = {
            name: limit + 1 if ids.count is None else ids.count
            for name, ids in ranges.items()
            if not ids.is_empty
        }
        limited = dict(ends)
        for name, share in share_limit(waiting, limit).items():
            if share == 0:
                limited[name] = starts[name]
            elif share < waiting[name]:
                stream = stream_of(self._options.place, name)
                at = kth_id(self.servers, stream, ranges[name], share)
                n = starts[name].n
                if at is not None:
                    limited[name] = Position(at, None if n is None else n + share)
        return limited

    def _mirror(self, offset: Offset) -> None:
        """Set the position of the group, so that every tool can see the lag."""
        if not self._options.group:
            return
        for name, at in offset.streams.items():
            stream = stream_of(self._options.place, name)
            if name not in self._mirrored:
                in_use = group_in_use_or_none(self.servers, stream, self._options.group)
                if in_use is not None:
                    raise GroupInUse(in_use)
            if self._mirrored.get(name) != at:
                _set_group(self.servers, stream, self._options.group, at)
                self._mirrored[name] = at


def _set_group(servers: Servers, stream: StreamName, group: str, at: Position) -> None:
    read = () if at.n is None or at.id == SMALLEST else ("ENTRIESREAD", at.n)
    try:
        servers.ask(stream, "XGROUP", "SETID", stream.key, group, str(at.id), *read)
    except redis.ResponseError as error:
        if "NOGROUP" in str(error):
            servers.ask(stream, "XGROUP", "CREATE", stream.key, group, str(at.id), *read)
        elif "requires the key to exist" not in str(error):
            raise
