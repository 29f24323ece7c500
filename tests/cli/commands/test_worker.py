"""`penstock worker`: finds the App, runs it, and stops by signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.support.command_line import CommandLine
from tests.support.servers.redis_server import free_port

SECONDS_MAX = 60.0

SHOP = """
import os, time
from penstock.work import App, Message
app = App(os.environ["PENSTOCK_URL"], group="g")
other = 5

@app.on("jobs", lease=1, concurrency=4)
def job(number: int, msg: Message) -> None:
    if number == 1 and msg.attempt == 1:
        os._exit(7)
    if number == 2:
        open("begun", "w").close()
    while number == 2 and not os.path.exists("finish"):
        time.sleep(0.01)
    msg.send("out", number)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "raising.py").write_text("1 / 0")
    (tmp_path / "broken.py").write_text("import does_not_exist")
    return tmp_path


@pytest.fixture
def started(folder: Path, penstock: CommandLine) -> Iterator[subprocess.Popen[bytes]]:
    """A supervisor with one worker, which has added the consumer group."""
    command = [sys.executable, "-m", "penstock", "worker", "shop:app", "--processes", "1"]
    environment = {**_environment(), **penstock.environment}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--drain", "60"], cwd=folder, env=environment, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _environment() -> dict[str, str]:
    paths = [str(Path(path).absolute()) for path in sys.path if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def wait_for_out(penstock: CommandLine, count: int) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while penstock.server.client.xlen("out") < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_worker_that_dies_is_started_again_and_a_signal_drains(
    folder: Path, penstock: CommandLine, started: subprocess.Popen[bytes]
) -> None:
    client = penstock.server.client
    for number in (1, 3):
        client.xadd("jobs", {"data": number})
    wait_for_out(penstock, 2)
    client.xadd("jobs", {"data": 2})
    deadline = time.monotonic() + SECONDS_MAX
    while not (folder / "begun").exists():
        assert time.monotonic() < deadline
    started.send_signal(signal.SIGTERM)
    (folder / "finish").touch()
    assert started.wait(SECONDS_MAX) == 0
    assert client.xlen("out") == 3
    assert client.xpending("jobs", "g")["pending"] == 0
    assert "ended with code 7: starting another" in (folder / "log").read_text()


def test_a_second_signal_gives_back_what_runs(folder: Path, penstock: CommandLine) -> None:
    port = free_port()
    command = [sys.executable, "-m", "penstock", "worker", "shop:app", "--drain", "3600"]
    environment = {**_environment(), **penstock.environment}
    client = penstock.server.client
    client.xgroup_create("jobs", "g", "0", mkstream=True)
    client.xadd("jobs", {"data": 2})  # runs until there is a file `finish`
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--metrics", str(port)], cwd=folder, env=environment, stderr=log
        )
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while not (folder / "begun").exists():
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGTERM)
        while _readiness(port) != "the worker is stopping\n":
            assert time.monotonic() < deadline
        assert process.poll() is None  # it waits for the job
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS_MAX) == 1
    finally:
        process.kill()
        process.wait()
    assert "some attempts did not finish in time" in (folder / "log").read_text()
    [row] = client.xpending_range("jobs", "g", "-", "+", 10)
    assert (row["consumer"], row["times_delivered"]) == (b"waiting", 1)


def _readiness(port: int) -> str:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        return str(error.read().decode())


def test_changed_code_is_loaded_again(folder: Path, penstock: CommandLine) -> None:
    command = [sys.executable, "-m", "penstock", "worker", "shop:app", "--reload"]
    environment = {**_environment(), **penstock.environment}
    client = penstock.server.client
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stderr=log)
    try:
        client.xadd("jobs", {"data": 3})
        wait_for_out(penstock, 1)
        (folder / "shop.py").write_text(SHOP.replace('"out", number', '"out", -number'))
        deadline = time.monotonic() + SECONDS_MAX
        while "code has changed" not in (folder / "log").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        while (folder / "log").read_text().count("worker=") < 3:  # started, stopped, started
            assert time.monotonic() < deadline
            time.sleep(0.02)
        client.xadd("jobs", {"data": 4})
        wait_for_out(penstock, 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS_MAX) == 0
    finally:
        process.kill()
        process.wait()
    assert [fields for _, fields in client.xrange("out") or ()] == [
        {b"data": b"3"},
        {b"data": b"-4"},
    ]


def test_a_name_that_is_no_app_is_refused(
    folder: Path, penstock: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PENSTOCK_URL", penstock.environment["PENSTOCK_URL"])
    for name, text in (
        ("shop", "'shop' is not MODULE:APP"),
        ("shop:other", "shop has no App named other"),
        ("raising:app", "cannot import raising: ZeroDivisionError: division by zero"),
        ("broken:app", "cannot import broken: No module named 'does_not_exist'"),
    ):
        assert penstock.error("worker", name) == (2, text)


def test_an_embedded_database_has_one_process(
    tmp_path: Path, penstock: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "from penstock.work import App\napp = App('file:data', group='g')\n"
    (tmp_path / "embedded_shop.py").write_text(text)
    code, error = penstock.error("worker", "embedded_shop:app", "--processes", "2")
    assert code == 1
    assert error.startswith("only one process can have an embedded database open")
    assert penstock.error("worker", "embedded_shop:app") == (1, "the App has no handlers")
