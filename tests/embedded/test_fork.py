"""A forked copy of a process: it refuses to use a database that the parent has opened."""

from __future__ import annotations

import gc
import multiprocessing
import os
import socket
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock
from tests.embedded.test_database import Worker, started
from tests.embedded.test_lock import wait_until

BEFORE_A_FORK = "was opened before a fork"

CALLS: dict[str, Callable[[penstock.Database], Any]] = {
    "xadd": lambda db: db.xadd("s", {"a": "b"}),
    "xlen": lambda db: db.xlen("s"),
    "blocking xread": lambda db: db.xread({"s": "$"}, block=0),
    "pipeline": lambda db: db.pipeline().xadd("s", {"a": "b"}).execute(),
    "watch": lambda db: db.pipeline().watch("s"),
    "save": lambda db: db.save(),
    "bgrewriteaof": lambda db: db.bgrewriteaof(),
    "serve": lambda db: db.serve(port=0),
}


@pytest.fixture(params=["memory", "directory"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "data" if request.param == "directory" else None


def in_fork(check: Callable[[], None]) -> None:
    """Run something in a forked copy of this process; it must not fail there."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # this process has threads: that is the point
        child = os.fork()
    if child == 0:
        try:
            check()
        except BaseException:  # noqa: BLE001 - the child must not run the parent's code
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def refuse_all(db: penstock.Database) -> None:
    for call in CALLS.values():
        with pytest.raises(penstock.DatabaseClosed, match=BEFORE_A_FORK):
            call(db)


def test_a_forked_copy_refuses_every_call(path: Path | None) -> None:
    with penstock.open(path) as db:
        db.xadd("s", {"a": "b"}, id="1-0")
        in_fork(lambda: refuse_all(db))
        assert db.xadd("s", {"a": "b"}, id="2-0") == b"2-0"
        assert db.xlen("s") == 2


def test_a_process_of_multiprocessing_refuses_every_call(path: Path | None) -> None:
    with penstock.open(path) as db:
        child = multiprocessing.get_context("fork").Process(target=refuse_all, args=(db,))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child.start()
        child.join()
        assert child.exitcode == 0
        assert db.xadd("s", {"a": "b"})


def test_a_forked_copy_may_close_and_forget_its_database(path: Path | None) -> None:
    """Without a warning, a wait for the parent's threads or a change of its files."""
    db = penstock.open(path)
    serving = db.serve(port=0)
    reader = started(lambda: db.xread({"s": "0"}, block=0), db)

    def close() -> None:
        nonlocal db
        with db:
            pass
        db.close()
        del db
        gc.collect()

    in_fork(close)
    db.xadd("s", {"a": "b"})
    assert reader.result()
    serving.close()
    db.close()


def test_a_forked_copy_refuses_while_another_thread_held_the_lock(path: Path | None) -> None:
    """The thread does not exist in the copy, so a wait for the lock would never end."""
    with penstock.open(path) as db:
        stop = threading.Event()

        def add() -> None:
            while not stop.is_set():
                db.xadd("s", {"a": "b"}, maxlen=10)

        adders = [Worker(add) for _ in range(2)]
        for _ in range(20):
            in_fork(lambda: refuse_all(db))
        stop.set()
        for adder in adders:
            adder.result()


def test_a_forked_copy_opens_a_database_of_its_own(tmp_path: Path) -> None:
    with penstock.open(tmp_path / "parent"):

        def use_another() -> None:
            with penstock.open(tmp_path / "child") as other:
                other.xadd("s", {"a": "b"})
            with pytest.raises(penstock.DirectoryInUse):
                penstock.open(tmp_path / "parent")

        in_fork(use_another)
    with penstock.open(tmp_path / "child") as db:
        assert db.xlen("s") == 1


def can_serve(db: Any, port: int) -> bool:
    """Whether the port is free. A client of another test may have it for a moment."""
    try:
        db.serve(port=port).close()
    except penstock.ConfigError:
        return False
    return True


def test_a_fork_does_not_keep_the_sockets_of_a_served_database(path: Path | None) -> None:
    with penstock.open(path) as db:
        serving = db.serve(port=0)
        client = socket.create_connection(("127.0.0.1", serving.port or 0), timeout=20)
        client.sendall(b"PING\r\n")
        assert client.recv(100) == b"+PONG\r\n"
        released, release = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(release)
            os.read(released, 1)  # lives until the parent is done
            os._exit(0)
        try:
            serving.close()
            assert client.recv(100) == b"", "the child keeps the connection open"
            wait_until(lambda: can_serve(db, serving.port or 0))
        finally:
            client.close()
            os.close(release)
            os.close(released)
            os.waitpid(pid, 0)
