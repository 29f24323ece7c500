"""Entries as the commands show them, and what client/replies.py has to read replies with."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.client.replies import (
    Fields,
    Reply,
    array,
    blob,
    id_and_fields,
    identifier,
    mapping,
    number,
    number_or_none,
)
from penstock.core.stream_id import StreamID

__all__ = [
    "Entry",
    "Reply",
    "array",
    "blob",
    "entries",
    "entry",
    "identifier",
    "mapping",
    "number",
    "number_or_none",
]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry and the stream it was read from."""

    stream: bytes
    id: StreamID
    fields: Fields


def entries(stream: bytes, reply: Reply) -> list[Entry]:
    return [entry(stream, item) for item in array(reply)]


def entry(stream: bytes, reply: Reply) -> Entry:
    return Entry(stream, *id_and_fields(reply))
