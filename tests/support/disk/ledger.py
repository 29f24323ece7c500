"""Records what clients of a server that may be killed sent, and which replies they got.

    told      got a reply (an id, entries, a number): must survive any crash
    asked     sent, but the connection broke before the reply: may be applied or not, but only as a whole

Every entry carries a unique token, so that each entry can be traced to its writer. An entry is delivered to
one reader, claimed by only one clerk (otherwise the order of two claims would be unknown), and acknowledged
by any client. So its state follows from the replies, whatever the order of the threads.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.support.servers.raw_redis import RawRedis

GROUP = b"g"
STREAMS = [b"s0", b"s1"]

Place = tuple[bytes, bytes]  # a stream and an id
Owned = tuple[bytes, int]  # a consumer and the delivery count


def id_number(text: bytes) -> tuple[int, int]:
    """An id as a comparable value."""
    ms, seq = text.split(b"-")
    return int(ms), int(seq)


@dataclass(slots=True)
class Unit:
    """What a writer sent at once: all of it is applied, or nothing."""

    tokens: list[tuple[bytes, bytes]]  # stream, token


@dataclass(slots=True)
class Ledger:
    """Filled by the threads of tests/support/disk/workload, and settled between two crashes."""

    added: dict[Place, bytes] = field(default_factory=dict)
    deleted: set[Place] = field(default_factory=set)
    delivered: dict[Place, bytes] = field(default_factory=dict)
    claimed: dict[Place, Owned] = field(default_factory=dict)
    acked: set[Place] = field(default_factory=set)
    floor: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    asked_adds: dict[str, list[Unit]] = field(default_factory=lambda: defaultdict(list))
    asked_deletes: set[Place] = field(default_factory=set)
    asked_acks: set[Place] = field(default_factory=set)
    asked_claims: dict[Place, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    asked_sweeps: set[Place] = field(default_factory=set)  # a stream and a consumer
    asked_reads: set[Place] = field(default_factory=set)  # the same

    def owned(self, place: Place) -> Owned:
        """The owner and the delivery count of a pending entry."""
        return self.claimed.get(place) or (self.delivered[place], 1)

    def pending(self) -> dict[Place, Owned]:
        """What must be pending according to the replies."""
        places = {*self.delivered, *self.claimed} - self.acked
        return {place: self.owned(place) for place in places}

    def check_and_settle(self, port: int) -> None:
        """Compare a server with the replies. Requests without a reply count as found from now on."""
        found = load_state(port)
        self._check_entries(found)
        self._check_pending(found)
        self._check_ids(found)
        self.added = dict(found.entries)
        self.deleted |= self.asked_deletes - found.entries.keys()
        self.acked |= self.asked_acks - found.pending.keys()
        for place, (consumer, count) in found.pending.items():
            self.delivered.setdefault(place, consumer)
            self.claimed[place] = (consumer, count)
        self.asked_adds.clear()
        self.asked_claims.clear()
        for asked in (self.asked_deletes, self.asked_acks, self.asked_sweeps, self.asked_reads):
            asked.clear()

    def _check_entries(self, found: State) -> None:
        tokens = [(stream, token) for (stream, _), token in found.entries.items()]
        there = set(tokens)
        assert len(there) == len(tokens), "an entry is there twice"
        for place, token in self.added.items():
            if place in self.deleted:
                assert place not in found.entries, f"{place} was deleted and is back"
            elif place not in self.asked_deletes:
                assert found.entries.get(place) == token, f"{place} was acknowledged and is lost"
        asked = {token for units in self.asked_adds.values() for u in units for token in u.tokens}
        for place, token in found.entries.items():
            known = self.added.get(place) == token or (place[0], token) in asked
            assert known, f"{place} {token!r} was never asked for"
        for writer, units in self.asked_adds.items():
            whole = [self._is_there(unit, there) for unit in units]
            assert whole == sorted(whole, reverse=True), (
                f"{writer}: a later write without an earlier"
            )

    @staticmethod
    def _is_there(unit: Unit, there: set[tuple[bytes, bytes]]) -> bool:
        found = [token in there for token in unit.tokens]
        assert all(found) or not any(found), f"half of {unit} is there"
        return all(found)

    def _check_pending(self, found: State) -> None:
        for place in self.acked:
            assert place not in found.pending, f"{place} was acknowledged and is pending again"
        expected = self.pending()
        for place, owned in expected.items():
            if place in found.pending:
                allowed = {owned, *self._asked_for(place, owned)}
                assert found.pending[place] in allowed, (place, found.pending[place], allowed)
            else:
                assert place in self.asked_acks, (
                    f"{place} was delivered to {owned} and is not pending"
                )
        for place, owned in found.pending.items():
            if place not in expected:
                readers = [reader for stream, reader in self.asked_reads if stream == place[0]]
                first = {(reader, 1) for reader in readers}
                allowed = {*first, *(o for one in first for o in self._asked_for(place, one))}
                assert owned in allowed, f"{place} is pending for {owned}, which nobody asked for"

    def _asked_for(self, place: Place, owned: Owned) -> list[Owned]:
        """The states that unanswered claims may have produced."""
        sweepers = [consumer for stream, consumer in self.asked_sweeps if stream == place[0]]
        claimers = [*self.asked_claims.get(place, []), *sweepers]
        return [(claimer, owned[1] + more) for claimer in claimers for more in (0, 1)]

    def _check_ids(self, found: State) -> None:
        for stream, top in found.tops.items():
            assert top >= self.floor.get(stream, (0, 0)), f"the last id of {stream!r} went back"
            self.floor[stream] = top
        for stream, text in [*self.added, *self.deleted]:
            assert id_number(text) <= found.tops[stream], f"{text!r} is above the last id"
        for stream, text in self.delivered:
            assert id_number(text) <= found.read_up_to[stream], f"{text!r} would be delivered again"


@dataclass(slots=True)
class State:
    """The data of a server: entries by token, pending entries, last ids."""

    entries: dict[Place, bytes] = field(default_factory=dict)
    pending: dict[Place, Owned] = field(default_factory=dict)
    tops: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    read_up_to: dict[bytes, tuple[int, int]] = field(default_factory=dict)


def load_state(port: int) -> State:
    """Read all data of a server."""
    state = State()
    with RawRedis(port) as client:
        for stream in STREAMS:
            entries, rows, info, groups = client.ask(
                [
                    [b"XRANGE", stream, b"-", b"+"],
                    [b"XPENDING", stream, GROUP, b"-", b"+", b"1000000"],
                    [b"XINFO", b"STREAM", stream],
                    [b"XINFO", b"GROUPS", stream],
                ]
            )
            for entry_id, fields in entries:
                state.entries[stream, entry_id] = token_of(fields)
            for entry_id, consumer, _, count in rows:
                state.pending[stream, entry_id] = (consumer, count)
            state.tops[stream] = id_number(_named(info)[b"last-generated-id"])
            state.read_up_to[stream] = id_number(_named(groups[0])[b"last-delivered-id"])
            assert _named(info)[b"length"] == len(entries)
            assert _named(groups[0])[b"pending"] == len(rows)
    return state


def fields_of(token: bytes, size: int) -> list[bytes]:
    """An entry with its token twice and a payload between."""
    return [b"token", token, b"load", token[:1] * size, b"again", token]


def token_of(fields: list[bytes]) -> bytes:
    """The token of an entry, which must be as made by fields_of."""
    token = fields[1]
    assert fields == fields_of(token, len(fields[3])), fields
    return token


def _named(pairs: list[Any]) -> dict[bytes, Any]:
    return dict(zip(pairs[::2], pairs[1::2], strict=True))
