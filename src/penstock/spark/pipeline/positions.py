"""Positions: up to which entry of each source stream a target has the data.

Spark writes the end of a batch to the checkpoint before the batch runs:

    CHECKPOINT/offsets/7    a version, then JSON: the watermark, and the offset of the source
    CHECKPOINT/commits/7    the batch has finished

A target may be ahead of the commits: it has a batch, and the driver died before Spark noted it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.core.stream_id import LARGEST, StreamID, parse
from penstock.spark.lake.local_files import TextFiles
from penstock.spark.source.offsets import Offset, OffsetError, parse_offset

Ids = Mapping[str, str]  # the last id of each stream


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """A batch in the log of a checkpoint."""

    end: Offset
    watermark_ms: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The log of a query."""

    files: TextFiles
    path: str

    @property
    def query(self) -> str | None:
        """The id of the query, or None if it never ran."""
        try:
            return str(json.loads(self.files.read(f"{self.path}/metadata"))["id"])
        except FileNotFoundError:
            return None

    @property
    def committed(self) -> int:
        """The last batch that Spark has finished, -1 if there is none."""
        return self._last("commits")

    @property
    def planned(self) -> int:
        """The last batch that was ever planned, -1 if there is none. It may have run in part."""
        return self._last("offsets")

    @property
    def is_used(self) -> bool:
        """Whether a batch was ever planned."""
        return self.planned >= 0

    def batch(self, number: int) -> LoggedBatch | None:
        """A batch of the log, or None. Raises: OffsetError."""
        path = f"{self.path}/offsets/{number}"
        try:
            lines = self.files.read(path).split("\n")
        except FileNotFoundError:
            return None
        try:
            parts = [json.loads(line) for line in lines[1:] if line.startswith("{")]
            return LoggedBatch(parse_offset(parts[-1]), int(parts[0]["batchWatermarkMs"]))
        except (ValueError, KeyError, IndexError, TypeError):
            raise OffsetError(f"{path} cannot be read: it may be damaged") from None

    def added_at(self, stream: str, entry_id: StreamID) -> int | None:
        """How many entries a stream had up to an id at which a batch ended, or None if none ended there."""
        numbers = (name for name in self.files.names(f"{self.path}/offsets") if name.isdigit())
        for number in sorted(map(int, numbers), reverse=True):
            logged = self.batch(number)
            at = None if logged is None else logged.end.streams.get(stream)
            if at is not None and at.id == entry_id:
                return at.n
        return None

    def _last(self, log: str) -> int:
        names = self.files.names(f"{self.path}/{log}")
        return max((int(name) for name in names if name.isdigit()), default=-1)


def ids_of(offset: Offset) -> dict[str, str]:
    """The last id of each stream."""
    return {name: str(at.id) for name, at in sorted(offset.streams.items())}


def has_all(position: Ids, end: Offset) -> bool:
    """Whether a position is at or after the end of a batch."""
    at = {name: parse(one.encode()) for name, one in position.items()}
    return all(name in at and one.id <= at[name] for name, one in end.streams.items())


def furthest(positions: Iterable[Ids]) -> dict[str, str]:
    """Each stream at its largest position."""
    found: dict[str, StreamID] = {}
    for position in positions:
        for name, text in position.items():
            one = parse(text.encode())
            found[name] = max(one, found.get(name, one))
    return {name: str(one) for name, one in sorted(found.items())}


def after(position: Ids) -> dict[str, str]:
    """The ids that follow a position, to start a read there."""
    ids = {name: parse(one.encode()) for name, one in position.items()}
    return {name: str(one if one == LARGEST else one.next()) for name, one in ids.items()}
