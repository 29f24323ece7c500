"""The server and pipeline processes of the demonstration.

Each is this program in its own session. A kill of the session reaches all its processes. Ctrl-C at the
terminal reaches only the parent, which ends the others.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import redis

from penstock.errors import PenstockError

START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 30
SHOWN_LINES = 5
# Java's second compiler does not pay off in a process that runs for a minute: it takes a fifth of that time.
QUICK_START = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class ChildFailed(PenstockError):
    """A process failed. The text quotes the end of its log."""


@contextmanager
def running_server(directory: Path) -> Iterator[str]:
    """Run a durable server in its own directory. Yields its url."""
    port = _free_port()
    words = ["serve", "--port", str(port), "--dir", str(directory / "data")]
    log = directory / "server.log"
    with log.open("wb") as output:
        process = _start(words, output, output)
    url = f"redis://127.0.0.1:{port}"
    try:
        _wait_for(url, process, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class PipelineRun:
    """A process that runs `penstock pipeline run --json`."""

    def __init__(self, file: Path, url: str, once: bool) -> None:
        self._log = file.with_name("pipeline.log")
        words = ["pipeline", "run", str(file), "--json", "--conf", QUICK_START]
        words += ["--once"] if once else []
        with self._log.open("ab") as output:
            self._process = _start(words, subprocess.PIPE, output, {"PENSTOCK_URL": url})

    def reports(self) -> Iterator[dict[str, Any]]:
        """Yield a report for each batch of each output, until the process ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith(b"}\n"):  # a killed process may leave half a line
                continue
            report = json.loads(line)
            if "output" in report:  # the last line is a summary
                yield report

    def kill(self) -> None:
        """Send SIGKILL to Python and Java."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def finish(self) -> None:
        """Wait for the end. Raises: ChildFailed on a non-zero exit status."""
        if self._process.wait() != 0:
            raise ChildFailed(f"the pipeline failed: {_last_lines(self._log)}")


def _start(
    words: list[str],
    stdout: int | IO[bytes],
    stderr: IO[bytes],
    environment: dict[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "penstock", *words],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    with redis.Redis.from_url(url) as client:
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(redis.ConnectionError):
                client.ping()
                return
            time.sleep(0.05)
    raise ChildFailed(f"the server did not start: {_last_lines(log)}")


def _last_lines(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return " | ".join(lines[-SHOWN_LINES:]) or f"{log} is empty"
