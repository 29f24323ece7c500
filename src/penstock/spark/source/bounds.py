"""From options to positions: which streams there are, and where reading begins and ends in each."""

from __future__ import annotations

from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from penstock.spark.connection import Servers, StreamName, text_of
from penstock.spark.source.offsets import Position
from penstock.spark.source.options import Bound, SourceOptions
from penstock.spark.source.planning import StreamState

EARLIEST = Bound("earliest")
LATEST = Bound("latest")


def streams_of(servers: Servers, options: SourceOptions) -> dict[str, StreamName]:
    """The streams that the options name at this moment, by the name that offsets give them."""
    if options.pattern:
        found = servers.matching(options.pattern)
    else:
        count = 1 if options.place.cluster else len(options.place.servers)
        keys = [name.encode("utf-8", "surrogateescape") for name in options.streams]
        found = [StreamName(key, number) for key in keys for number in range(count)]
    return {text_of(options.place, stream): stream for stream in found}


def start_position(bound: Bound, name: str, stream: StreamName, state: StreamState) -> Position:
    """Before the first entry that is to be read. `name`: how offsets name the stream."""
    first = _id_or_none(bound, (name, stream.text), missing_seq=0)
    if bound.word == "latest" or first == LARGEST:
        return state.end
    if first is None or first == SMALLEST:
        return state.beginning
    return _counted(first.previous(), state)


def end_position(bound: Bound, name: str, stream: StreamName, state: StreamState) -> Position:
    """At the last entry that is to be read."""
    if bound.word == "earliest":
        return state.beginning
    last = _id_or_none(bound, (name, stream.text), missing_seq=MAX64)
    if last is None or last >= state.last:
        return state.end
    return _counted(last, state)


def _id_or_none(bound: Bound, names: tuple[str, str], missing_seq: int) -> StreamID | None:
    """The id that was asked for, if one was: for the stream of one server, or for all of that key."""
    if bound.moment_ms is not None:
        return StreamID(bound.moment_ms, missing_seq)
    return next((bound.ids[name] for name in names if name in bound.ids), None)


def _counted(at: StreamID, state: StreamState) -> Position:
    """With the number of entries up to an id, where the ends of the stream tell it."""
    if at == state.last:
        return state.end
    if state.first is not None and at < state.first:
        return state.beginning
    return Position(at)
