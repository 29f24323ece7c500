"""The eight promises of docs/work-promises.md, each by a clock that is set by hand."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import penstock
from penstock.errors import CommandError, ConnectionLost
from penstock.work import App, Dead, Message
from penstock.work.feed import Entry, Feed
from penstock.work.running.attempts import not_begun
from penstock.work.settlement import ACK, Outcome
from penstock.work.testing import TestRun
from tests.support.work.faults import FailingBackend

LEASE = 30.0


@dataclass
class Order:
    number: int
    customer: str = "ann"


class Shop:
    """An App that notes what it runs. Numbers that are multiples of 5 fail once, those of 7 are dead."""

    def __init__(self, key: str | None = None) -> None:
        self.app = App("memory:", group="shop")
        self.ran: list[tuple[int, int]] = []

        @self.app.on("orders", key=key, attempts=3, backoff=(4, 60), lease=LEASE)
        def charge(order: Order, msg: Message) -> None:
            self.ran.append((order.number, msg.attempt))
            if order.number % 7 == 0:
                raise Dead("a multiple of seven")
            if order.number % 5 == 0 and msg.attempt == 1:
                raise ValueError("not yet")
            msg.send("receipts", order.number)

        self.charge = charge

    def numbers(self) -> list[int]:
        return [number for number, _ in self.ran]


def receipts(test: TestRun) -> list[str]:
    return [entry["data"] for entry in test.entries("receipts")]


def test_1_an_acknowledged_send_survives(tmp_path: Path) -> None:
    app = App(f"file:{tmp_path}/data", group="shop")

    @app.on("orders")
    def charge(order: Order) -> None: ...

    assert charge.send(Order(1)) is not None
    assert charge.send(Order(2), delay=60, dedup="two") is not None
    # A copy of the files at this moment is what a kill would leave.
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    app.close()
    with penstock.open(tmp_path / "copy") as found:
        assert found.xlen("orders") == found.xlen("orders:delayed") == 1
        assert found.exists("orders:sent:two") == 1


def test_2_every_entry_ends_acked_or_dead() -> None:
    shop = Shop()
    with shop.app.test() as t:
        for number in range(1, 36):
            shop.charge.send(Order(number))
        t.run()
        t.advance(4)
        t.run()
        assert len(receipts(t)) + len(t.dead("orders")) == 35
        assert sorted(map(int, receipts(t))) == [n for n in range(1, 36) if n % 7]
        assert t.pending("orders") == 0


def test_3_a_stale_owner_can_settle_nothing() -> None:
    shop = Shop()
    with shop.app.test() as t:
        [stale], [fresh] = t.feeds("stale"), t.feeds("fresh")
        shop.charge.send(Order(1))
        [entry] = stale.take(10).entries
        t.advance(LEASE - 1)
        assert not fresh.take(10).entries
        assert not fresh.take(1, alone=True).entries
        stale.renew()
        t.advance(LEASE - 1)
        assert not fresh.take(1, alone=True).entries  # the lease was renewed
        t.advance(1)
        [again] = fresh.take(1, alone=True).entries
        assert (again.id, again.attempt, again.suspect) == (entry.id, 2, True)
        assert stale.settle([Outcome(entry.id, 1, ACK)]) == [False]
        stale.renew()  # takes nothing back
        assert t.pending("orders") == 1
        assert fresh.settle(t.attempt(fresh, [again])) == [True]
        assert t.pending("orders") == 0


def test_4_what_is_sent_and_the_settling_are_one_step() -> None:
    shop = Shop()
    with shop.app.test() as t:
        [stale], [fresh] = t.feeds("stale"), t.feeds("fresh")
        shop.charge.send(Order(1))
        entries = stale.take(10).entries
        outcomes = t.attempt(stale, entries)
        t.advance(LEASE)
        taken = fresh.take(1, alone=True).entries
        assert stale.settle(outcomes) == [False]
        assert receipts(t) == []
        assert fresh.settle(t.attempt(fresh, taken)) == [True]
        assert fresh.settle(t.attempt(fresh, taken)) == [False]  # a repeated settling, too
        assert receipts(t) == ["1"]


@pytest.mark.parametrize("key", [None, "customer"])
def test_5_at_most_n_attempts_also_if_the_process_dies(
    key: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    shop = Shop(key)
    with shop.app.test() as t:
        shop.charge.send(Order(1))
        for attempt in (1, 2, 3):
            [feed] = t.feeds(f"dies-{attempt}")
            taken = feed.take(10).entries or feed.take(1, alone=True).entries
            assert [entry.attempt for entry in taken] == [attempt]
            t.advance(LEASE + 0.001)
        assert t.run() == 0
        assert shop.ran == []
        [dead] = t.dead("orders")
        assert f"stream=orders id={dead['_source_id']} outcome=dead" in caplog.text
        assert dead["_reason"] == "lease expired in attempt 3"
        assert (dead["_attempts"], dead["_group"]) == ("3", "shop")
        assert t.pending("orders") == 0


@pytest.mark.parametrize("runs", [True, False])
def test_5_an_attempt_of_a_key_that_did_not_begin_does_not_count(runs: bool) -> None:
    """The reply to the count is lost, again and again, with and without the count itself."""
    shop = Shop(key="customer")
    with shop.app.test() as t:
        failing = FailingBackend(shop.app.backend, runs)
        [feed] = t.feeds("worker", failing)
        shop.charge.send(Order(5))
        for attempt in (1, 2):
            failing.errors["RENEW"] = ConnectionLost("a test")
            for _ in range(5):
                with pytest.raises(ConnectionLost):
                    feed.take(10)
                feed.recover()
            failing.errors.clear()
            [entry] = feed.take(10).entries
            assert (entry.attempt, entry.suspect) == (attempt, False)
            assert feed.settle(t.attempt(feed, [entry])) == [True]
            t.advance(4)
            feed.renew()
        assert shop.ran == [(5, 1), (5, 2)]
        assert t.pending("orders") == 0


@pytest.mark.parametrize("key", [None, "customer"])
def test_5_a_suspect_that_was_taken_and_given_back_stays_a_suspect(key: str | None) -> None:
    shop = Shop(key)
    with shop.app.test() as t:
        [dies], [stops], [fresh] = (t.feeds(name) for name in ("dies", "stops", "fresh"))
        shop.charge.send(Order(1))
        dies.take(10)
        t.advance(LEASE + 0.001)
        assert not stops.take(10).entries
        taken = stops.take(1, alone=True).entries
        stops.give_back(taken)
        stops.recover()  # it is known, and not given back twice
        stops.leave()
        t.advance(0.001)
        assert not fresh.take(10).entries
        [again] = fresh.take(1, alone=True).entries
        assert (again.attempt, again.suspect) == (2, True)


def test_5_a_suspect_whose_take_had_no_reply_stays_a_suspect() -> None:
    shop = Shop()
    with shop.app.test() as t:
        failing = FailingBackend(shop.app.backend, runs=True)
        [dies], [loses] = t.feeds("dies"), t.feeds("loses", failing)
        shop.charge.send(Order(1))
        dies.take(10)
        t.advance(LEASE)
        failing.errors["TAKE"] = ConnectionLost("a test")
        with pytest.raises(ConnectionLost):
            loses.take(1, alone=True)
        failing.errors.clear()
        loses.recover()
        t.advance(0.001)
        assert not loses.take(10).entries
        [again] = loses.take(1, alone=True).entries
        assert (again.attempt, again.suspect) == (2, True)


def take_suspect(t: TestRun, shop: Shop, worker: Feed) -> tuple[Entry, Entry]:
    """A healthy entry, and a suspect of another key, both taken by one worker."""
    [dies] = t.feeds("dies")
    shop.charge.send(Order(1, "ann"))
    dies.take(10)
    t.advance(LEASE + 0.001)
    shop.charge.send(Order(2, "bob"))
    [healthy] = worker.take(10).entries
    [suspect] = worker.take(1, alone=True).entries
    assert (suspect.attempt, suspect.suspect) == (2, True)
    return healthy, suspect


@pytest.mark.parametrize("key", [None, "customer"])
def test_5_a_suspect_is_given_back_once_however_often_its_batch_is_settled(
    key: str | None,
) -> None:
    """Its second attempt has the same number as the one that did not begin."""
    shop = Shop(key)
    with shop.app.test() as t:
        failing = FailingBackend(shop.app.backend)
        [worker] = t.feeds("worker", failing)
        healthy, suspect = take_suspect(t, shop, worker)
        outcomes = [*not_begun([suspect], 0, "no child"), Outcome(healthy.id, 1, ACK)]
        failing.errors["SETTLE"] = ConnectionLost("a test")
        with pytest.raises(ConnectionLost):
            worker.settle(outcomes)
        t.advance(0.001)
        assert worker.take(1, alone=True).entries == []  # it is still held
        failing.errors.clear()
        assert worker.settle(outcomes) == [True, True]
        t.advance(0.001)
        [again] = worker.take(1, alone=True).entries
        assert (again.id, again.attempt) == (suspect.id, 2)
        t.advance(LEASE - 1)
        worker.renew()
        assert worker.held() == 1
        assert worker.settle(t.attempt(worker, [again])) == [True]
        assert t.pending("orders") == 0


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize("key", [None, "customer"])
def test_5_a_suspect_that_was_given_back_without_a_reply_stays_one_and_does_not_count(
    key: str | None, runs: bool
) -> None:
    shop = Shop(key)
    with shop.app.test() as t:
        failing = FailingBackend(shop.app.backend, runs)
        [worker] = t.feeds("worker", failing)
        healthy, suspect = take_suspect(t, shop, worker)
        failing.errors["RENEW"] = ConnectionLost("a test")
        outcomes = [*not_begun([suspect], 0, "no child"), Outcome(healthy.id, 1, ACK)]
        assert worker.settle(outcomes) == [True, True]  # nothing is repeated
        failing.errors.clear()
        assert worker.take(10).entries == []
        t.advance(0.001)
        assert worker.take(10).entries == []
        [again] = worker.take(1, alone=True).entries
        assert (again.id, again.attempt, again.suspect) == (suspect.id, 2, True)
        assert worker.settle(t.attempt(worker, [again])) == [True]
        assert t.pending("orders") == 0


@pytest.mark.parametrize("how", ["leaves", "adopts without a reply", "loses the stream"])
def test_5_a_suspect_of_a_keyed_stream_stays_one_whatever_its_owner_does(how: str) -> None:
    shop = Shop(key="customer")
    with shop.app.test() as t:
        failing = FailingBackend(shop.app.backend, runs=True)
        [dies], [owner] = t.feeds("dies"), t.feeds("owner", failing)
        shop.charge.send(Order(1))
        dies.take(10)
        t.advance(LEASE + 0.001)
        if how == "adopts without a reply":
            failing.errors["ADOPT"] = ConnectionLost("a test")
            with pytest.raises(ConnectionLost):
                owner.take(10)
            failing.errors.clear()
            owner.recover()
        else:
            assert not owner.take(10).entries
        if how == "loses the stream":
            t.advance(LEASE + 0.001)
            owner.renew()
        if how == "leaves":
            owner.leave()
            [owner] = t.feeds("next")
        assert not owner.take(10).entries
        [again] = owner.take(1, alone=True).entries
        assert (again.attempt, again.suspect) == (2, True)


def test_6_keys_neither_overlap_nor_overtake() -> None:
    shop = Shop(key="customer")
    with shop.app.test() as t:
        for number, customer in ((5, "ann"), (6, "ann"), (1, "bob"), (2, "bob"), (8, "ann")):
            shop.charge.send(Order(number, customer))
        t.run()
        assert shop.numbers() == [5, 1, 2]  # the retry of 5 holds back ann, not bob
        t.advance(4)
        t.run()
        assert shop.numbers() == [5, 1, 2, 5, 6, 8]


def test_6_an_entry_without_attempts_left_keeps_no_other_from_being_read() -> None:
    """Its attempts were counted when the handler allowed more of them."""
    shop = Shop(key="customer")
    with shop.app.test() as t:
        [feed] = t.feeds("worker")
        shop.charge.send(Order(1, "ann"))
        feed.take(10)
        [row] = t.database.xpending_range("orders", "shop", "-", "+", 10)
        ids = [row["message_id"]]
        t.database.xclaim("orders", "shop", "waiting", 0, ids, idle=86_400_000, retrycount=3)
        [fresh] = t.feeds("fresh")
        feed.leave()
        shop.charge.send(Order(2, "bob"))
        taken = fresh.take(1)
        assert (taken.entries, taken.wait) == ([], 0)  # there is more, without waiting
        [entry] = fresh.take(1).entries
        assert fresh.settle(t.attempt(fresh, [entry])) == [True]
        assert shop.ran == [(2, 1)]
        assert t.dead("orders")[0]["_reason"] == "3 attempts were begun"


def test_6_one_worker_owns_a_keyed_stream() -> None:
    shop = Shop(key="customer")
    with shop.app.test() as t:
        [first], [second] = t.feeds("first"), t.feeds("second")
        for number in (1, 2, 3):
            shop.charge.send(Order(number))
        [entry] = first.take(10).entries  # one of a key at a time
        assert not second.take(10).entries
        first.renew()
        t.advance(LEASE - 1)
        assert not second.take(10).entries
        t.advance(1.001)
        assert not second.take(10).entries  # 1 is a suspect: it runs alone, before 2 and 3
        [again] = second.take(1, alone=True).entries
        assert (again.id, again.attempt) == (entry.id, 2)
        assert first.settle([Outcome(entry.id, 1, ACK)]) == [False]
        assert not first.take(10).entries
        second.settle(t.attempt(second, [again]))
        [after] = second.take(10).entries
        assert after.attempt == 1  # it was parked by the first owner, which began no attempt
        second.settle(t.attempt(second, [after]))
        assert shop.numbers() == [1, 2]


def test_6_a_retry_is_not_overtaken_if_the_reply_to_its_settling_was_lost() -> None:
    """The server noted the retry and was killed before it replied. Settled again, it is refused."""
    shop = Shop(key="customer")
    with shop.app.test() as t:
        [feed], [twin] = t.feeds("worker"), t.feeds("worker")
        for number in (5, 6):
            shop.charge.send(Order(number))
        outcomes = t.attempt(feed, feed.take(10).entries)
        assert twin.settle(outcomes) == [True]
        assert feed.settle(outcomes) == [False]
        assert feed.take(10).entries == []
        t.advance(4)
        for expected in (2, 1):
            [entry] = feed.take(10).entries
            assert entry.attempt == expected
            assert feed.settle(t.attempt(feed, [entry])) == [True]
        assert shop.ran == [(5, 1), (5, 2), (6, 1)]


@pytest.mark.parametrize("renews", [True, False])
def test_6_an_owner_that_was_stopped_and_returns_lets_nothing_overtake(renews: bool) -> None:
    """While it was stopped, another worker owned the stream, began an entry and was killed."""
    shop = Shop(key="customer")
    with shop.app.test() as t:
        [first], [second] = t.feeds("first"), t.feeds("second")
        for number, customer in ((1, "bob"), (2, "ann"), (3, "ann")):
            shop.charge.send(Order(number, customer))
        first.take(1)  # 2 and 3 are parked
        t.advance(LEASE + 0.001)
        [begun] = second.take(10).entries
        t.advance(LEASE + 0.001)
        if renews:
            first.renew()
        for _ in range(3):
            assert first.take(10).entries == []  # 2 is a suspect, and 3 waits for it
        [again] = first.take(1, alone=True).entries
        assert (again.id, again.attempt) == (begun.id, 2)
        first.settle(t.attempt(first, [again]))
        [after] = first.take(10).entries
        first.settle(t.attempt(first, [after]))
        assert shop.ran == [(2, 2), (3, 1)]


def test_6_a_row_that_another_client_claimed_is_not_overtaken() -> None:
    shop = Shop(key="customer")
    with shop.app.test() as t:
        [feed] = t.feeds("worker")
        for number, customer in ((1, "bob"), (2, "ann"), (3, "ann")):
            shop.charge.send(Order(number, customer))
        feed.take(1)  # 2 and 3 are parked
        [_, row, _] = t.database.xpending_range("orders", "shop", "-", "+", 10)
        t.database.xclaim("orders", "shop", "stranger", 0, [row["message_id"]], retrycount=1)
        assert feed.take(10).entries == []
        [again] = feed.take(1, alone=True).entries
        assert (again.id.encode(), again.attempt) == (row["message_id"], 2)


def test_6_a_key_is_served_again_after_its_group_was_destroyed() -> None:
    shop = Shop(key="customer")
    with shop.app.test() as t:
        [feed] = t.feeds("worker")
        for number, customer in ((1, "ann"), (2, "ann"), (3, "bob")):
            shop.charge.send(Order(number, customer))
        outcomes = t.attempt(feed, feed.take(1).entries)
        t.database.xgroup_destroy("orders", "shop")
        with pytest.raises(CommandError, match="NOGROUP"):
            feed.settle(outcomes)
        feed.forget(outcomes)
        feed.prepare()
        feed.recover()
        for _ in range(3):
            for entry in feed.take(10).entries:
                assert feed.settle(t.attempt(feed, [entry])) == [True]
        assert shop.ran == [(1, 1), (1, 1), (3, 1), (2, 1)]  # the new group begins at the start
        assert t.pending("orders") == 0


def test_6_a_worker_that_leaves_hands_its_keys_over_at_once() -> None:
    shop = Shop(key="customer")
    with shop.app.test() as t:
        [first], [second] = t.feeds("first"), t.feeds("second")
        for number in (1, 2, 3):
            shop.charge.send(Order(number))
        first.settle(t.attempt(first, first.take(10).entries))
        first.leave()
        [entry] = second.take(10).entries
        assert (entry.attempt, entry.suspect) == (1, False)
        consumers = {one["name"] for one in t.database.xinfo_consumers("orders", "shop")}
        assert b"first" not in consumers


def test_7_many_suspects_do_not_hold_retries_back() -> None:
    shop = Shop()
    with shop.app.test() as t:
        [dies], [feed] = t.feeds("dies"), t.feeds("worker")
        for number in range(301):
            shop.charge.send(Order(5 if number == 300 else 1))
        dies.take(300)
        feed.settle(t.attempt(feed, feed.take(1).entries))
        assert shop.ran == [(5, 1)]
        t.advance(LEASE)
        [again] = feed.take(1).entries
        assert (again.attempt, again.suspect) == (2, False)


@pytest.mark.parametrize("key", [None, "customer"])
def test_7_retries_are_never_early_and_soon(key: str | None) -> None:
    shop = Shop(key)
    with shop.app.test() as t:
        shop.charge.send(Order(5))
        t.run()
        t.advance(2.9)  # the pause is 3 to 4 seconds
        assert t.run() == 0
        t.advance(1.1)
        assert t.run() == 1


def test_7_delays_are_never_early() -> None:
    shop = Shop()
    with shop.app.test() as t:
        shop.charge.send(Order(1), delay=3600)
        t.advance(3599.999)
        assert t.run() == 0
        t.advance(0.001)
        assert t.run() == 1
        assert t.entries("orders:delayed") == []


@pytest.mark.parametrize("key", [None, "customer"])
def test_7_a_clock_that_is_set_back_or_forward_loses_and_doubles_nothing(key: str | None) -> None:
    shop = Shop(key)
    with shop.app.test() as t:
        [feed] = t.feeds("worker")
        shop.charge.send(Order(5))
        outcomes = t.attempt(feed, feed.take(10).entries)
        t.clock.at_ms -= 3_600_000
        assert feed.settle(outcomes) == [True]
        feed.renew()
        t.clock.at_ms += 2 * 3_600_000
        for _ in range(2):
            for entry in feed.take(10).entries:
                assert feed.settle(t.attempt(feed, [entry])) == [True]
        assert shop.ran == [(5, 1), (5, 2)]
        assert (receipts(t), t.pending("orders")) == (["5"], 0)


def test_8_a_thousand_workers_share_a_stream_and_leave_no_consumers() -> None:
    shop = Shop()
    with shop.app.test() as t:
        for _ in range(3000):
            shop.charge.send(Order(1))
        feeds = [feed for number in range(1000) for feed in t.feeds(f"worker-{number}")]
        taken = [(feed, entry) for feed in feeds for entry in feed.take(3).entries]
        assert len({entry.id for _, entry in taken}) == 3000
        assert len({id(feed) for feed, _ in taken}) == 1000
        for feed, entry in taken:
            feed.settle(t.attempt(feed, [entry]))
        for feed in feeds:
            feed.leave()
        assert (len(receipts(t)), t.pending("orders")) == (3000, 0)
        assert t.database.xinfo_consumers("orders", "shop") == []


def test_8_a_drain_leaves_nothing_pending() -> None:
    shop = Shop()
    worker = shop.app.worker()
    worker.start()
    for number in range(1, 5):
        shop.charge.send(Order(number))
    deadline = time.monotonic() + 60
    while len(shop.ran) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert worker.stop()
    assert shop.app.backend.ask("XPENDING", "orders", "shop")[0] == 0
    assert shop.app.backend.ask("XLEN", "receipts") == 4
    shop.app.close()
