"""Offsets: how far a query has come, as JSON in Spark's checkpoint.

    exclusive   {"version": 1, "streams": {"orders": {"id": "1700000000000-3", "n": 4}}}
    shared      {"version": 1, "consumer": "spark-5f0c", "batch": 7,
                 "claimed": {"orders": {"ids": ["1-0", "2-0"], "deliveries": {"1-0": 3}}}}

`id` is the last entry that was read (0-0: none), so a batch is what lies behind one offset up to and
including the next. `n` counts the entries that were ever added to the stream up to that id; it says how
many a trim has taken, and gives the group its lag. null: not known.

In mode shared a batch is the very entries that the query's consumer was given: what is claimed from
others lies anywhere. `deliveries` has those that were delivered more than once. `batch` makes every
offset different from the last.

Version 1 is all there has been. A later version must read these: tests/fixtures/offsets has one of each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.core.stream_id import SMALLEST, StreamID, parse
from penstock.errors import InvalidID, PenstockError

VERSION = 1


class OffsetError(PenstockError):
    """A checkpoint that this version cannot go on from."""


@dataclass(frozen=True, slots=True)
class Position:
    """The last id that was read, and how many entries were ever added up to it, if that is known."""

    id: StreamID = SMALLEST
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Offset:
    """Positions by the name that offsets give a stream."""

    streams: dict[str, Position]

    def to_json(self) -> dict[str, Any]:
        """What Spark keeps."""
        streams = {name: {"id": str(at.id), "n": at.n} for name, at in sorted(self.streams.items())}
        return {"version": VERSION, "streams": streams}


@dataclass(frozen=True, slots=True)
class Claim:
    """Entries of one stream that the consumer holds, in the order of their ids."""

    ids: tuple[str, ...]
    deliveries: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SharedOffset:
    """One batch of mode shared: who reads, and what."""

    consumer: str
    batch: int
    claimed: dict[str, Claim]

    def to_json(self) -> dict[str, Any]:
        """What Spark keeps."""
        claimed = {
            name: {"ids": list(claim.ids), "deliveries": claim.deliveries}
            for name, claim in sorted(self.claimed.items())
        }
        head = {"version": VERSION, "consumer": self.consumer, "batch": self.batch}
        return {**head, "claimed": claimed}


def parse_offset(given: dict[str, Any]) -> Offset:
    """Read what `Offset.to_json` made. Raises: OffsetError."""
    _check_version(given, "streams", "exclusive")
    try:
        return Offset({name: _position(at) for name, at in given["streams"].items()})
    except (KeyError, TypeError, AttributeError, InvalidID):
        raise _unreadable(given) from None


def parse_shared_offset(given: dict[str, Any]) -> SharedOffset:
    """Read what `SharedOffset.to_json` made. Raises: OffsetError."""
    _check_version(given, "claimed", "shared")
    try:
        claimed = {
            name: Claim(tuple(claim["ids"]), dict(claim["deliveries"]))
            for name, claim in given["claimed"].items()
        }
        return SharedOffset(str(given["consumer"]), int(given["batch"]), claimed)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise _unreadable(given) from None


def _position(given: dict[str, Any]) -> Position:
    n = given["n"]
    if not (n is None or isinstance(n, int)):
        raise TypeError("n is no number")
    return Position(parse(given["id"].encode()), n)


def _check_version(given: dict[str, Any], needed: str, mode: str) -> None:
    if given.get("version") != VERSION:
        raise OffsetError(
            f"the checkpoint's offset has version {given.get('version')!r}; this penstock reads"
            f" version {VERSION}: use the penstock that wrote it, or a new checkpoint"
        )
    if needed not in given:
        raise OffsetError(
            f"the checkpoint was not written in mode {mode}: a query cannot change its mode; use"
            " the old mode or a new checkpoint"
        )


def _unreadable(given: dict[str, Any]) -> OffsetError:
    return OffsetError(f"the checkpoint's offset is damaged: {str(given)[:200]}")
