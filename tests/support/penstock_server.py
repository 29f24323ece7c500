"""A running penstock for the tests that talk to one over a socket.

with running_penstock("--requirepass", "secret") as server:
    server.port, server.pid, server.log()
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tests.support.redis_server import free_port

START_SECONDS_MAX = 30.0
END_SECONDS_MAX = 20.0


class PenstockServer:
    """A process that serves on 127.0.0.1; `folder` is its own and goes with it."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
        self.process = process
        self.port = port
        self.folder = folder
        self.pid = process.pid
        self.log_path = folder / "penstock.log"

    def client(self, **options: object) -> redis.Redis:
        """A new client of redis-py."""
        return redis.Redis(port=self.port, **options)  # type: ignore[arg-type]

    def log(self) -> str:
        """What it has logged so far."""
        return self.log_path.read_text()

    def end(self, how: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit status."""
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end; the exit status."""
        return self.process.wait(timeout=END_SECONDS_MAX)


def penstock_command(*arguments: str) -> list[str]:
    """How a test starts penstock: the build that it runs on itself."""
    return [sys.executable, "-m", "penstock", *arguments]


@contextmanager
def running_penstock(*arguments: str, file: str | None = None) -> Iterator[PenstockServer]:
    """Start `penstock serve` on a free port, in a folder of its own, and end it afterwards.

    `arguments` are directives, as on the command line; `file` is the text of a file of settings. `--port 0`
    among the arguments starts a server without TCP: then it is ready when its log says so.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-") as name:
        folder = Path(name)
        command = penstock_command("serve")
        if file is not None:
            (folder / "penstock.conf").write_text(file)
            command.append(str(folder / "penstock.conf"))
        port = free_port()
        command += ["--port", str(port), "--dir", str(folder / "data"), *arguments]
        # A session and files of its own: it must not hold the pipes on which somebody waits for our end.
        with (folder / "penstock.log").open("ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(_absolute_paths())},
            )
        server = PenstockServer(process, port, folder)
        try:
            _wait_until_ready(server)
            yield server
        finally:
            _end(process)


def _absolute_paths() -> list[str]:
    """The server runs in another folder: relative parts of PYTHONPATH would lead nowhere."""
    given = os.environ.get("PYTHONPATH", "")
    return [str(Path(part).absolute()) for part in given.split(os.pathsep) if part]


def _wait_until_ready(server: PenstockServer) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while server.process.poll() is None and time.monotonic() < deadline:
        if " * ready on " in server.log():
            return
        time.sleep(0.02)
    raise RuntimeError(f"penstock does not start:\n{server.log()}")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(timeout=END_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
