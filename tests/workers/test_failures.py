"""Workers whose server refuses, whose replies are lost, or that fail themselves."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from penstock.errors import CommandError, ConnectionLost
from penstock.work import App, Dead, Handler, Message
from penstock.work.backend import Backend, ServerBackend, Word, _refusal
from penstock.work.running import lane
from penstock.work.running.metrics import MetricsServer
from tests.support.work.backends import PROGRAMS, running_url
from tests.support.work.faults import Between, FailingBackend
from tests.support.work.waiting import SECONDS_MAX, wait_until


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "PAUSE_SECONDS", 0.001)


@pytest.fixture
def app() -> Iterator[App]:
    made = App("memory:", group="g")
    yield made
    made.close()


def pending(app: App, stream: str) -> list[Any]:
    """[id, consumer, idle, attempts] of what is not settled."""
    rows: list[Any] = app.backend.ask("XPENDING", stream, "g", "-", "+", 100)
    return rows


def refusal(app: App, *words: str) -> str:
    """The code of the error, or nothing."""
    try:
        app.backend.ask(*words)
    except CommandError as error:
        return error.code
    return ""


def status(address: str) -> int:
    try:
        with urlopen(address) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("command not allowed when used memory > 'maxmemory'.", "OutOfMemoryError", "OOM"),
        ("You can't write against a read only replica.", "ReadOnlyError", "READONLY"),
        ("No permissions to access a key", "NoPermissionError", "NOPERM"),
        ("NOGROUP No such key 's'", "ResponseError", "NOGROUP"),
        ("wrong number of keys", "ResponseError", "ERR"),
        ("3999 127.0.0.1:6381", "MovedError", "MOVED"),
        ("3999 127.0.0.1:6381", "AskError", "ASK"),
        (
            "Error running script (call to f_1a2b): @user_script:100: NOGROUP No such key 's'",
            "ResponseError",
            "NOGROUP",
        ),
    ],
)
def test_refusals_keep_their_code(text: str, kind: str, code: str) -> None:
    assert _refusal(text, kind).code == code


@pytest.mark.parametrize("name", ["penstock", "redis"])
def test_a_send_that_is_not_permitted_fails_its_own_attempt_only(name: str) -> None:
    with running_url(name) as url:
        admin = ServerBackend(url)
        admin.ask("ACL", "SETUSER", "worker", "on", ">pw", "+@all", "~jobs*", "~out")
        app = App(url.replace("//", "//worker:pw@"), group="g")

        @app.on("jobs", attempts=1)
        def job(number: int, msg: Message) -> None:
            msg.send("secret" if number == 1 else "out", number)

        worker = app.worker()
        for number in range(5):
            job.send(number)
        worker.start()
        wait_until(lambda: admin.ask("XLEN", "out") == 4)
        wait_until(lambda: admin.ask("XLEN", "jobs:dead") == 1)
        assert worker.stop()
        [(_, fields)] = admin.ask("XRANGE", "jobs:dead", "-", "+")
        assert any(piece.startswith(b"CommandError: NOPERM") for piece in fields)
        assert pending(app, "jobs") == []
        app.close()
        admin.close()


def test_a_user_who_may_not_ask_for_info_can_work() -> None:
    with running_url("redis") as url:
        admin = ServerBackend(url)
        admin.ask("ACL", "SETUSER", "worker", "on", ">pw", "+@all", "-info", "~*")
        app = App(url.replace("//", "//worker:pw@"), group="g")

        @app.on("jobs")
        def job(number: int, msg: Message) -> None:
            msg.send("out", number)

        worker = app.worker()
        worker.start()
        job.send(1)
        wait_until(lambda: admin.ask("XLEN", "out") == 1)
        assert worker.stop()
        app.close()
        admin.close()


def test_leases_are_renewed_although_all_connections_are_in_use(
    caplog: pytest.LogCaptureFixture,
) -> None:
    finish = threading.Event()
    begun = threading.Event()
    with running_url("penstock") as url:
        admin = ServerBackend(url)
        app = App(f"{url}?max_connections=2", group="g")

        @app.on("jobs", lease=0.3, concurrency=1)
        def job(number: int) -> None:
            begun.set()
            finish.wait(SECONDS_MAX)

        job.send(1)
        worker = app.worker()
        worker.start()
        assert begun.wait(SECONDS_MAX)
        waits = ThreadPoolExecutor(2)
        waiting = [waits.submit(app.backend.wait, {"other": "0-0"}, 9000) for _ in range(2)]
        wait_until(lambda: b"blocked_clients:2\r" in admin.ask("INFO", "clients"))
        with pytest.raises(ConnectionLost, match="Too many connections"):
            app.backend.ask("PING")
        for _ in range(3):  # idle times fall back: it was renewed
            idle = row(admin)[2]
            wait_until(lambda: row(admin)[2] > idle)  # noqa: B023
            idle = row(admin)[2]
            wait_until(lambda: row(admin)[2] < idle)  # noqa: B023
        assert not any(one.done() for one in waiting)
        admin.ask("XADD", "other", "*", "f", "v")
        waits.shutdown()
        finish.set()
        assert worker.stop()
        assert "cannot renew" not in caplog.text
        app.close()
        admin.close()


def row(backend: Backend) -> Any:
    """The only pending row: [id, consumer, idle, attempts]."""
    [found] = backend.ask("XPENDING", "jobs", "g", "-", "+", 10)
    return found


@pytest.mark.parametrize("name", ["penstock", "redis"])
def test_without_memory_workers_acknowledge_and_go_on_later(name: str) -> None:
    go = threading.Event()
    ran: list[int] = []
    with running_url(name) as url:
        app = App(url, group="g")

        @app.on("jobs", concurrency=3, attempts=1)
        def job(number: int, msg: Message) -> None:
            go.wait(SECONDS_MAX)
            if number == 1:
                msg.send("out", number)
            if number == 2:
                raise Dead("a test")

        @app.on("keyed", key="key", lease=1)
        def keyed(payload: dict[str, int]) -> None:
            go.wait(SECONDS_MAX)
            ran.append(payload["number"])

        for number in range(3):
            job.send(number)
            keyed.send({"key": 1, "number": number})
        worker = app.worker()
        worker.start()
        wait_until(lambda: worker.held_counts() == [("jobs", 3), ("keyed", 1)])
        app.backend.ask("CONFIG", "SET", "maxmemory", 1)
        wait_until(lambda: refusal(app, "SET", "text", "v") == "OOM")
        go.set()
        wait_until(lambda: ran == [0, 1, 2] and not pending(app, "keyed"))
        wait_until(lambda: len(pending(app, "jobs")) <= 2)
        app.backend.ask("CONFIG", "SET", "maxmemory", 0)
        wait_until(lambda: not pending(app, "jobs"))
        assert worker.stop()
        assert app.backend.ask("XLEN", "out") == app.backend.ask("XLEN", "jobs:dead") == 1
        app.close()


class CountingBackend(Between):
    """Counts ordinary commands."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self.asked: Counter[Word] = Counter()

    def ask(self, *words: Word) -> Any:
        self.asked[words[0]] += 1
        return super().ask(*words)


def owners(app: App, handler: Handler[Any]) -> set[bytes | None]:
    """Who owns the partitions of a handler."""
    return {app.backend.ask("GET", f"{stream}:owner:g") for stream in handler.streams()}


@pytest.mark.parametrize("name", ["penstock", *PROGRAMS])
def test_without_memory_workers_start_and_take_streams_over(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[int] = []
    with running_url(name) as url:
        app = App(url, group="g")

        @app.on("jobs")
        def job(number: int) -> None:
            ran.append(number)

        @app.on("keyed", key="key", partitions=2, lease=1)
        def keyed(payload: dict[str, int]) -> None:
            ran.append(payload["number"])

        for stream in ("jobs", *keyed.streams()):
            app.backend.ask("XGROUP", "CREATE", stream, "g", "0", "MKSTREAM")
        job.send(0)
        for number in range(1, 9):
            keyed.send({"key": number, "number": number})
        app.backend.ask("CONFIG", "SET", "maxmemory", 1)
        wait_until(lambda: refusal(app, "SET", "text", "v") == "OOM")
        first = app.worker()
        first.start()
        wait_until(lambda: sorted(ran) == list(range(9)))
        counting = CountingBackend(app.backend)
        app.use(counting)
        second = app.worker()
        second.start()
        wait_until(lambda: counting.asked["SET"] >= 2)  # in vain: it asks for its share
        assert owners(app, keyed) == {first.consumer.encode()}
        assert first.stop()
        wait_until(lambda: owners(app, keyed) == {second.consumer.encode()})
        assert second.stop()
        assert "cannot take" not in caplog.text
        app.backend.ask("CONFIG", "SET", "maxmemory", 0)
        app.close()


@pytest.mark.parametrize("name", ["penstock", "redis"])
def test_without_memory_a_batch_that_sends_is_refused_as_a_whole(name: str) -> None:
    with running_url(name) as url:
        backend = ServerBackend(url)
        backend.ask("XGROUP", "CREATE", "jobs", "g", "0", "MKSTREAM")
        for number in range(2):
            backend.ask("XADD", "jobs", "*", "data", number)
        take: list[Word] = ["g", "c", 60_000, 8, 2, "ANY"]
        [[first, second], *_] = backend.work("TAKE", ["jobs", "jobs:dead", "jobs:delayed"], take)
        backend.ask("CONFIG", "SET", "maxmemory", 1)
        words: list[Word] = ["g", "c", "ACK", first[0], 1, "ACK", second[0], 1]
        sends: list[Word] = ["SEND", 3, 0, 0, 0, 1, 2, "data", "1"]
        dies: list[Word] = ["DEAD", second[0], 1, "a test", ""]
        for last in (sends, dies):
            with pytest.raises(CommandError, match="OOM"):
                backend.work("SETTLE", ["jobs", "jobs:dead", "out"], [*words, *last])
        assert backend.ask("XPENDING", "jobs", "g")[0] == 2
        backend.ask("CONFIG", "SET", "maxmemory", 0)
        assert backend.work("SETTLE", ["jobs", "jobs:dead", "out"], [*words, *sends]) == [1, 1]
        assert backend.ask("XLEN", "out") == 1
        backend.close()


def test_an_unexpected_error_in_settling_does_not_end_it(app: App) -> None:
    ran: list[int] = []

    @app.on("jobs", attempts=1)
    def job(number: int) -> None:
        ran.append(number)

    failing = FailingBackend(app.backend)
    app.use(failing)
    failing.errors["SETTLE"] = RuntimeError("a test")
    worker = app.worker()
    worker.start()
    job.send(1)
    wait_until(lambda: ran == [1] and worker.held_counts() == [("jobs", 0)])
    del failing.errors["SETTLE"]
    job.send(2)
    wait_until(lambda: ran == [1, 2])
    wait_until(lambda: len(pending(app, "jobs")) == 1)  # 1 is taken over when its lease ends
    assert worker.stop()


def test_a_worker_that_cannot_work_is_not_healthy(app: App) -> None:
    ran: list[int] = []

    @app.on("jobs")
    def job(number: int) -> None:
        ran.append(number)

    failing = FailingBackend(app.backend)
    app.use(failing)
    worker = app.worker()
    served = MetricsServer(worker, 0)
    address = f"http://127.0.0.1:{served.port}/healthz"
    assert status(address) == 503  # it has not started
    worker.start()
    assert status(address) == 200
    failing.errors["TAKE"] = ConnectionLost("the server is away")
    job.send(1)
    assert status(address) == 200
    failing.errors["TAKE"] = RuntimeError("a test")
    wait_until(lambda: status(address) == 503)
    assert worker.problems() == ["stream=jobs cannot take: a test"]
    del failing.errors["TAKE"]
    wait_until(lambda: ran == [1])
    wait_until(lambda: status(address) == 200)
    assert worker.stop()
    served.close()


def test_a_batch_runs_even_if_its_rest_cannot_be_read(app: App) -> None:
    ran: list[list[int]] = []

    @app.on("jobs", batch=3, wait=60)
    def load(numbers: list[int]) -> None:
        ran.append(numbers)

    failing = FailingBackend(app.backend)
    app.use(failing)
    worker = app.worker()
    worker.start()
    load.send(1)
    wait_until(lambda: worker.held_counts() == [("jobs", 1)])
    failing.errors["TAKE"] = ConnectionLost("a test")
    load.send(2)  # the batch reads on, and fails
    wait_until(lambda: ran == [[1]])
    del failing.errors["TAKE"]
    load.send(3)
    load.send(4)
    wait_until(lambda: len(ran) == 2)
    assert worker.stop()
    assert ran == [[1], [2, 3, 4]]


class StopsAtSuspect(Between):
    """The worker is stopped while its take of a suspect runs."""

    stop: Callable[[], None]

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self.stopped = threading.Event()

    def work(self, name: str, keys: Sequence[str], arguments: Sequence[Word]) -> Any:
        reply = super().work(name, keys, arguments)
        if arguments[-1] == "ALONE":
            self.stop()
            self.stopped.set()
        return reply


def test_a_suspect_that_was_taken_at_the_stop_is_given_back(app: App) -> None:
    ran: list[int] = []

    @app.on("jobs")
    def job(number: int) -> None:
        ran.append(number)

    stops = StopsAtSuspect(app.backend)
    app.use(stops)
    worker = app.worker()
    stops.stop = worker.begin_stop
    app.backend.ask("XGROUP", "CREATE", "jobs", "g", "0", "MKSTREAM")
    job.send(1)
    keys = ["jobs", "jobs:dead", "jobs:delayed"]
    stops.work("TAKE", keys, ["g", "dies", 1, 8, 1, "ANY"])
    worker.start()
    assert stops.stopped.wait(SECONDS_MAX)
    assert worker.stop()
    assert ran == []
    [row] = pending(app, "jobs")
    assert (row[1], row[3]) == (worker.consumer.encode(), 1)  # still a suspect, and not counted


@pytest.mark.parametrize("code", ["READONLY", "MOVED", "ASK"])
def test_errors_that_pass_are_waited_for(app: App, code: str) -> None:
    @app.on("jobs", attempts=1)
    def job(number: int, msg: Message) -> None:
        msg.send("out", number)

    failing = FailingBackend(app.backend)
    app.use(failing)
    failing.errors["SETTLE"] = CommandError("a test", code)
    worker = app.worker()
    worker.start()
    job.send(1)
    wait_until(lambda: worker.held_counts() == [("jobs", 1)])
    del failing.errors["SETTLE"]
    wait_until(lambda: app.backend.ask("XLEN", "out") == 1)
    assert worker.stop()
    assert app.backend.ask("XLEN", "jobs:dead") == 0
