"""A running penstock for the tests that talk to one over a socket.

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
    """A process that serves on 127.0.0.1. `folder` is temporary; `data` may be another folder that stays."""

    def __init__(self, arguments: list[str], folder: Path, data: Path) -> None:
        self._arguments = arguments
        self.folder = folder
        self.data = data
        self.log_path = folder / "penstock.log"
        self.port = 0
        self.process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """The id of the current or last process."""
        return self.process.pid

    def client(self, **options: object) -> redis.Redis:
        """A new client of redis-py."""
        return redis.Redis(port=self.port, **options)  # type: ignore[arg-type]

    def log(self) -> str:
        """The whole log, including earlier starts."""
        return self.log_path.read_text()

    def start(self, *more: str) -> None:
        """Start or restart it on the same data and a new port; it is ready when this returns."""
        for attempts_left in (2, 1, 0):
            self.begin(*more)
            try:
                self.wait_until_ready()
            except RuntimeError:
                # A client of another test can get the port between free_port() and the start.
                if not attempts_left or b"Address already in use" not in self._new_log():
                    raise
            else:
                return

    def _new_log(self) -> bytes:
        """The log since the last start."""
        return self.log_path.read_bytes()[self._logged_before :]

    def begin(self, *more: str) -> None:
        """Start it without waiting until it is ready."""
        # Another process may use the old port by now.
        self.port = free_port()
        # A configuration file comes first; the last argument wins.
        file = self._arguments[:1] if not self._arguments[0].startswith("--") else []
        command = [*penstock_command("serve"), *file, "--port", str(self.port)]
        # Its own session and files: it must not keep a pipe open that a parent process reads to its end.
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
        """Kill it with SIGKILL; the system keeps what was written."""
        assert self.end(signal.SIGKILL) == -signal.SIGKILL

    def end(self, how: int = signal.SIGTERM) -> int:
        """Send a signal, wait, and return the exit status."""
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        """Wait, and return the exit status."""
        return self.process.wait(timeout=END_SECONDS_MAX)

    def children(self) -> list[int]:
        """Its child processes."""
        try:
            return [
                int(pid)
                for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            ]
        except OSError:  # the process has ended
            return []

    def wait_until_ready(self) -> None:
        """Raises: RuntimeError if it ends or takes too long."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while self.process.poll() is None and time.monotonic() < deadline:
            if b" * ready on " in self._new_log():
                return
            time.sleep(0.02)
        raise RuntimeError(f"penstock does not start:\n{self.log()}")


def penstock_command(*arguments: str) -> list[str]:
    """The command line of penstock, with the build under test."""
    return [sys.executable, "-m", "penstock", *arguments]


@contextmanager
def running_penstock(
    *arguments: str, file: str | None = None, data: Path | None = None, wait: bool = True
) -> Iterator[PenstockServer]:
    """Start `penstock serve` on a free port, in a temporary folder, and stop it afterwards.

    arguments   directives, as on the command line; with `--port 0` there is no TCP
    file        text of a configuration file
    data        data directory that stays; without it nothing is saved unless the arguments say so
    wait        wait until it is ready and has loaded its data
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
            words += [] if file is not None and "save" in file else ["--save", ""]
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
