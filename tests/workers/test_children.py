"""Handlers in child processes: what dies, forks, hangs or cannot start."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ConfigError
from penstock.work import App
from penstock.work.running import execution
from tests.support.work.waiting import wait_until

HEAD = """
import os, signal, sys, time
from pathlib import Path
from penstock.work import App, Message
app = App('memory:', group='g')
"""

Make = Callable[[str, str], App]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Writes a module with an App, which children import too."""
    monkeypatch.syspath_prepend(str(tmp_path))
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)
    made: list[App] = []

    def write(name: str, text: str) -> App:
        (tmp_path / f"{name}.py").write_text(HEAD + text)
        importlib.invalidate_caches()
        made.append(importlib.import_module(name).app)
        return made[-1]

    yield write
    for app in made:
        app.close()


def entries(app: App, stream: str) -> list[Any]:
    """The flat lists of fields."""
    found = app.backend.ask("XRANGE", stream, "-", "+")
    return [fields for _, fields in (found if isinstance(found, list) else found.entries())]


def reasons(app: App) -> list[str]:
    return [
        dict(zip(fields[::2], fields[1::2], strict=True))[b"_reason"].decode()
        for fields in entries(app, "jobs:dead")
    ]


def outputs(app: App) -> list[Any]:
    return [fields[1] for fields in entries(app, "out")]


def test_children_that_die_are_named_and_replaced(
    caplog: pytest.LogCaptureFixture, make: Make
) -> None:
    caplog.set_level(logging.WARNING)
    app = make(
        "children_that_die",
        """
@app.on('jobs', processes=True, concurrency=1, attempts=1, timeout=0.3)
def job(number: int, msg: Message) -> None:
    if number == 1: os._exit(7)
    if number == 2: time.sleep(30)
    msg.send('out', os.getpid())
""",
    )
    worker = app.worker()
    worker.start()
    for number in (1, 2, 3):
        app.handlers["jobs"].send(number)
    wait_until(lambda: len(reasons(app)) == 2 and len(outputs(app)) == 1)
    assert worker.stop()
    died, late = sorted(reasons(app))
    assert died.startswith("ProcessDied: process ")
    assert died.endswith("ended with code 7")
    assert late == "TimeoutError: after 0.3 s"
    assert "outcome=died process" in caplog.text


@pytest.mark.parametrize("processes", [True, False])
def test_a_handler_that_forks_and_returns_twice_runs_once(make: Make, processes: bool) -> None:
    app = make(
        f"children_that_fork_{processes}",
        f"""
@app.on('jobs', processes={processes}, concurrency=1, attempts=1)
def job(number: int, msg: Message) -> None:
    copy = os.fork() if number % 2 else None
    msg.send('out', number)
    if copy == 0 and number == 3: raise ValueError
    if copy: os.waitpid(copy, 0)
""",
    )
    worker = app.worker()
    for number in range(6):
        app.handlers["jobs"].send(number)
    worker.start()
    wait_until(lambda: len(outputs(app)) == 6)
    assert worker.stop()
    assert outputs(app) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert app.backend.ask("XLEN", "jobs:dead") == 0


def test_the_death_of_a_child_is_seen_although_its_fork_lives_on(
    make: Make, tmp_path: Path
) -> None:
    app = make(
        "children_with_a_fork",
        f"""
@app.on('jobs', processes=True, concurrency=1, attempts=1)
def job(number: int) -> None:
    copy = os.fork()
    if copy == 0:
        signal.pause()
    Path({str(tmp_path / "pid")!r}).write_text(str(copy))
    os._exit(3)
""",
    )
    worker = app.worker()
    worker.start()
    app.handlers["jobs"].send(1)
    wait_until(lambda: reasons(app))
    assert reasons(app)[0].endswith("ended with code 3")
    assert worker.stop()
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_a_child_that_breaks_its_pipe_is_replaced(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.work.running.children.END_SECONDS_MAX", 0.2)
    app = make(
        "children_that_close_files",
        """
@app.on('jobs', processes=True, concurrency=1, attempts=1)
def job(number: int, msg: Message) -> None:
    if number == 1:
        os.closerange(3, 1000)
        signal.pause()
    msg.send('out', number)
""",
    )
    worker = app.worker()
    worker.start()
    for number in (1, 2):
        app.handlers["jobs"].send(number)
    wait_until(lambda: outputs(app) == [b"2"])
    assert worker.stop()
    assert reasons(app)[0].endswith("broke its pipe")


def test_a_module_that_children_cannot_import_costs_no_attempts(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(execution, "START_PAUSE_SECONDS", 0.01)
    app = make(
        "children_without_a_module",
        f"""
import multiprocessing
if multiprocessing.parent_process() and not Path({str(tmp_path / "good")!r}).exists():
    raise RuntimeError("not yet installed")

@app.on('jobs', processes=True, concurrency=1, attempts=1)
def job(number: int, msg: Message) -> None:
    msg.send('out', msg.attempt)
""",
    )
    worker = app.worker()
    worker.start()
    app.handlers["jobs"].send(1)
    wait_until(lambda: caplog.text.count("RuntimeError: not yet installed") >= 2)
    (tmp_path / "good").touch()
    wait_until(lambda: outputs(app) == [b"1"])
    assert worker.stop()
    assert reasons(app) == []


@pytest.mark.parametrize("key", [None, "data"])
def test_a_suspect_whose_child_cannot_start_stays_a_suspect(
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    key: str | None,
) -> None:
    monkeypatch.setattr(execution, "START_PAUSE_SECONDS", 0.2)
    app = make(
        f"children_that_cannot_start_{key}",
        f"""
import multiprocessing
if multiprocessing.parent_process() and not Path({str(tmp_path / "good")!r}).exists():
    raise RuntimeError("not yet installed")

@app.on('jobs', processes=True, concurrency=1, key={key!r})
def job(payload: dict, msg: Message) -> None:
    msg.send('out', msg.attempt)
""",
    )
    app.handlers["jobs"].send({"data": "x"})
    app.backend.ask("XGROUP", "CREATE", "jobs", "g", "0")
    keys = ["jobs", "jobs:dead", "jobs:delayed"]
    app.backend.work("TAKE", keys, ["g", "dies", 1, 8, 1, "ANY"])  # and dies
    worker = app.worker()
    worker.start()
    wait_until(lambda: caplog.text.count("RuntimeError: not yet installed") >= 2)
    [row] = app.backend.ask("XPENDING", "jobs", "g", "-", "+", 10)
    assert row[1] != b"waiting"
    (tmp_path / "good").touch()
    wait_until(lambda: outputs(app) == [b"2"])
    assert worker.stop()


def test_a_suspect_runs_in_a_child_beside_a_long_job(make: Make, tmp_path: Path) -> None:
    app = make(
        "children_side_by_side",
        f"""
@app.on('jobs', processes=True, concurrency=2, lease=300)
def job(number: int, msg: Message) -> None:
    msg.send('out', number)
    while number == 1 and not Path({str(tmp_path / "go")!r}).exists(): time.sleep(0.01)
""",
    )
    app.backend.ask("XGROUP", "CREATE", "jobs", "g", "0", "MKSTREAM")
    job = app.handlers["jobs"]
    job.send(2)
    keys = ["jobs", "jobs:dead", "jobs:delayed"]
    app.backend.work("TAKE", keys, ["g", "dies", 1, 8, 1, "ANY"])  # and dies
    job.send(1)
    worker = app.worker()
    worker.start()
    wait_until(lambda: outputs(app) == [b"2"])
    (tmp_path / "go").touch()
    wait_until(lambda: outputs(app) == [b"2", b"1"])
    assert worker.stop()


def test_a_function_that_no_child_can_import_is_refused() -> None:
    app = App("memory:", group="g")
    with pytest.raises(ConfigError, match="import by its name"):

        @app.on("jobs", processes=True)
        def job(number: int) -> None: ...
