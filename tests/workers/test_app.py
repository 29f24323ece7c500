"""App and its options: payloads, delays, dedup, schedules, batches, effects once."""

from __future__ import annotations

import asyncio
import runpy
import socket
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from penstock.errors import CommandError, ConfigError
from penstock.work import App, Dead, Message, per_second
from penstock.work.options import Limiter
from penstock.work.payload import BadPayload, PayloadType, encode, key_of
from penstock.work.running.schedule import send_next
from tests.support.work.waiting import wait_until


@dataclass
class Click:
    page: str
    count: int = 1


class Struct(msgspec.Struct):
    page: str


class Model(pydantic.BaseModel):
    page: str


@pytest.fixture
def app() -> App:
    return App("memory:", group="g")


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Click, Click("a", 2)),
        (Struct, Struct("a")),
        (Model, Model(page="a")),
        (dict, {"page": "a", "list": [1, None]}),
        (str, "ä"),
        (bytes, b"\x00\xff"),
        (int, 5),
        (list[int], [1, 2]),
    ],
)
def test_payloads_come_back_as_they_were_sent(kind: Any, payload: Any) -> None:
    assert PayloadType(kind).decode(encode(payload)) == payload


def test_entries_of_other_programs_are_read_by_their_fields() -> None:
    assert PayloadType(Click).decode([b"page", b"a", b"count", b"7"]) == Click("a", 7)
    assert PayloadType(Model).decode([b"page", b"a"]) == Model(page="a")
    assert PayloadType(dict).decode([b"page", b"a"]) == {"page": "a"}
    assert PayloadType(str).decode([b"anything", b"a"]) == "a"


def test_the_context_of_a_trace_is_no_payload() -> None:
    trace = [b"traceparent", b"00-1-2-01"]
    assert PayloadType(dict).decode(trace) == {}
    assert PayloadType(dict).decode([*trace, b"page", b"a"]) == {"page": "a"}
    assert PayloadType(str).decode([*trace, b"anything", b"a"]) == "a"
    with pytest.raises(BadPayload, match="no field `data`"):
        PayloadType(str).decode(trace)


def test_a_payload_that_cannot_be_stored_is_refused(app: App) -> None:
    @app.on("s")
    def handle(payload: Any) -> None: ...

    with pytest.raises(BadPayload, match="object"):
        handle.send(object())


def test_a_payload_that_does_not_fit_is_dead_with_its_bytes(app: App) -> None:
    ran: list[Click] = []

    @app.on("s")
    def handle(click: Click) -> None:
        ran.append(click)

    with app.test() as t:
        t.database.xadd("s", {"data": b'{"page": 5}'})
        t.database.xadd("s", {"data": b"\xff{"})
        t.database.xadd("s", {"odd": b"1"})
        handle.send(Click("a"))
        t.run()
        assert ran == [Click("a")]
        dead = t.dead("s")
        assert [entry.get("data") for entry in dead] == ['{"page": 5}', "�{", None]
        assert all(entry["_reason"].startswith("the payload is no Click: ") for entry in dead)


@dataclass
class Ratio:
    whole: int
    part: float = 0

    def __post_init__(self) -> None:
        self.part = 1 / self.whole


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("key", [None, "whole"])
def test_a_payload_whose_type_raises_anything_is_dead(app: App, key: str | None) -> None:
    @app.on("s", key=key)
    def handle(ratio: Ratio) -> None: ...

    with app.test() as t:
        t.database.xadd("s", {"data": b'{"whole": 0}'})
        handle.send(Ratio(2))
        t.run()
        [dead] = t.dead("s")
        assert dead["_reason"] == "the payload is no Ratio: division by zero"
        assert t.pending("s") == 0


def test_deeply_nested_json_is_dead(app: App) -> None:
    @app.on("s")
    def handle(payload: dict[str, Any]) -> None: ...

    with app.test() as t:
        t.database.xadd("s", {"data": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"})
        t.run()
        assert len(t.dead("s")) == 1


def test_a_key_that_cannot_be_read_is_a_bad_payload() -> None:
    class Odd:
        @property
        def name(self) -> str:
            raise Unreadable

    with pytest.raises(BadPayload, match="the key 'name' cannot be read"):
        key_of(Odd(), "name")


def test_reasons_of_any_type_are_written(app: App) -> None:
    @app.on("s", attempts=1)
    def handle(which: int) -> None:
        if which == 0:
            raise Dead(ValueError("an exception"))
        if which == 1:
            raise Dead(Unreadable())
        raise Unreadable

    with app.test() as t:
        for which in range(3):
            handle.send(which)
        t.run()
        assert [entry["_reason"] for entry in t.dead("s")] == [
            "an exception",
            "(Unreadable.__str__ raised RuntimeError)",
            "Unreadable: (Unreadable.__str__ raised RuntimeError)",
        ]


@pytest.mark.parametrize("bad", [{"delay": -1}, {"delay": float("nan")}, {"dedup": 5}])
def test_bad_arguments_of_send_fail_at_once(app: App, bad: dict[str, Any]) -> None:
    @app.on("s", attempts=1)
    def handle(which: int, msg: Message) -> None:
        msg.send("out", which, **bad)

    with app.test() as t:
        with pytest.raises((TypeError, ValueError)):
            handle.send(1, **bad)
        handle.send(1)
        t.run()
        assert t.dead("s")[0]["_reason"].startswith(("TypeError: ", "ValueError: "))


def test_dead_letters_have_all_facts(app: App) -> None:
    @app.on("s")
    async def handle(text: str) -> None:
        raise Dead("no use")

    with app.test() as t:
        entry_id = handle.send("x")
        t.run()
        [dead] = t.dead("s")
        trace = dead.pop("_traceback")
        assert 'raise Dead("no use")' in trace
        assert dead == {
            "data": "x",
            "_reason": "no use",
            "_source_stream": "s",
            "_source_id": entry_id,
            "_attempts": "1",
            "_group": "g",
            "_consumer": "test",
        }


def test_a_handler_that_raises_cancelled_has_failed(app: App) -> None:
    ran: list[int] = []

    @app.on("s", attempts=2, backoff=(10, 10), timeout=5)
    async def handle(number: int, msg: Message) -> None:
        ran.append(msg.attempt)
        raise asyncio.CancelledError

    with app.test() as t:
        handle.send(1)
        t.run()
        assert ran == [1]  # the second attempt waits for its pause
        t.advance(10)
        t.run()
        assert t.dead("s")[0]["_reason"] == "CancelledError: "


def test_async_handlers_and_asend(app: App) -> None:
    ran: list[str] = []

    @app.on("s")
    async def handle(text: str) -> None:
        await asyncio.sleep(0)
        ran.append(text)

    async def main() -> None:
        with app.test() as t:
            await handle.asend("a")
            t.run()

    asyncio.run(main())
    assert ran == ["a"]


def test_a_dedup_name_is_used_once(app: App) -> None:
    @app.on("s")
    def handle(text: str, msg: Message) -> None:
        msg.send("out", text, dedup="same")

    with app.test() as t:
        assert handle.send("a", dedup="x") is not None
        assert handle.send("b", dedup="x") is None
        assert handle.send("c", dedup="y", delay=5) is not None
        assert handle.send("d", dedup="y") is None
        t.run()
        t.advance(5)
        t.run()
        assert [entry["data"] for entry in t.entries("s")] == ["a", "c"]
        assert len(t.entries("out")) == 1
        t.advance(86_400)
        assert handle.send("e", dedup="x") is not None


def test_a_dedup_name_is_remembered_until_a_day_after_a_long_delay(app: App) -> None:
    @app.on("s")
    def handle(text: str) -> None: ...

    with app.test() as t:
        assert handle.send("a", delay=2 * 86_400, dedup="x") is not None
        t.advance(3 * 86_400 - 1)
        assert handle.send("b", dedup="x") is None
        t.advance(2)
        assert handle.send("c", dedup="x") is not None


def test_a_weekly_schedule_runs_once_however_often_workers_start(app: App) -> None:
    ran: list[str] = []

    @app.every("0 0 * * 1")
    def weekly() -> None:
        ran.append("weekly")

    with app.test() as t:
        [(handler, schedule)] = app.schedules
        for _ in range(4):  # a worker starts every day
            send_next(handler, schedule, t.now())
            t.clock.at_ms += 86_500_000
        t.clock.at_ms += 7 * 86_400_000
        t.run()
    assert ran == ["weekly"]


def test_a_schedule_runs_once_per_time(app: App) -> None:
    ran: list[str] = []

    @app.every("0 4 * * *", tz="Europe/Berlin")
    async def nightly() -> None:
        ran.append("nightly")

    @app.every("*/10 * * * *")
    def often(msg: Message) -> None:
        ran.append(msg.stream)

    with app.test() as t:
        t.advance(3 * 3600 - 1)
        t.run()
        assert ran.count("every:g:often") == 17
        assert ran.count("nightly") == 0
        t.advance(1)
        t.run()
        assert (ran.count("every:g:often"), ran.count("nightly")) == (18, 1)


def test_a_failed_batch_runs_one_by_one(app: App) -> None:
    sizes: list[int] = []

    @app.on("s", batch=10, attempts=2, backoff=(1, 1))
    def load(clicks: list[Click], msg: Message) -> None:
        sizes.append(len(clicks))
        if any(click.page == "bad" for click in clicks):
            raise ValueError("bad")
        msg.send("out", [click.page for click in clicks])

    with app.test() as t:
        for page in ("a", "bad", "b"):
            load.send(Click(page))
        t.run()
        t.advance(1)
        t.run()
        assert sizes == [3, 1, 1, 1]
        assert [entry["data"] for entry in t.entries("out")] == ['["a"]', '["b"]']
        assert [entry["data"] for entry in t.dead("s")] == ['{"page":"bad","count":1}']


def test_effects_in_a_database_happen_once(app: App) -> None:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE pages (page TEXT)")
    database.commit()
    fails = [True]

    @app.on("s", batch=10, lease=30)
    def load(clicks: list[Click], msg: Message) -> None:
        with msg.once(database, clicks) as new:
            database.executemany("INSERT INTO pages VALUES (?)", [(one.page,) for one in new])
            if fails.pop() if fails else False:
                raise ValueError("rolled back")

    with app.test() as t:
        [feed] = t.feeds("dies")
        for page in ("a", "b"):
            load.send(Click(page))
        t.run()  # fails once
        t.advance(1)
        entries = feed.take(10).entries
        for entry in entries:
            t.attempt(feed, [entry])  # and dies before it settles
        t.advance(30)
        t.run()
        assert t.pending("s") == 0
    assert database.execute("SELECT page FROM pages ORDER BY page").fetchall() == [("a",), ("b",)]
    database.close()


def test_threads_that_share_a_connection_lose_and_double_no_effect(app: App) -> None:
    ledger = sqlite3.connect(":memory:", check_same_thread=False)
    ledger.execute("CREATE TABLE payments (number INTEGER)")
    ledger.commit()
    done: list[int] = []

    @app.on("s", concurrency=8, attempts=20, backoff=(0, 0))
    def pay(number: int, msg: Message) -> None:
        with msg.once(ledger) as new:
            if new:
                ledger.execute("INSERT INTO payments VALUES (?)", (number,))
            if number % 2 and msg.attempt < 3:
                raise ValueError("rolled back")
        done.append(number)

    worker = app.worker()
    for number in range(200):
        pay.send(number)
    worker.start()
    wait_until(lambda: len(done) >= 200)
    assert worker.stop()
    paid = [number for (number,) in ledger.execute("SELECT number FROM payments")]
    assert sorted(paid) == list(range(200))
    ledger.close()
    app.close()


def test_a_failed_commit_leaves_nothing_for_the_next_block(app: App) -> None:
    ledger = sqlite3.connect(":memory:")
    ledger.execute("PRAGMA foreign_keys = ON")
    ledger.execute("CREATE TABLE people (name TEXT PRIMARY KEY)")
    ledger.execute("CREATE TABLE pets (owner TEXT REFERENCES people DEFERRABLE INITIALLY DEFERRED)")

    @app.on("s", attempts=1)
    def adopt(owner: str, msg: Message) -> None:
        with msg.once(ledger):
            if owner == "nobody":
                ledger.execute("INSERT INTO pets VALUES ('nobody')")  # fails at the commit

    with app.test() as t:
        adopt.send("nobody")
        adopt.send("ann")
        t.run()
        assert len(t.dead("s")) == 1
    assert ledger.execute("SELECT count(*) FROM pets").fetchall() == [(0,)]
    assert ledger.execute("SELECT count(*) FROM penstock_inbox").fetchall() == [(1,)]
    ledger.close()


def test_once_refuses_autocommit_and_nesting(app: App) -> None:
    database = sqlite3.connect(":memory:")

    class Autocommit:
        autocommit = True

    class OfMySql:
        def get_autocommit(self) -> bool:
            return True

    @app.on("s", attempts=1)
    def handle(which: int, msg: Message) -> None:
        if which < 2:
            with msg.once([Autocommit(), OfMySql()][which]):
                pass
        with msg.once(database), msg.once(database):
            pass

    with app.test() as t:
        for which in range(3):
            handle.send(which)
        t.run()
        reasons = [entry["_reason"] for entry in t.dead("s")]
        assert ["autocommit mode" in reason for reason in reasons] == [True, True, False]
        assert "already open" in reasons[2]
    assert not database.in_transaction
    database.close()


def test_partitions_share_out_the_keys(app: App) -> None:
    ran: list[str] = []

    @app.on("s", key="page", partitions=4)
    def handle(click: Click, msg: Message) -> None:
        assert msg.key == click.page
        ran.append(click.page)

    with app.test() as t:
        for number in range(20):
            handle.send(Click(str(number)))
        used = [t.database.xlen(stream) for stream in handle.streams()]
        assert sum(used) == 20
        assert all(used)
        t.run()
        assert sorted(ran, key=int) == [str(number) for number in range(20)]
        with pytest.raises(BadPayload, match="no key 'page'"):
            handle.send({"other": 1})


def test_keys_of_a_megabyte_keep_their_order(app: App) -> None:
    ran: list[tuple[str, int]] = []

    @app.on("s", key="page", partitions=2)
    def handle(click: Click) -> None:
        ran.append((click.page[-1], click.count))

    with app.test() as t:
        for number in range(6):
            handle.send(Click("x" * 1_000_000 + str(number % 2), number))
        t.run()
        assert [count for last, count in ran if last == "0"] == [0, 2, 4]
        assert [count for last, count in ran if last == "1"] == [1, 3, 5]


def test_an_entry_without_its_key_is_dead(app: App) -> None:
    @app.on("s", key="page")
    def handle(payload: dict[str, Any]) -> None: ...

    with app.test() as t:
        t.database.xadd("s", {"data": b"{}"})
        t.run()
        assert t.dead("s")[0]["_reason"] == "the payload has no key 'page'"


def test_a_rate_limits_what_is_taken() -> None:
    limiter = Limiter(per_second(10), 0.0)
    assert limiter.reserve(100, 0.0) == 10
    assert limiter.reserve(1, 0.05) == 0
    assert limiter.seconds_until_one() == pytest.approx(0.05)
    assert limiter.reserve(1, 0.25) == 1
    assert limiter.reserve(10, 0.25) == 1
    assert limiter.reserve(100, 100.0) == 10
    limiter.give_back(4)
    assert limiter.reserve(100, 100.0) == 4


@pytest.mark.parametrize(
    "options",
    [
        {"attempts": 0},
        {"backoff": (5, 1)},
        {"backoff": (1, 1_000_000)},
        {"lease": 0},
        {"concurrency": 0},
        {"batch": 2000},
        {"wait": -1},
        {"partitions": 2},
        {"partitions": 0, "key": "k"},
        {"key": "k", "batch": 2},
        {"timeout": 5},
        {"timeout": 0, "processes": True},
    ],
)
def test_bad_options_are_refused(app: App, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):

        @app.on("s", **options)
        def handle(payload: list[int]) -> None: ...


def test_bad_apps_are_refused(app: App) -> None:
    with pytest.raises(ConfigError, match="cron expression"):
        app.every("every day")
    with pytest.raises(ConfigError, match="time zone"):
        app.every("* * * * *", tz="Atlantis/Town")
    with pytest.raises(ConfigError, match="not the address"):
        App("http://example.com", group="g").backend.ask("PING")
    with pytest.raises(ConfigError):
        App("memory:", group="")
    with pytest.raises(ConfigError):
        per_second(0)
    with pytest.raises(ConfigError, match="no handlers"):
        app.worker()

    @app.on("s")
    def first(text: str) -> None: ...

    with pytest.raises(ConfigError, match="already has the handler"):

        @app.on("s")
        def second(text: str) -> None: ...

    with pytest.raises(ConfigError, match="more than a payload"):

        @app.on("t")
        def third(a: int, b: int, c: int) -> None: ...


def test_a_busy_port_for_metrics_ends_a_worker_before_it_takes_anything(app: App) -> None:
    @app.on("s")
    def handle(text: str) -> None: ...

    handle.send("a")
    with (
        socket.create_server(("127.0.0.1", 0)) as busy,
        pytest.raises(ConfigError, match="cannot serve metrics"),
    ):
        app.run(metrics=busy.getsockname()[1])
    with pytest.raises(CommandError, match="NOGROUP"):
        app.backend.ask("XPENDING", "s", "g")
    app.close()


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """examples/shop.py: orders, payments, mail, and what fails."""
    found = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "shop.py"), run_name="shop")
    found["main"]()
    found["ledger"].close()
    assert capsys.readouterr().out.splitlines() == [
        "19 attempts, 7 payments, 8 mails",
        "dead in orders: an order of -5 cents",
        "dead in mail: 'nobody' is no address",
    ]
