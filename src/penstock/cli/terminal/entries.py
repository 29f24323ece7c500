"""Entries together with the stream they were read from."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.client.replies import Fields, Reply, array, id_and_fields
from penstock.core.stream_id import StreamID


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """An entry and the stream it was read from."""

    stream: bytes
    id: StreamID
    fields: Fields


def entries(stream: bytes, reply: Reply) -> list[StreamEntry]:
    return [entry(stream, item) for item in array(reply)]


def entry(stream: bytes, reply: Reply) -> StreamEntry:
    return StreamEntry(stream, *id_and_fields(reply))
