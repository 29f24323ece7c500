"""Turns options into positions: which streams to read, and where the read of each starts and ends."""

from __future__ import annotations

from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from penstock.spark.connection import Servers, StreamName, text_of
from penstock.spark.source.offsets import Position
from penstock.spark.source.options import Bound, SourceOptions
from penstock.spark.source.planning import StreamState

EARLIEST = Bound("earliest")
LATEST = Bound("latest")


def streams_of(servers: Servers, options: SourceOptions) -> dict[str, StreamName]:
    """The streams that the options select now, by their names in offsets."""
    if options.pattern:
        found = servers.matching(options.pattern)
    else:
        count = 1 if options.place.cluster else len(options.place.servers)
        keys = [name.encode("utf-8", "surrogateescape") for name in options.streams]
        found = [StreamName(key, number) for key in keys for number in range(count)]
    return {text_of(options.place, stream): stream for stream in found}


def start_position(bound: Bound, name: str, stream: StreamName, state: StreamState) -> Position:
    """The position before the first entry to read. `name` is the stream's name in offsets."""
    first = _id_or_none(bound, (name, stream.text), missing_seq=0)
    if bound.word == "latest" or first == LARGEST:
        return state.end
    if first is None or first == SMALLEST:
        return state.beginning
    return _counted(first.previous(), state)


def end_position(bound: Bound, name: str, stream: StreamName, state: StreamState) -> Position:
    """The position of the last entry to read."""
    if bound.word == "earliest":
        return state.beginning
    last = _id_or_none(bound, (name, stream.text), missing_seq=MAX64)
    if last is None or last >= state.last:
        return state.end
    return _counted(last, state)


def _id_or_none(bound: Bound, names: tuple[str, str], missing_seq: int) -> StreamID | None:
    """The id in the options, if there is one: for the stream of one server, or for the key on all servers."""
    if bound.moment_ms is not None:
        return StreamID(bound.moment_ms, missing_seq)
    return next((bound.ids[name] for name in names if name in bound.ids), None)


def _counted(at: StreamID, state: StreamState) -> Position:
    """A position, with its entry count if it is at either end of the stream."""
    if at == state.last:
        return state.end
    if state.first is not None and at < state.first:
        return state.beginning
    return Position(at)
