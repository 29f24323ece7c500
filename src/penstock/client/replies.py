"""The replies of a server, as RESP2 carries them, turned into values. Terminal and dashboard read them so.

redis-py would make dicts of entries, and lose the order and the repetition of fields. A reply of another
shape than expected is the server's mistake, and said so: no reply, whatever it is, raises anything else than
UnexpectedReply here.
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
    """An entry, its fields in order and with repetitions."""

    id: StreamID
    fields: Fields


class UnexpectedReply(PenstockError):
    """The server answered what the command cannot answer."""


def array(reply: Reply) -> list[Reply]:
    """The elements; none for a null."""
    if reply is None:
        return []
    if not isinstance(reply, list):
        raise _surprise("an array", reply)
    return reply


def parts(reply: Reply, count: int) -> list[Reply]:
    """The elements of an array that has a fixed number of them, or more in later versions."""
    found = array(reply)
    if len(found) < count:
        raise _surprise(f"an array of {count}", reply)
    return found[:count]


def blob(reply: Reply) -> bytes:
    if not isinstance(reply, bytes):
        raise _surprise("a string", reply)
    return reply


def number(reply: Reply) -> int:
    """An integer, which some replies carry as a string."""
    if isinstance(reply, int):
        return reply
    text = blob(reply)
    if len(text) > _NUMBER_BYTES_MAX:
        raise _surprise("a number", reply)
    try:
        return int(text)
    except ValueError:
        raise _surprise("a number", reply) from None


def number_or_none(reply: Reply) -> int | None:
    return None if reply is None else number(reply)


def identifier(reply: Reply) -> StreamID:
    try:
        return stream_id.parse(blob(reply))
    except InvalidID:
        raise _surprise("a stream id", reply) from None


class Members(dict[str, Reply]):
    """Names and values. A name that is missing is the server's mistake."""

    def __missing__(self, name: str) -> Reply:
        raise UnexpectedReply(f"the server's answer has no {name}")


def mapping(reply: Reply) -> Members:
    """Names and values that came as one flat array."""
    flat = array(reply)
    return Members(
        (blob(name).decode("utf-8", "backslashreplace"), value)
        for name, value in zip(flat[::2], flat[1::2], strict=False)
    )


def id_and_fields(reply: Reply) -> tuple[StreamID, Fields]:
    """What an entry is made of."""
    halves = array(reply)
    if len(halves) != 2:
        raise _surprise("an entry", reply)
    flat = [blob(item) for item in array(halves[1])]
    return identifier(halves[0]), list(zip(flat[::2], flat[1::2], strict=False))


def entry(reply: Reply) -> Entry:
    return Entry(*id_and_fields(reply))


def entries(reply: Reply) -> list[Entry]:
    """Entries; a null among them, which XCLAIM of old versions sends, is left out."""
    return [entry(item) for item in array(reply) if item is not None]


def _surprise(wanted: str, reply: Reply) -> UnexpectedReply:
    return UnexpectedReply(f"the server answered {_shown(reply)} where {wanted} was due")


def _shown(reply: Reply) -> str:
    """The beginning of a reply; it may be too large, or too deep, to be written out first."""
    if isinstance(reply, list):
        return f"an array of {len(reply)}"
    return str(reply[:_SHOWN_CHARACTERS] if isinstance(reply, bytes) else reply)
