"""Partitions are shared out among workers, and nothing overtakes: promise 6, by a manual clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from penstock.work import App
from penstock.work.backend import EmbeddedBackend
from penstock.work.feed import Entry, Feed
from penstock.work.names import partition
from penstock.work.patience import FIRST_SECONDS
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


def test_a_partition_whose_attempts_run_long_is_kept_and_works_on() -> None:
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
        for number in range(40, 80):
            shelves.charge.send(Order(number, f"customer-{number}"))
        more = take_all(first)  # four partitions wait for their attempts
        assert {feed.stream for feed, _ in more} == {f"orders:{n}" for n in range(4, 8)}
        t.advance(FIRST_SECONDS)
        more += take_all(first)
        assert len(more) == 40
        for feed, entry in running + more:
            assert feed.settle(t.attempt(feed, [entry])) == [True]
        assert owners(t) == {b"first": 8}
        assert sorted(shelves.ran) == list(range(80))


@pytest.mark.parametrize(("job_seconds", "moves"), [(16, True), (45, False)])
def test_partitions_that_are_never_idle_lose_a_tenth_of_their_time(
    job_seconds: int, moves: bool
) -> None:
    """Every second a job begins in each partition. Another worker wants its share."""
    shelves = Shelves()
    customers: dict[str, list[str]] = {stream: [] for stream in shelves.charge.streams()}
    for name in map(str, range(1000)):
        customers[partition("orders", name, 8)].append(name)
    waiting: Counter[str] = Counter()  # entries that have not begun
    lost: Counter[str] = Counter()  # seconds in which some waited
    running: list[tuple[int, Feed, Entry]] = []
    with shelves.app.test() as t:
        first, second = t.feeds("first"), t.feeds("second")
        for now in range(600):
            for stream, names in customers.items():
                shelves.charge.send(Order(now, names[now % 100]))
                waiting[stream] += 1
            for feed in [*first, *second]:
                taken = feed.take(100).entries
                running += [(now + job_seconds, feed, entry) for entry in taken]
                waiting[feed.stream] -= len(taken)
                if now % 10 == 0:
                    feed.renew()
            lost += Counter(stream for stream, count in waiting.items() if count)
            for end, feed, entry in running:
                if end == now:
                    assert feed.settle(t.attempt(feed, [entry])) == [True]
            t.advance(1)
        assert len(owners(t)) == (2 if moves else 1)
        assert max(lost.values()) < 600 * 0.13


def test_a_busy_partition_moves_if_its_attempts_end_soon() -> None:
    shelves = Shelves()
    with shelves.app.test() as t:
        first, second = t.feeds("first"), t.feeds("second")
        for number in range(40):
            shelves.charge.send(Order(number, f"customer-{number}"))
        running = take_all(first)
        assert take_all(second) == []
        for feed in first:
            feed.renew()
        assert take_all(first) == []
        t.advance(FIRST_SECONDS / 2)
        for feed, entry in running:
            assert feed.settle(t.attempt(feed, [entry])) == [True]
        # The lanes of those that are to move look again.
        assert [feed.may_free([]) for feed in first] == [True] * 4 + [False] * 4
        assert take_all(first) == []
        assert owners(t) == {b"first": 4, b"second": 4}
