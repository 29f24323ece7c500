"""The other processes of the demonstration: a server, and a pipeline that can be killed.

Each is this very program, in a session of its own: a kill reaches all that it has started, and a Ctrl-C at
the terminal reaches only us, who end them in order.
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
# For a Java that lives for a minute the second compiler costs more than it saves: a fifth of all the time.
QUICK_START = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class ChildFailed(PenstockError):
    """A process of the demonstration ended as it should not; the text quotes the end of its log."""


@contextmanager
def running_server(directory: Path) -> Iterator[str]:
    """A durable server in a directory of its own; yields its url, and ends it in order."""
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
    """`penstock pipeline run --json` as a process: its reports one by one, and its end."""

    def __init__(self, file: Path, url: str, once: bool) -> None:
        self._log = file.with_name("pipeline.log")
        words = ["pipeline", "run", str(file), "--json", "--conf", QUICK_START]
        words += ["--once"] if once else []
        with self._log.open("ab") as output:
            self._process = _start(words, subprocess.PIPE, output, {"PENSTOCK_URL": url})

    def reports(self) -> Iterator[dict[str, Any]]:
        """One for each batch of each output, as they come, until the process ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith(b"}\n"):  # a killed process may leave half a line
                continue
            report = json.loads(line)
            if "output" in report:  # the last line is a summary
                yield report

    def kill(self) -> None:
        """SIGKILL, for Python and Java alike."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def finish(self) -> None:
        """Wait for the end. Raises: ChildFailed, if it did not end well."""
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
    return " | ".join(lines[-SHOWN_LINES:]) or f"it said nothing; {log}"
