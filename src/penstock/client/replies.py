"""Turns the replies of a server, as RESP2 carries them, into values.

redis-py would turn entries into dicts, and lose the order of fields and repeated fields. Every function here
raises UnexpectedReply, and nothing else, for a reply that does not have the expected shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from penstock.core import stream_id
from penstock.core.stream_id import StreamID
from penstock.errors import InvalidID, PenstockError

Reply: TypeAlias = "int | bytes | list[Reply] | None"
Fields = list[tuple[bytes, bytes]]

_SHOWN_CHARACTERS = 80
_NUMBER_BYTES_MAX = 20  # of -2**63, and of 2**64 - 1


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry. Its fields are in order and may repeat."""

    id: StreamID
    fields: Fields


class UnexpectedReply(PenstockError):
    """The server sent a reply that the command cannot have."""


def array(reply: Reply) -> list[Reply]:
    """The elements of an array. A null counts as an empty array."""
    if reply is None:
        return []
    if not isinstance(reply, list):
        raise _unexpected("an array", reply)
    return reply


def parts(reply: Reply, count: int) -> list[Reply]:
    """The first elements of an array. Later versions of a server may send more of them."""
    found = array(reply)
    if len(found) < count:
        raise _unexpected(f"an array of {count}", reply)
    return found[:count]


def blob(reply: Reply) -> bytes:
    if not isinstance(reply, bytes):
        raise _unexpected("a string", reply)
    return reply


def number(reply: Reply) -> int:
    """An integer. Some replies carry it as a string."""
    if isinstance(reply, int):
        return reply
    text = blob(reply)
    if len(text) > _NUMBER_BYTES_MAX:
        raise _unexpected("a number", reply)
    try:
        return int(text)
    except ValueError:
        raise _unexpected("a number", reply) from None


def number_or_none(reply: Reply) -> int | None:
    return None if reply is None else number(reply)


def identifier(reply: Reply) -> StreamID:
    try:
        return stream_id.parse(blob(reply))
    except InvalidID:
        raise _unexpected("a stream id", reply) from None


class NamedReplies(dict[str, Reply]):
    """Replies by name. Asking for a name that the server did not send raises UnexpectedReply."""

    def __missing__(self, name: str) -> Reply:
        raise UnexpectedReply(f"the server's reply has no {name}")


def mapping(reply: Reply) -> NamedReplies:
    """Names and values from a flat array, as RESP2 sends a map."""
    flat = array(reply)
    return NamedReplies(
        (blob(name).decode("utf-8", "backslashreplace"), value)
        for name, value in zip(flat[::2], flat[1::2], strict=False)
    )


def id_and_fields(reply: Reply) -> tuple[StreamID, Fields]:
    """The id and the fields of an entry."""
    halves = array(reply)
    if len(halves) != 2:
        raise _unexpected("an entry", reply)
    flat = [blob(item) for item in array(halves[1])]
    return identifier(halves[0]), list(zip(flat[::2], flat[1::2], strict=False))


def entry(reply: Reply) -> Entry:
    return Entry(*id_and_fields(reply))


def entries(reply: Reply) -> list[Entry]:
    """Entries, without the nulls that XCLAIM of old versions sends for deleted ones."""
    return [entry(item) for item in array(reply) if item is not None]


def _unexpected(wanted: str, reply: Reply) -> UnexpectedReply:
    return UnexpectedReply(f"the server sent {_shown(reply)} instead of {wanted}")


def _shown(reply: Reply) -> str:
    """The start of a reply. The whole may be too large, or nested too deeply, to be formatted."""
    if isinstance(reply, list):
        return f"an array of {len(reply)}"
    return str(reply[:_SHOWN_CHARACTERS] if isinstance(reply, bytes) else reply)
