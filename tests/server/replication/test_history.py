"""The ids and offsets of a history, and the backlog."""

from __future__ import annotations

import random

from penstock.persist.replication_point import (
    ReplicationPoint,
    aux_of,
    encode_point,
    parse_point_or_none,
    point_of_aux_or_none,
)
from penstock.server.replication.backlog import Backlog
from penstock.server.replication.history import NO_ID, History
from tests.support.campaign import seed

SOME_ID = "ab" * 20


def test_a_replica_of_the_old_primary_continues_up_to_the_promotion_and_not_beyond() -> None:
    history = History(id=SOME_ID, offset=100)
    history.branch_off()
    assert history.second_id == SOME_ID
    assert history.knows(SOME_ID, 101)
    assert not history.knows(SOME_ID, 102)
    assert history.knows(history.id, 10**9)
    assert not history.knows("cd" * 20, 1)


def test_a_new_history_knows_nobody() -> None:
    history = History(id=SOME_ID, offset=100)
    history.branch_off()
    history.start_over()
    assert not history.knows(SOME_ID, 1)
    assert history.second_id == NO_ID


def test_a_server_that_has_changed_nothing_since_asks_with_the_older_id() -> None:
    history = History()
    history.adopt(ReplicationPoint(SOME_ID, 7))
    assert history.question() == (SOME_ID, 8)
    history.branch_off()
    assert history.question() == (SOME_ID, 8)
    history.offset += 1
    assert history.question() == (history.id, 9)


def test_the_backlog_has_the_last_bytes_at_every_place() -> None:
    dice = random.Random(seed())
    sent = bytearray()
    backlog = Backlog(1000, 500)
    for _ in range(300):
        piece = dice.randbytes(dice.choice([1, 3, 60, 700]))
        sent += piece
        backlog.append(piece)
        assert backlog.first + backlog.size == 1001 + len(sent)
        assert backlog.size >= min(500, len(sent))
        for wanted in {
            backlog.first,
            backlog.first + backlog.size,
            backlog.first + backlog.size // 2,
        }:
            assert backlog.covers(wanted)
            assert backlog.since(wanted) == sent[wanted - 1001 :]
        assert not backlog.covers(backlog.first - 1)
        assert not backlog.covers(backlog.first + backlog.size + 1)


def test_a_point_is_read_as_it_was_written() -> None:
    for of_primary, is_apart in ((False, True), (True, True), (False, False), (True, False)):
        point = ReplicationPoint(SOME_ID, 12345, 3, of_primary, is_apart)
        assert parse_point_or_none(encode_point(point)) == point
        assert point_of_aux_or_none(aux_of(point, is_base=True)) == point
    sent = ReplicationPoint(SOME_ID, 12345, 3)
    assert point_of_aux_or_none(aux_of(point, is_base=False)) == sent
    assert parse_point_or_none(b"#PSREPL:%s:12345:3\r\n" % SOME_ID.encode()) == sent
    assert aux_of(None, is_base=True) == {}


def test_anything_else_is_no_point() -> None:
    for line in (
        b"#PSREPL:\r\n",
        b"#PSREPL:xx:1\r\n",
        encode_point(ReplicationPoint(SOME_ID, 1))[:-2],
    ):
        assert parse_point_or_none(line) is None
    assert point_of_aux_or_none({b"repl-id": b"short", b"repl-offset": b"1"}) is None
    assert point_of_aux_or_none({b"repl-id": SOME_ID.encode(), b"repl-offset": b"-1"}) is None
