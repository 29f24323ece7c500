"""Runs `penstock pipeline run` as a process that a test can watch and kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from tests.support.servers.penstock_server import penstock_command

EXECUTOR = b"CoarseGrainedExecutorBackend"
END_SECONDS_MAX = 300


class PipelineProcess:
    """One run of a pipeline. `batches` has its reports so far."""

    def __init__(self, file: Path, url: str, *words: str) -> None:
        self.batches: list[dict[str, object]] = []
        self.log = file.with_suffix(".log")
        with self.log.open("ab") as errors:
            self._process = subprocess.Popen(
                penstock_command("pipeline", "run", str(file), "--json", *words),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                env={**os.environ, "PENSTOCK_URL": url},
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def wait_for_batches(self, count: int) -> None:
        """Wait until it has reported `count` batches or has ended."""
        deadline = time.monotonic() + END_SECONDS_MAX
        while len(self.batches) < count and not self.has_ended:
            assert time.monotonic() < deadline, self.log.read_text()[-2000:]
            time.sleep(0.05)

    def executors(self) -> list[int]:
        """The executor processes, if the master starts any."""
        return [pid for pid in _descendants(self._process.pid) if EXECUTOR in _words(pid)]

    def kill(self) -> None:
        """Send SIGKILL to all its processes."""
        # Workers of Spark have their own process groups, so they are found by their parents.
        for pid in [self._process.pid, *_descendants(self._process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        """Wait for the end, as long as batches are reported. Returns the exit status."""
        while True:
            before = len(self.batches)
            try:
                status = self._process.wait(END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                assert len(self.batches) > before, self.log.read_text()[-2000:]
            else:
                self._reader.join()
                return status

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            self._read_lines(lines)

    def _read_lines(self, lines: IO[bytes]) -> None:
        for line in lines:
            with suppress(json.JSONDecodeError):  # a killed process may leave half a line
                report = json.loads(line)
                if "output" in report:  # the last line is the summary
                    self.batches.append(report)


def _descendants(pid: int) -> list[int]:
    found = []
    for folder in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            for child in (folder / "children").read_text().split():
                found += [int(child), *_descendants(int(child))]
    return found


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # the process has ended
        return b""
