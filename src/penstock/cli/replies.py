"""The replies of a server, as RESP2 carries them, turned into values with names.

redis-py would make dicts of entries, and lose the order and the repetition of fields; so we read the
replies ourselves. A reply of another shape is the server's mistake, and said so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from penstock.cli.outcome import Failure
from penstock.core import stream_id
from penstock.core.stream_id import StreamID
from penstock.errors import CommandError

Reply: TypeAlias = "int | bytes | list[Reply] | None"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry and the stream it was read from."""

    stream: bytes
    id: StreamID
    fields: list[tuple[bytes, bytes]]


def array(reply: Reply) -> list[Reply]:
    """The elements; none for a null."""
    if reply is None:
        return []
    if not isinstance(reply, list):
        raise _surprise("an array", reply)
    return reply


def blob(reply: Reply) -> bytes:
    if not isinstance(reply, bytes):
        raise _surprise("a string", reply)
    return reply


def number(reply: Reply) -> int:
    """An integer, which some replies carry as a string."""
    try:
        return int(blob(reply)) if isinstance(reply, bytes) else _integer(reply)
    except ValueError:
        raise _surprise("a number", reply) from None


def number_or_none(reply: Reply) -> int | None:
    return None if reply is None else number(reply)


def identifier(reply: Reply) -> StreamID:
    try:
        return stream_id.parse(blob(reply))
    except CommandError:
        raise _surprise("a stream id", reply) from None


def mapping(reply: Reply) -> dict[str, Reply]:
    """Names and values that came as one flat array."""
    flat = array(reply)
    return {
        blob(name).decode("utf-8", "backslashreplace"): value
        for name, value in zip(flat[::2], flat[1::2], strict=False)
    }


def entries(stream: bytes, reply: Reply) -> list[Entry]:
    return [entry(stream, item) for item in array(reply)]


def entry(stream: bytes, reply: Reply) -> Entry:
    parts = array(reply)
    if len(parts) != 2:
        raise _surprise("an entry", reply)
    flat = [blob(item) for item in array(parts[1])]
    return Entry(stream, identifier(parts[0]), list(zip(flat[::2], flat[1::2], strict=False)))


def _integer(reply: Reply) -> int:
    if not isinstance(reply, int):
        raise _surprise("a number", reply)
    return reply


def _surprise(wanted: str, reply: Reply) -> Failure:
    return Failure(f"the server answered {str(reply)[:80]} where {wanted} was due")
