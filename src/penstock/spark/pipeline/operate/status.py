"""The state of a pipeline: whether it runs, the position and lag of its outputs, and its last runs.

It combines the lock of the lake, the history, the checkpoints of the queries, the metrics stream and the
source. The server may be down: then lag and the last batches are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import redis

from penstock.errors import PenstockError
from penstock.spark.connection import Servers, StreamName
from penstock.spark.lake.local_files import TextFiles, is_local
from penstock.spark.lake.lock import is_held
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import CHECKPOINTS, RUNS, lake_path
from penstock.spark.pipeline.joined_state import JoinedStates
from penstock.spark.pipeline.operate.history import KILLED, RUNNING, RunRecord, runs_of
from penstock.spark.pipeline.outputs import PipelineOutput, queries_of
from penstock.spark.pipeline.positions import Checkpoint, ids_of
from penstock.spark.pipeline.progress import METRICS_ENTRIES_MAX, Metrics
from penstock.spark.source.offsets import Offset

PAGE = 1_000
_UNREACHABLE = (redis.RedisError, OSError, PenstockError, LookupError)


@dataclass(frozen=True, slots=True)
class OutputStatus:
    """One output. What is unknown is None. `rows` are those of the current run, or of the last one."""

    output: str
    query: str
    position: Mapping[str, str] | None = None
    batch: int | None = None
    at: str | None = None
    rows: int | None = None
    lag: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """The whole pipeline. `is_running` is None if the storage has no locks."""

    pipeline: str
    lake: str
    is_running: bool | None
    outputs: tuple[OutputStatus, ...]
    runs: tuple[RunRecord, ...]

    def to_json(self) -> dict[str, Any]:
        """All values."""
        outputs = [
            {name: getattr(one, name) for name in OutputStatus.__slots__} for one in self.outputs
        ]
        runs = [one.to_json() for one in self.runs]
        head = {"pipeline": self.pipeline, "lake": self.lake, "running": self.is_running}
        return {**head, "outputs": outputs, "runs": runs}


def is_running_or_none(pipeline: Pipeline) -> bool | None:
    """Whether a run holds the lock of the lake, or None if the storage has no locks."""
    if not is_local(pipeline.archive.path):
        return None
    return is_held(lake_path(pipeline, CHECKPOINTS))


def status_of(pipeline: Pipeline, files: TextFiles, runs_max: int) -> PipelineStatus:
    """Collect the state of a pipeline. Raises: OffsetError, OSError."""
    is_running = is_running_or_none(pipeline)
    runs = runs_of(files, lake_path(pipeline, RUNS), max(runs_max, 1))
    outputs = _outputs(pipeline, files)
    if runs:
        outputs = [_with_run(one, runs[0]) for one in outputs]
    last = _last_records(pipeline, runs[0].start if runs else "")
    return PipelineStatus(
        pipeline=pipeline.name,
        lake=pipeline.archive.path,
        is_running=is_running,
        outputs=tuple(_with_record(one, last.get(one.output)) for one in outputs),
        runs=tuple(
            _with_outcome(one, at == 0 and is_running is not False) for at, one in enumerate(runs)
        ),
    )


def _with_outcome(run: RunRecord, may_run: bool) -> RunRecord:
    """A run that has no end is running, or was killed."""
    return run if run.outcome else replace(run, outcome=RUNNING if may_run else KILLED)


def _outputs(pipeline: Pipeline, files: TextFiles) -> list[OutputStatus]:
    metrics = Metrics(pipeline.source.place, "", "")
    states = JoinedStates(files, lake_path(pipeline, CHECKPOINTS))
    found = []
    try:
        for query in queries_of(pipeline):
            log = Checkpoint(files, query.checkpoint)
            done = log.batch(log.committed)
            lag = None if done is None else metrics.lag_or_none(done.end)
            for output in query.outputs:
                end = done.end if done is not None and _has_joined(output, states) else None
                found.append(_output(output, query.name, end, lag))
    finally:
        metrics.close()
    return found


def _has_joined(output: PipelineOutput, states: JoinedStates) -> bool:
    state = {} if output.folder else states.read(output.name)
    return bool(output.folder) or "after" in state or "after_ms" in state


def _output(
    output: PipelineOutput, query: str, end: Offset | None, lag: int | None
) -> OutputStatus:
    if end is None:
        return OutputStatus(output.name, query)
    return OutputStatus(output.name, query, position=ids_of(end), lag=lag)


def _with_run(one: OutputStatus, run: RunRecord) -> OutputStatus:
    numbers = run.outputs.get(one.output)
    error = run.error if run.failed in (one.output, one.query) and run.failed else ""
    return replace(one, rows=None if numbers is None else numbers["rows"], error=error)


def _with_record(one: OutputStatus, last: dict[str, Any] | None) -> OutputStatus:
    if last is None:
        return one
    rows = last["rows"] if one.rows is None else one.rows
    return replace(one, batch=last["batch"], at=last["at"], rows=rows)


def _last_records(pipeline: Pipeline, since: str) -> dict[str, dict[str, Any]]:
    """The last record of each output in the metrics stream, with the rows since a time."""
    begin_ms = int(datetime.fromisoformat(since).timestamp() * 1000) if since else 0
    found: dict[str, dict[str, Any]] = {}
    try:
        for entry_id, fields in _metrics_entries(pipeline):
            if fields.get("pipeline") != pipeline.name or "batch" not in fields:
                continue  # of another pipeline; or an error, a start or an end
            last = found.setdefault(
                fields["output"], {"batch": int(fields["batch"]), "at": fields["at"], "rows": 0}
            )
            if int(entry_id.partition("-")[0]) >= begin_ms:
                last["rows"] += int(fields["rows"])
    except _UNREACHABLE:
        return {}
    return found


def _metrics_entries(pipeline: Pipeline) -> Iterator[tuple[str, dict[str, str]]]:
    """The entries of the metrics stream, newest first."""
    if not pipeline.metrics:
        return
    key = pipeline.metrics.encode("utf-8", "surrogateescape")
    end = "+"
    with Servers(pipeline.source.place) as servers:
        for _ in range(2 * METRICS_ENTRIES_MAX // PAGE):
            page = servers.ask(StreamName(key), "XREVRANGE", key, end, "-", "COUNT", PAGE)
            for entry_id, flat in page:
                words = [word.decode("utf-8", "replace") for word in flat]
                yield entry_id.decode(), dict(zip(words[::2], words[1::2], strict=True))
            if len(page) < PAGE:
                return
            end = f"({page[-1][0].decode()}"
