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
    """A process that serves on 127.0.0.1; `folder` is its own and goes with it, `data` need not be."""

    def __init__(self, arguments: list[str], folder: Path, data: Path) -> None:
        self._arguments = arguments
        self.folder = folder
        self.data = data
        self.log_path = folder / "penstock.log"
        self.port = 0
        self.process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """Of the process that runs now, or ran last."""
        return self.process.pid

    def client(self, **options: object) -> redis.Redis:
        """A new client of redis-py."""
        return redis.Redis(port=self.port, **options)  # type: ignore[arg-type]

    def log(self) -> str:
        """What it has logged so far, before it was started again as well."""
        return self.log_path.read_text()

    def start(self, *more: str) -> None:
        """Start it, once more perhaps, on the same data and on a new port; ready when this returns."""
        self.begin(*more)
        self.wait_until_ready()

    def begin(self, *more: str) -> None:
        """Start it without waiting until it is ready."""
        # The port that it had may be somebody's by now.
        self.port = free_port()
        # A file of settings comes first; what comes last wins.
        file = self._arguments[:1] if not self._arguments[0].startswith("--") else []
        command = [*penstock_command("serve"), *file, "--port", str(self.port)]
        # A session and files of its own: it must not hold the pipes on which somebody waits for our end.
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
        """End it as a power cut would, but for what the system still has in memory."""
        assert self.end(signal.SIGKILL) == -signal.SIGKILL

    def end(self, how: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit status."""
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end; the exit status."""
        return self.process.wait(timeout=END_SECONDS_MAX)

    def children(self) -> list[int]:
        """The processes that it has forked and that are still there."""
        try:
            return [
                int(pid)
                for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            ]
        except OSError:  # it has just ended
            return []

    def wait_until_ready(self) -> None:
        """Raises: RuntimeError if it ends before, or takes too long."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while self.process.poll() is None and time.monotonic() < deadline:
            if b" * ready on " in self.log_path.read_bytes()[self._logged_before :]:
                return
            time.sleep(0.02)
        raise RuntimeError(f"penstock does not start:\n{self.log()}")


def penstock_command(*arguments: str) -> list[str]:
    """How a test starts penstock: the build that it runs on itself."""
    return [sys.executable, "-m", "penstock", *arguments]


@contextmanager
def running_penstock(
    *arguments: str, file: str | None = None, data: Path | None = None, wait: bool = True
) -> Iterator[PenstockServer]:
    """Start `penstock serve` on a free port, in a folder of its own, and end it afterwards.

    `arguments` are directives, as on the command line; `file` is the text of a file of settings. `--port 0`
    among the arguments starts a server without TCP: then it is ready when its log says so. `data` is a
    directory that stays; without one nothing is kept, unless the arguments say `--appendonly yes`. `wait`:
    until it is ready, and has loaded its data.
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
    """The server runs in another folder: relative parts of PYTHONPATH would lead nowhere."""
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
