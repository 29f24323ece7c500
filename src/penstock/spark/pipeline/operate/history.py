"""The runs of a pipeline, as small files in LAKE/_runs.

    20261118T144501123-1a2b3c4d.start.json    when, pid and host, whether with --once
    20261118T144501123-1a2b3c4d.end.json      when, how, the error, batches and rows of each output
    20261118T144501123-1a2b3c4d.stop.json     asks the run to stop

A run without an end is running, or was killed. The history keeps the last RUNS_MAX runs.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError

from penstock.errors import PenstockError
from penstock.spark.lake.local_files import TextFiles

RUNS_MAX = 50
STOP_LOOK_SECONDS = 1.0
FINISHED, STOPPED, FAILED, KILLED, RUNNING = "finished", "stopped", "failed", "killed", "running"

_START, _END, _STOP = ".start.json", ".end.json", ".stop.json"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run. `outcome` is empty if it has no end."""

    name: str
    start: str
    pid: int
    host: str
    once: bool
    end: str = ""
    outcome: str = ""
    error: str = ""
    failed: str = ""  # the output that failed
    outputs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """All values."""
        return {name: getattr(self, name) for name in self.__slots__}


class RunHistory:
    """Records one run."""

    def __init__(self, files: TextFiles, directory: str, once: bool) -> None:
        self.outputs: Mapping[str, Any] = {}  # the summaries, by output
        self.is_stopped = False
        self._files = files
        self._directory = directory
        now = datetime.now(UTC)
        self._once = once
        self._name = f"{now:%Y%m%dT%H%M%S%f}-{uuid4().hex[:8]}"
        self._look_at = 0.0

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the start, and at the end the outcome."""
        self._remove_old()
        start = {"start": _now(), "pid": os.getpid(), "host": socket.gethostname()}
        self._write(_START, {**start, "once": self._once})
        try:
            yield
        except BaseException as error:
            text = " ".join(f"{error}".split()) or type(error).__name__
            with suppress(Py4JError, PenstockError):  # Java may have ended, the disk may be full
                self._finish(FAILED, text, getattr(error, "output", ""))
            raise
        self._finish(STOPPED if self.is_stopped else FINISHED)

    def is_asked_to_stop(self) -> bool:
        """Whether `penstock pipeline stop` asks this run to stop. Looks once a second."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + STOP_LOOK_SECONDS
        return self._files.exists(f"{self._directory}/{self._name}{_STOP}")

    def _finish(self, outcome: str, error: str = "", failed: str = "") -> None:
        outputs = {
            name: {key: getattr(one, key) for key in ("batches", "read", "rows")}
            for name, one in self.outputs.items()
        }
        end = {"end": _now(), "outcome": outcome, "error": error, "failed": failed}
        self._write(_END, {**end, "outputs": outputs})

    def _remove_old(self) -> None:
        names = self._files.names(self._directory)
        kept = {name.partition(".")[0] for name in names if name.endswith(_START)}
        old = sorted(kept)[: -(RUNS_MAX - 1)]
        for name in names:
            if name.partition(".")[0] in old:
                self._files.delete(f"{self._directory}/{name}")

    def _write(self, ending: str, values: dict[str, Any]) -> None:
        self._files.write(f"{self._directory}/{self._name}{ending}", json.dumps(values))


def runs_of(files: TextFiles, directory: str, count: int = RUNS_MAX) -> list[RunRecord]:
    """The last runs, newest first."""
    names = files.names(directory)
    runs = sorted((one.removesuffix(_START) for one in names if one.endswith(_START)), reverse=True)
    return [_record(files, f"{directory}/{run}", f"{run}{_END}" in names) for run in runs[:count]]


def ask_to_stop(files: TextFiles, directory: str, run: RunRecord) -> None:
    """Ask a run to stop. It looks once a second."""
    path = f"{directory}/{run.name}{_STOP}"
    if not files.exists(path):
        files.write(path, json.dumps({"asked": _now(), "host": socket.gethostname()}))


def _record(files: TextFiles, path: str, has_end: bool) -> RunRecord:
    values = json.loads(files.read(path + _START))
    if has_end:
        values |= json.loads(files.read(path + _END))
    known = {name: value for name, value in values.items() if name in RunRecord.__slots__}
    return RunRecord(name=path.rpartition("/")[2], **known)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
