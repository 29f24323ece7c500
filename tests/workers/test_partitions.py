"""Partitions are shared out among workers, and nothing overtakes: promise 6, by a manual clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.work import App
from penstock.work.backend import EmbeddedBackend
from penstock.work.feed import Entry, Feed
from penstock.work.names import partition
from penstock.work.testing import TestRun

LEASE = 30.0


@dataclass
class Order:
    number: int
    customer: str


class Shelves:
    """An App with eight partitions that notes what it runs."""

    def __init__(self) -> None:
        self.app = App("memory:", group="shop")
        self.ran: list[int] = []

        @self.app.on("orders", key="customer", partitions=8, lease=LEASE)
        def charge(order: Order) -> None:
            self.ran.append(order.number)

        self.charge = charge


def take_all(feeds: Sequence[Feed]) -> list[tuple[Feed, Entry]]:
    return [(feed, entry) for feed in feeds for entry in feed.take(10).entries]


def owners(test: TestRun) -> Counter[bytes]:
    backend = EmbeddedBackend(test.database)
    found = [backend.ask("GET", f"orders:{number}:owner:shop") for number in range(8)]
    return Counter(name for name in found if isinstance(name, bytes))


def share_out(test: TestRun, *workers: Sequence[Feed]) -> None:
    """All workers look for entries and renew their leases, some times."""
    for _ in range(4):
        for feeds in workers:
            assert take_all(feeds) == []
            for feed in feeds:
                feed.renew()
        test.advance(LEASE / 3)


def test_partitions_are_shared_out_among_the_workers() -> None:
    shelves = Shelves()
    with shelves.app.test() as t:
        first, second, third = (t.feeds(name) for name in ("first", "second", "third"))
        share_out(t, first)
        assert owners(t) == {b"first": 8}
        share_out(t, first, second)
        assert owners(t) == {b"first": 4, b"second": 4}
        for _ in range(4):
            share_out(t, first, second, third)
        assert sorted(owners(t).values()) == [2, 3, 3]
        before = owners(t)
        share_out(t, first, second, third)
        assert owners(t) == before  # it stays so
        for feed in second:
            feed.leave()
        for _ in range(2):
            share_out(t, first, third)
        assert owners(t) == {b"first": 4, b"third": 4}


def test_a_partition_is_given_away_when_nothing_runs_and_nothing_is_overtaken() -> None:
    shelves = Shelves()
    with shelves.app.test() as t:
        first, second = t.feeds("first"), t.feeds("second")
        names = (str(number) for number in range(100))
        name = next(one for one in names if partition("orders", one, 8) == "orders:0")
        for number in range(1, 4):
            shelves.charge.send(Order(number, name))
        [(feed, entry)] = take_all(first)
        for _ in range(3):  # three others are given away
            assert take_all(second) == []
            for one in first:
                one.renew()
            assert take_all(first) == []
        assert owners(t) == {b"first": 5, b"second": 3}
        feed.settle(t.attempt(feed, [entry]))
        assert take_all(first) == []
        assert owners(t) == {b"first": 4, b"second": 4}
        for _ in range(2):
            [(feed, entry)] = take_all(second)
            assert feed.stream == "orders:0"
            feed.settle(t.attempt(feed, [entry]))
        assert shelves.ran == [1, 2, 3]


def test_a_partition_whose_attempt_runs_for_longer_than_a_lease_is_kept() -> None:
    shelves = Shelves()
    with shelves.app.test() as t:
        first, second = t.feeds("first"), t.feeds("second")
        for number in range(40):
            shelves.charge.send(Order(number, f"customer-{number}"))
        running = take_all(first)
        assert {feed.stream for feed, _ in running} == {f"orders:{n}" for n in range(8)}
        assert take_all(second) == []
        for feed in first:
            feed.renew()
        assert take_all(first) == []
        assert owners(t) == {b"first": 8}
        t.advance(LEASE - 1)
        for feed in first:
            feed.renew()
        t.advance(1)
        assert take_all(first) == []
        for feed, entry in running:
            assert feed.settle(t.attempt(feed, [entry])) == [True]
        assert owners(t) == {b"first": 8}
        assert sorted(shelves.ran) == list(range(40))
