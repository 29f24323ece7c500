"""Clients that read for a group, acknowledge, delete, claim, and return entries."""

from __future__ import annotations

import random
from typing import Any

from tests.support.disk.ledger import COUNT_MAX, Ledger, count_after
from tests.support.disk.producing import check_answered
from tests.support.disk.server_state import GROUPS, STREAMS, TRIMMED, Place, Record
from tests.support.servers.raw_redis import RawRedis

CLERKS = (b"clerk", b"deputy")
_OPTIONS = (b"KEEPREF", b"DELREF", b"ACKED")
_MODES = (b"SILENT", b"FAIL", b"FATAL")


class Reader:
    """Reads for a group and acknowledges most entries. For the first group, it also deletes some of those."""

    def __init__(self, name: bytes, ledger: Ledger) -> None:
        self._name = name
        self._ledger = ledger

    def work(self, client: RawRedis, dice: random.Random) -> None:
        stream, group = dice.choice(STREAMS), dice.choice(GROUPS)
        records = self._read(client, stream, group, dice.randrange(1, 40))
        done = [record for record in records if dice.random() < 0.9]
        deletes = group == GROUPS[0] and stream != TRIMMED
        if done and deletes and dice.random() < 0.3:
            some, done = done[:5], done[5:]
            self._acknowledge_and_delete(client, some, dice.choice(_OPTIONS))
        if not done:
            return
        self._acknowledge(client, done)
        gone = [(stream, record[2]) for record in done if dice.random() < 0.2]
        if gone and deletes:
            self._delete(client, gone, dice.choice([None, *_OPTIONS]))

    def _read(self, client: RawRedis, stream: bytes, group: bytes, count: int) -> list[Record]:
        ledger = self._ledger
        asked = (stream, group, self._name)
        ledger.asked_reads.add(asked)
        words = [b"XREADGROUP", b"GROUP", group, self._name, b"COUNT", b"%d" % count]
        [reply] = client.ask([[*words, b"BLOCK", b"50", b"STREAMS", stream, b">"]])
        check_answered(reply)
        records = []
        if isinstance(reply, list):
            for entry_id, _ in reply[0][1]:
                records.append((stream, group, entry_id))
                note_delivered(ledger, records[-1], self._name)
        ledger.asked_reads.discard(asked)
        return records

    def _acknowledge(self, client: RawRedis, records: list[Record]) -> None:
        ledger = self._ledger
        stream, group, _ = records[0]
        ledger.asked_acks.update(records)
        [count] = client.ask([[b"XACK", stream, group, *(record[2] for record in records)]])
        doomed = [record for record in records if ledger.is_doomed((stream, record[2]))]
        assert len(records) - len(doomed) <= count <= len(records)
        ledger.acked.update(records)
        ledger.asked_acks.difference_update(records)

    def _delete(self, client: RawRedis, places: list[Place], option: bytes | None) -> None:
        """Delete acknowledged entries: with XDELEX, or with XDEL."""
        ledger = self._ledger
        stream, ids = places[0][0], [entry_id for _, entry_id in places]
        policy = option or b"KEEPREF"
        ledger.asked_deletes.update(dict.fromkeys(places, policy))
        words = [b"XDEL", stream, *ids]
        if option is not None:
            words = [b"XDELEX", stream, option, b"IDS", b"%d" % len(ids), *ids]
        [reply] = client.ask([words])
        if option is None:
            assert reply == len(places)
            reply = [1] * len(places)
        self._note_outcomes(places, policy, reply)

    def _acknowledge_and_delete(
        self, client: RawRedis, records: list[Record], option: bytes
    ) -> None:
        ledger = self._ledger
        stream, group, _ = records[0]
        places = [(stream, record[2]) for record in records]
        ledger.asked_deletes.update(dict.fromkeys(places, option))
        ledger.asked_acks.update(records)
        words = [b"XACKDEL", stream, group, option, b"IDS", b"%d" % len(records)]
        [outcomes] = client.ask([[*words, *(record[2] for record in records)]])
        ledger.acked.update(records)
        self._note_outcomes(places, option, outcomes)
        ledger.asked_acks.difference_update(records)

    def _note_outcomes(self, places: list[Place], option: bytes, outcomes: list[int]) -> None:
        check_answered(outcomes)
        for place, outcome in zip(places, outcomes, strict=True):
            assert outcome == 1 or (outcome == 2 and option == b"ACKED"), (place, outcome)
            if outcome == 1:
                self._ledger.note_deleted(place, option)
            del self._ledger.asked_deletes[place]


class Clerk:
    """Claims entries that others have not acknowledged, and returns some. The only client that does."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def work(self, client: RawRedis, dice: random.Random) -> None:
        ledger = self._ledger
        at, clerk = (dice.choice(STREAMS), dice.choice(GROUPS)), dice.choice(CLERKS)
        way = dice.random()
        if way < 0.25:
            self._claim_any(client, at, clerk)
        elif way < 0.5:
            self._read_and_claim(client, at, clerk, dice)
        else:
            known = list(ledger.delivered)[-400:]
            records = [r for r in known if r[:2] == at and r not in ledger.acked]
            records = dice.sample(records, min(5, len(records)))
            if records and way < 0.7:
                self._give_back(client, records[0], dice.choice(_MODES))
            elif records:
                self._claim(client, records, clerk, dice.random() < 0.5)
        ledger.asked_sweeps.clear()
        ledger.asked_claims.clear()
        ledger.asked_returns.clear()

    def _claim_any(self, client: RawRedis, at: tuple[bytes, bytes], clerk: bytes) -> None:
        self._ledger.asked_sweeps.add((*at, clerk))
        [reply] = client.ask([[b"XAUTOCLAIM", *at, clerk, b"0", b"0", b"COUNT", b"5"]])
        check_answered(reply)
        for entry_id, _ in reply[1]:
            self._note_claimed((*at, entry_id), clerk, 1)
        # Records of entries that are gone were removed.
        self._ledger.acked.update((*at, entry_id) for entry_id in reply[2])

    def _claim(self, client: RawRedis, records: list[Record], clerk: bytes, grows: bool) -> None:
        for record in records:
            self._ledger.asked_claims[record].append(clerk)
        stream, group, _ = records[0]
        ids = [record[2] for record in records]
        words = [b"XCLAIM", stream, group, clerk, b"0", *ids, *([] if grows else [b"JUSTID"])]
        [reply] = client.ask([words])
        check_answered(reply)
        taken = {entry[0] if grows else entry for entry in reply}
        for record in records:
            if record[2] in taken:
                self._note_claimed(record, clerk, grows)
            else:  # acknowledged meanwhile, or its entry is gone and so was the record
                self._ledger.acked.add(record)

    def _read_and_claim(
        self, client: RawRedis, at: tuple[bytes, bytes], clerk: bytes, dice: random.Random
    ) -> None:
        ledger = self._ledger
        ledger.asked_sweeps.add((*at, clerk))
        ledger.asked_reads.add((*at, clerk))
        words = [b"XREADGROUP", b"GROUP", at[1], clerk, b"COUNT", b"5", b"BLOCK", b"20"]
        words += [b"CLAIM", dice.choice([b"0", b"10"]), b"STREAMS", at[0], b">"]
        [reply] = client.ask([words])
        check_answered(reply)
        for entry_id, _, idle_ms, count in reply[0][1] if isinstance(reply, list) else []:
            record = (*at, entry_id)
            known = record in ledger.claimed or record in ledger.delivered
            if (idle_ms, count) == (0, 0) and not known:
                note_delivered(ledger, record, clerk)
            else:
                assert count == ledger.count_of(record), (record, count)
                self._note_claimed(record, clerk, 1)
        ledger.asked_reads.discard((*at, clerk))

    def _give_back(self, client: RawRedis, record: Record, mode: bytes) -> None:
        ledger = self._ledger
        ledger.asked_returns[record] = mode
        stream, group, entry_id = record
        [count] = client.ask([[b"XNACK", stream, group, mode, b"IDS", b"1", entry_id]])
        check_answered(count)
        if count:
            ledger.claimed[record] = (b"", count_after(mode, ledger.count_of(record)))
        else:
            ledger.acked.add(record)

    def _note_claimed(self, record: Record, clerk: bytes, more: int) -> None:
        count = min(self._ledger.count_of(record) + more, COUNT_MAX)
        self._ledger.claimed[record] = (clerk, count)


def note_delivered(ledger: Ledger, record: Record, consumer: bytes) -> None:
    """A group has given a new entry to a consumer."""
    assert record not in ledger.delivered, f"{record} is delivered twice"
    ledger.delivered[record] = consumer


def read_the_rest(client: RawRedis, ledger: Ledger) -> None:
    """Read what is left for the groups, and check that all entries were delivered."""
    for stream in STREAMS:
        for group in GROUPS:
            words: list[Any] = [b"XREADGROUP", b"GROUP", group, b"last", b"STREAMS", stream, b">"]
            [reply] = client.ask([words])
            entries = reply[0][1] if isinstance(reply, list) else []
            rest = {(stream, group, entry[0]) for entry in entries}
            assert not rest & ledger.delivered.keys()
            told = {record for record in ledger.delivered if record[:2] == (stream, group)}
            added = {(stream, group, text) for of, text in ledger.added if of == stream}
            assert added <= rest | told
