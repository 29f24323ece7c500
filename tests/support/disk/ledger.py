"""Records what clients of a server that may be killed sent, and which replies they got.

    told      got a reply (an id, entries, a number): must survive any crash
    asked     sent, but the connection broke before the reply: may be applied or not, but only as a whole

Every entry carries a unique token, so that each entry can be traced to its writer. In a group, an entry is
delivered to one reader, claimed and returned only by the clerk (otherwise the order of two claims would be
unknown), and acknowledged by any client. Only its reader in the first group deletes it by id. One client
trims, one sends messages under names, one edits lists. So the state follows from the replies, whatever the
order of the threads.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tests.support.disk.names import Message, Names
from tests.support.disk.server_state import (
    LISTS,
    STREAMS,
    TRIMMED,
    Number,
    Owned,
    Place,
    Record,
    Settings,
    State,
    id_number,
    load_state,
    records_of,
)
from tests.support.servers.raw_redis import RawRedis

COUNT_MAX = 2**63 - 1


@dataclass(slots=True)
class Unit:
    """What a writer sent at once: all of it is applied, or nothing."""

    tokens: list[tuple[bytes, bytes]]  # stream, token


@dataclass(slots=True)
class Trim:
    """A trim: KEEPREF, DELREF or ACKED, and the token of the entry that was added with it."""

    option: bytes
    token: bytes | None


@dataclass(slots=True)
class Ledger:
    """Filled by the clients of tests/support/disk/workload, and settled between two crashes."""

    added: dict[Place, bytes] = field(default_factory=dict)
    deleted: set[Place] = field(default_factory=set)
    trimmed_count: int = 0  # the entries that trims have removed since the last crash
    trimmed_up_to: Number = (0, 0)  # no entry below this id is left in the stream that is trimmed,
    forgotten_up_to: Number = (0, 0)  # and none of its records below this one
    delivered: dict[Record, bytes] = field(default_factory=dict)
    claimed: dict[Record, Owned] = field(default_factory=dict)
    acked: set[Record] = field(default_factory=set)  # or removed with their entry
    floor: dict[bytes, Number] = field(default_factory=dict)
    names: dict[bytes, Names] = field(default_factory=lambda: {s: Names() for s in STREAMS})
    lists: dict[bytes, list[bytes]] = field(default_factory=lambda: {key: [] for key in LISTS})
    asked_adds: dict[str, list[Unit]] = field(default_factory=lambda: defaultdict(list))
    asked_deletes: dict[Place, bytes] = field(default_factory=dict)  # KEEPREF, DELREF or ACKED
    asked_trim: Trim | None = None
    asked_acks: set[Record] = field(default_factory=set)
    asked_claims: dict[Record, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    asked_returns: dict[Record, bytes] = field(default_factory=dict)  # SILENT, FAIL or FATAL
    asked_sweeps: set[Record] = field(default_factory=set)  # a stream, a group and a consumer
    asked_reads: set[Record] = field(default_factory=set)  # the same
    asked_message: Message | None = None
    asked_settings: tuple[bytes, Settings] | None = None
    asked_lists: dict[bytes, list[bytes]] | None = None  # as they are if the command was applied

    # --- For the clients -----------------------------------------------------------------------------

    def count_of(self, record: Record) -> int:
        """The delivery count of a pending entry."""
        return self.claimed[record][1] if record in self.claimed else 1

    def is_free(self, place: Place) -> bool:
        """Tell whether every group may have read and acknowledged an entry."""
        return all(
            record in self.acked or record in self.asked_acks for record in records_of(place)
        )

    def is_doomed(self, place: Place) -> bool:
        """Tell whether some client has removed an entry, or is about to."""
        if place[0] == TRIMMED:
            return self.asked_trim is not None or id_number(place[1]) < self.trimmed_up_to
        return place in self.deleted or place in self.asked_deletes

    def note_deleted(self, place: Place, option: bytes) -> None:
        """An entry was deleted by id."""
        assert option != b"ACKED" or self.is_free(place), f"{place} is needed and was deleted"
        self.deleted.add(place)
        if option == b"DELREF":
            self.acked.update(records_of(place))

    # --- After a crash -------------------------------------------------------------------------------

    def pending(self) -> dict[Record, Owned]:
        """What must be pending according to the replies."""
        return {
            record: self.claimed.get(record) or (self.delivered[record], 1)
            for record in {*self.delivered, *self.claimed} - self.acked
            if record[0] != TRIMMED or id_number(record[2]) >= self.forgotten_up_to
        }

    def check_and_settle(self, port: int) -> None:
        """Compare a server with the replies. Requests without a reply count as found from now on."""
        found = load_state(port)
        self._check_entries(found)
        self._check_trims(found)
        self._check_pending(found)
        self._check_removals(found)
        self._check_ids(found)
        self._check_names(found)
        assert found.lists in (self.lists, self.asked_lists), (found.lists, self.lists)
        self._settle(found)
        self._send_again(port)

    def _settle(self, found: State) -> None:
        self.deleted |= self.asked_deletes.keys() - found.entries.keys()
        self.acked |= self.pending().keys() - found.pending.keys()
        self.added = dict(found.entries)
        self.trimmed_count = 0
        self.lists = found.lists
        for record, owned in found.pending.items():
            self.delivered.setdefault(record, owned[0])
            self.claimed[record] = owned
        self.asked_adds.clear()
        self.asked_deletes.clear()
        self.asked_claims.clear()
        self.asked_returns.clear()
        self.asked_trim = self.asked_settings = self.asked_lists = None
        for asked in (self.asked_acks, self.asked_sweeps, self.asked_reads):
            asked.clear()

    def _check_entries(self, found: State) -> None:
        tokens = [(stream, token) for (stream, _), token in found.entries.items()]
        there = set(tokens)
        assert len(there) == len(tokens), "an entry is there twice"
        for place, token in self.added.items():
            if place in found.entries:
                assert found.entries[place] == token, place
                assert place not in self.deleted, f"{place} was deleted and is back"
            elif place[0] != TRIMMED:
                doomed = place in self.deleted or place in self.asked_deletes
                assert doomed, f"{place} was acknowledged and is lost"
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

    def _gone(self, found: State) -> list[Place]:
        """The entries that are no longer in the stream that is trimmed."""
        return [p for p in self.added if p[0] == TRIMMED and p not in found.entries]

    def _trim_was_applied(self, found: State) -> bool:
        """Tell whether a trim without a reply has removed something."""
        return len(self._gone(found)) > self.trimmed_count

    def _check_trims(self, found: State) -> None:
        first = found.first_of_trimmed()
        assert first >= self.trimmed_up_to, "an entry was trimmed and is back"
        gone = self._gone(found)
        asked = self.asked_trim
        if asked is None or (
            asked.token is not None and (TRIMMED, asked.token) not in _tokens(found)
        ):
            assert len(gone) == self.trimmed_count, "entries were trimmed and are back, or are lost"
        assert len(gone) >= self.trimmed_count, "entries were trimmed and are back"
        for place in gone:
            if asked is not None and asked.option != b"ACKED" and id_number(place[1]) < first:
                continue
            trimmed = id_number(place[1]) < self.trimmed_up_to or self.is_free(place)
            assert trimmed, f"{place} was acknowledged and is lost, or was trimmed and is needed"

    def _check_pending(self, found: State) -> None:
        for stream, group, text in found.pending:
            record = (stream, group, text)
            assert record not in self.acked, f"{record} was acknowledged and is pending again"
            if stream == TRIMMED:
                assert id_number(text) >= self.forgotten_up_to, f"{record} was forgotten"
        expected = self.pending()
        for record, owned in expected.items():
            if record in found.pending:
                allowed = {owned, *self._asked_for(record, owned)}
                assert found.pending[record] in allowed, (record, found.pending[record], allowed)
            else:
                is_there = "there" if (record[0], record[2]) in found.entries else "gone"
                assert self._may_be_gone(record, found), (
                    f"{record} was delivered to {owned} and is not pending; its entry is {is_there}"
                    f" ({self.asked_trim}, {len(self._gone(found))} of {self.trimmed_count} trimmed)"
                )
        for record, owned in found.pending.items():
            if record not in expected:
                readers = [reader for *at, reader in self.asked_reads if at == [*record[:2]]]
                first = {(reader, 1) for reader in readers}
                allowed = {*first, *(o for one in first for o in self._asked_for(record, one))}
                assert owned in allowed, f"{record} is pending for {owned}, which nobody asked for"

    def _asked_for(self, record: Record, owned: Owned) -> list[Owned]:
        """The states that unanswered claims and returns may have produced."""
        sweepers = [consumer for *at, consumer in self.asked_sweeps if at == [*record[:2]]]
        claimers = [*self.asked_claims.get(record, []), *sweepers]
        states = [(who, min(owned[1] + more, COUNT_MAX)) for who in claimers for more in (0, 1)]
        if record in self.asked_returns:
            states.append((b"", count_after(self.asked_returns[record], owned[1])))
        return states

    def _may_be_gone(self, record: Record, found: State) -> bool:
        """Tell whether a request without a reply may have removed a record."""
        stream, group, text = record
        if record in self.asked_acks:
            return True
        if (stream, text) in found.entries:
            return False
        if self.asked_deletes.get((stream, text)) == b"DELREF":
            return True
        if stream == TRIMMED and self.asked_trim is not None and self._trim_was_applied(found):
            return self.asked_trim.option == b"DELREF"
        # A claim removes the records of entries that are gone.
        sweeps = [at for *at, _ in self.asked_sweeps]
        return record in self.asked_claims or [stream, group] in sweeps

    def _check_removals(self, found: State) -> None:
        """Deletions and trims without a reply were applied with all that belongs to them, or not at all."""
        for place, option in self.asked_deletes.items():
            records = records_of(place)
            is_gone = place not in found.entries
            if records[0] in self.asked_acks and option != b"ACKED":  # XACKDEL
                assert (records[0] not in found.pending) == is_gone, f"half of XACKDEL {place}"
            if is_gone and option == b"ACKED":
                assert self.is_free(place), f"{place} is needed and was deleted"
            if is_gone and option == b"DELREF":
                assert not found.pending.keys() & {*records}, f"half of a deletion of {place}"
        trim = self.asked_trim
        if trim is not None and trim.option == b"DELREF" and self._trim_was_applied(found):
            first = found.first_of_trimmed()
            left = [r for r in found.pending if r[0] == TRIMMED and id_number(r[2]) < first]
            assert not left, f"half of a trim: {left} are pending"

    def _check_ids(self, found: State) -> None:
        for stream, top in found.tops.items():
            assert top >= self.floor.get(stream, (0, 0)), f"the last id of {stream!r} went back"
            self.floor[stream] = top
        for stream, text in [*self.added, *self.deleted]:
            assert id_number(text) <= found.tops[stream], f"{text!r} is above the last id"
        for stream, group, text in self.delivered:
            up_to = found.read_up_to[stream, group]
            assert id_number(text) <= up_to, f"{text!r} would be delivered again"

    # --- Messages with names -------------------------------------------------------------------------

    def _check_names(self, found: State) -> None:
        message = self.asked_message
        for (stream, entry_id), token in found.entries.items():
            if message is not None and (stream, token) == (message.stream, message.token):
                self.names[stream].record(message, entry_id)
        for stream, names in self.names.items():
            settings = found.settings[stream]
            assert (stream, settings) in ((stream, names.settings), self.asked_settings), settings
            names.use(settings)
            assert found.names[stream] == len(names.all()), f"{stream!r} remembers another number"

    def _send_again(self, port: int) -> None:
        """Send all messages again: those that were added are recognised, the unanswered one is added once."""
        with RawRedis(port) as client:
            before = client.ask([[b"XLEN", stream] for stream in STREAMS])
            sent = [pair for names in self.names.values() for pair in names.all()]
            replies = client.ask([message.words for message, _ in sent])
            for (message, entry_id), reply in zip(sent, replies, strict=True):
                assert reply == entry_id, (
                    f"{message} was added as {entry_id!r}, and now as {reply!r}"
                )
            assert client.ask([[b"XLEN", stream] for stream in STREAMS]) == before
            asked = self.asked_message
            if asked is not None and asked not in [message for message, _ in sent]:
                [reply] = client.ask([asked.words])
                self.added[asked.stream, reply] = asked.token
                self.names[asked.stream].record(asked, reply)
        self.asked_message = None


def count_after(mode: bytes, count: int) -> int:
    """The delivery count of an entry that was returned with XNACK."""
    if mode == b"FATAL":
        return COUNT_MAX
    return max(0, count - 1) if mode == b"SILENT" else count


def _tokens(found: State) -> set[tuple[bytes, bytes]]:
    return {(stream, token) for (stream, _), token in found.entries.items()}
