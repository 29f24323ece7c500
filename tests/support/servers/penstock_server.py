"""Runs a penstock server for tests that connect to it over a socket.

with running_penstock("--requirepass", "secret") as server:
    server.port, server.pid, server.log()

with running_penstock(data=folder) as server:
    server.kill(), server.start()
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

from tests.support.servers.redis_server import free_port

START_SECONDS_MAX = 30.0
END_SECONDS_MAX = 20.0


class PenstockServer:
    """A server process on 127.0.0.1. `folder` is temporary; `data` may be a directory that is kept."""

    def __init__(self, arguments: list[str], folder: Path, data: Path) -> None:
        self._arguments = arguments
        self.folder = folder
        self.data = data
        self.log_path = folder / "penstock.log"
        self.port = 0
        self.process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """The pid of the current process, or of the last one."""
        return self.process.pid

    def client(self, **options: object) -> redis.Redis:
        """A new redis-py client."""
        return redis.Redis(port=self.port, **options)  # type: ignore[arg-type]

    def log(self) -> str:
        """The log so far, including that of earlier starts."""
        return self.log_path.read_text()

    def start(self, *more: str) -> None:
        """Start the server, on the same data and a new port, and wait until it is ready."""
        self.begin(*more)
        self.wait_until_ready()

    def begin(self, *more: str) -> None:
        """Start the server without waiting until it is ready."""
        # Another process may have taken the old port.
        self.port = free_port()
        # The settings file comes first; later arguments take precedence.
        file = self._arguments[:1] if not self._arguments[0].startswith("--") else []
        command = [*penstock_command("serve"), *file, "--port", str(self.port)]
        # Its own session and output file: a server that inherits our pipes keeps their readers waiting.
        with self.log_path.open("ab") as output:
            self._logged_before = output.tell()
            self.process = subprocess.Popen(
                [*command, *self._arguments[len(file) :], *more],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(_absolute_paths())},
            )

    def kill(self) -> None:
        """Send SIGKILL and wait for the end. The system still writes what the process has written."""
        assert self.end(signal.SIGKILL) == -signal.SIGKILL

    def end(self, how: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end, and return the exit status."""
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end, and return the exit status."""
        return self.process.wait(timeout=END_SECONDS_MAX)

    def children(self) -> list[int]:
        """The pids of the child processes that still exist."""
        try:
            return [
                int(pid)
                for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            ]
        except OSError:  # the process has just ended
            return []

    def wait_until_ready(self) -> None:
        """Wait until the log says so. Raises: RuntimeError if the server stops, or takes too long."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while self.process.poll() is None and time.monotonic() < deadline:
            if b" * ready on " in self.log_path.read_bytes()[self._logged_before :]:
                return
            time.sleep(0.02)
        raise RuntimeError(f"penstock does not start:\n{self.log()}")


def penstock_command(*arguments: str) -> list[str]:
    """The command that starts penstock, with the build that the test itself uses."""
    return [sys.executable, "-m", "penstock", *arguments]


@contextmanager
def running_penstock(
    *arguments: str, file: str | None = None, data: Path | None = None, wait: bool = True
) -> Iterator[PenstockServer]:
    """Start `penstock serve` on a free port in a temporary folder, and stop it afterwards.

    `arguments` are directives, as on the command line; `file` is the text of a settings file. `--port 0`
    among the arguments starts a server without TCP. `data` is a directory that is kept; without it nothing
    is stored, unless the arguments include `--appendonly yes`. `wait`: wait until the server has loaded its
    data and is ready.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-") as name:
        folder = Path(name)
        words = []
        if file is not None:
            (folder / "penstock.conf").write_text(file)
            words.append(str(folder / "penstock.conf"))
        words += ["--dir", str(data or folder / "data")]
        if data is None:
            words += ["--appendonly", "no"]
        server = PenstockServer([*words, *arguments], folder, data or folder / "data")
        try:
            if wait:
                server.start()
            else:
                server.begin()
            yield server
        finally:
            _end(server.process)


def _absolute_paths() -> list[str]:
    """PYTHONPATH with absolute paths: the server runs in another folder."""
    given = os.environ.get("PYTHONPATH", "")
    return [str(Path(part).absolute()) for part in given.split(os.pathsep) if part]


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(timeout=END_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
