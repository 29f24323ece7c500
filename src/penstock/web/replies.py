"""Entries and refusals, and what client/replies.py has to read replies with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from penstock.client.replies import (
    Fields,
    Reply,
    UnexpectedReply,
    array,
    blob,
    id_and_fields,
    identifier,
    mapping,
    number,
    number_or_none,
)
from penstock.core.stream_id import StreamID
from penstock.errors import PenstockError

__all__ = [
    "Entry",
    "Refused",
    "Reply",
    "UnexpectedReply",
    "Word",
    "array",
    "blob",
    "entries",
    "entry",
    "identifier",
    "mapping",
    "number",
    "number_or_none",
]

Word: TypeAlias = str | bytes | int


class Refused(PenstockError):
    """The server, or the dashboard itself, will not do it; the text is for the user."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry, its fields in order and with repetitions."""

    id: StreamID
    fields: Fields


def entries(reply: Reply) -> list[Entry]:
    """Entries; a null among them, which XCLAIM of old versions sends, is left out."""
    return [entry(item) for item in array(reply) if item is not None]


def entry(reply: Reply) -> Entry:
    return Entry(*id_and_fields(reply))
