"""The keys that the clients of a server which may be killed work on, and all their data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.support.servers.raw_redis import RawRedis

GROUPS = (b"g", b"h")
TRIMMED = b"s2"  # trimmed; in the other streams entries are deleted by id
STREAMS = [b"s0", b"s1", TRIMMED]
LISTS = [b"l0", b"l1"]

Number = tuple[int, int]  # an id as a comparable value
Place = tuple[bytes, bytes]  # a stream and an id
Record = tuple[bytes, bytes, bytes]  # a stream, a group and an id
Owned = tuple[bytes, int]  # a consumer, empty if the entry was returned, and the delivery count
Settings = tuple[
    int, int
]  # how long the names of messages are remembered, in seconds, and how many


def id_number(text: bytes) -> Number:
    """An id as a comparable value."""
    ms, seq = text.split(b"-")
    return int(ms), int(seq)


def fields_of(token: bytes, size: int) -> list[bytes]:
    """An entry with its token twice and a payload between."""
    return [b"token", token, b"load", token[:1] * size, b"again", token]


def token_of(fields: list[bytes]) -> bytes:
    """The token of an entry, which must be as made by fields_of."""
    token = fields[1]
    assert fields == fields_of(token, len(fields[3])), fields
    return token


def records_of(place: Place) -> list[Record]:
    """The records that an entry may have, one for each group."""
    return [(place[0], group, place[1]) for group in GROUPS]


@dataclass(slots=True)
class State:
    """The data of a server: entries by token, pending entries, last ids, names of messages, lists."""

    entries: dict[Place, bytes] = field(default_factory=dict)
    pending: dict[Record, Owned] = field(default_factory=dict)
    tops: dict[bytes, Number] = field(default_factory=dict)
    read_up_to: dict[tuple[bytes, bytes], Number] = field(default_factory=dict)
    settings: dict[bytes, Settings] = field(default_factory=dict)
    names: dict[bytes, int] = field(default_factory=dict)  # a stream: how many it remembers
    lists: dict[bytes, list[bytes]] = field(default_factory=dict)

    def first_of_trimmed(self) -> Number:
        """The first id of the stream that is trimmed; a large one if it is empty."""
        ids = [id_number(text) for stream, text in self.entries if stream == TRIMMED]
        return min(ids, default=(2**64, 0))


def load_state(port: int) -> State:
    """Read all data of a server."""
    state = State()
    with RawRedis(port) as client:
        for stream in STREAMS:
            _load_stream(client, stream, state)
        lists = client.ask([[b"LRANGE", key, b"0", b"-1"] for key in LISTS])
        state.lists = dict(zip(LISTS, lists, strict=True))
    return state


def _load_stream(client: RawRedis, stream: bytes, state: State) -> None:
    entries, info, groups = client.ask(
        [
            [b"XRANGE", stream, b"-", b"+"],
            [b"XINFO", b"STREAM", stream],
            [b"XINFO", b"GROUPS", stream],
        ]
    )
    for entry_id, fields in entries:
        state.entries[stream, entry_id] = token_of(fields)
    facts = _named(info)
    state.tops[stream] = id_number(facts[b"last-generated-id"])
    state.settings[stream] = (facts[b"idmp-duration"], facts[b"idmp-maxsize"])
    state.names[stream] = facts[b"iids-tracked"]
    assert facts[b"length"] == len(entries)
    for group, facts in zip(GROUPS, map(_named, groups), strict=True):
        [rows] = client.ask([[b"XPENDING", stream, group, b"-", b"+", b"1000000"]])
        for entry_id, consumer, _, count in rows:
            state.pending[stream, group, entry_id] = (consumer, count)
        state.read_up_to[stream, group] = id_number(facts[b"last-delivered-id"])
        assert facts[b"pending"] == len(rows)


def _named(pairs: Iterable[Any]) -> dict[bytes, Any]:
    flat = list(pairs)
    return dict(zip(flat[::2], flat[1::2], strict=True))
