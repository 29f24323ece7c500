"""Pending entries by consumer and age."""

from __future__ import annotations

from penstock.web.model.pending_ages import AGES, CONSUMERS_MAX, count_ages, pending_ages
from tests.web.conftest import Live


def test_each_age_has_its_column() -> None:
    starts = [start for start, _ in AGES]
    found = count_ages((b"ann", start) for start in [*starts, -1, 59_999])
    assert found.rows == [(b"ann", [3, 1, 1, 1, 1, 1])]
    assert found.counted == 8


def test_the_consumers_with_the_most_entries_come_first() -> None:
    rows = count_ages([(b"ann", 0), (b"bob", 0), (b"bob", 0)]).rows
    assert [name for name, _ in rows] == [b"bob", b"ann"]
    assert len(count_ages((b"%d" % one, 0) for one in range(100)).rows) == CONSUMERS_MAX


def test_entries_that_wait_for_workers_have_no_age() -> None:
    assert count_ages([(b"waiting", 10**8)]).rows == []


def test_ages_of_a_live_group(stream_of_ten: Live) -> None:
    stream_of_ten.client.execute_command("XCLAIM", "s", "g", "bob", 0, "1-0", "IDLE", 400_000)
    found = stream_of_ten.ask(lambda server: pending_ages(server, b"s", b"g"))
    assert dict(found.rows) == {b"ann": [3, 0, 0, 0, 0, 0], b"bob": [0, 0, 1, 0, 0, 0]}
