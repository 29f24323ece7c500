"""Reads the reports of running Spark pipelines: one entry per batch in the stream penstock:metrics.

    pipeline orders  output silver  batch 17  rows 4800  rows_per_second 9120.5  seconds 0.53  lag 0 ...
    pipeline orders  output silver  error "disk full"       it was stopped by an error
    pipeline orders  run started  queries main,daily        or `ended`: it was stopped, or has read everything

Unknown numbers are left out of the entry. Any client can add to the stream, so other entries are skipped and
long texts are cut. Rejects are entries with a field `_reason`. A stream counts as a stream of rejects if its
last entry has one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from penstock.client.dead_letters import SUFFIX
from penstock.client.replies import Entry
from penstock.human.show import duration_text
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.stream_page import NEWEST, read_entries
from penstock.web.server.asking import ServerClient

METRICS_STREAM = b"penstock:metrics"
REASON = b"_reason"
RECENT_BATCHES = 10  # of each output
BATCHES_DRAWN = 300  # of each output, about, in the time range of a chart
REJECTS_MAX = 200
QUIET_MS = 60_000
NAME_BYTES_MAX = 200  # of a pipeline, an output or a query
ERROR_BYTES_MAX = 1000
NAMES_BYTES_MAX = (
    4000  # of several names, or of their ids. Longer ones are left out: they cannot be cut
)
MAIN = "main"
OF_MAIN = ("bronze", "silver", "reject")
STREAM_SUFFIX = ".stream"


@dataclass(frozen=True, slots=True)
class PipelineBatch:
    """One batch of one output. None where a number is unknown.

    `query`, `source` and `ends` are empty in reports of older versions. `ends` are the last ids that were
    read from the streams of `source`, separated by commas; `sources_of` reads the names.
    """

    pipeline: str
    output: str
    batch: int
    at_ms: int
    rows: int
    rows_per_second: float | None
    seconds: float | None
    lag: int | None
    pending: int | None
    read: int | None = None
    late: int = 0
    query: str = ""
    source: str = ""
    ends: str = ""


@dataclass(frozen=True, slots=True)
class PipelineFailure:
    """An error that stopped a pipeline. `restarted_ms`: when it was started again, if no batch came since."""

    pipeline: str
    output: str
    at_ms: int
    error: str
    restarted_ms: int | None = None

    def restart_text(self, now_ms: int) -> str:
        """What to add to its error, if it was started again."""
        if self.restarted_ms is None:
            return ""
        since = duration_text(max(0, now_ms - self.restarted_ms))
        return f" (started again {since} ago, no batch yet)"


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """The last run of a pipeline: its start, or its end if the start is unknown. A killed run has no end.

    `queries` is empty in reports of older versions.
    """

    pipeline: str
    at_ms: int
    has_ended: bool
    queries: tuple[str, ...] = ()


PipelineReport = PipelineBatch | PipelineFailure | PipelineRun


@dataclass(frozen=True, slots=True)
class PipelineOutput:
    """An output of a pipeline and its newest batches, oldest first."""

    pipeline: str
    output: str
    batches: list[PipelineBatch]
    failure: PipelineFailure | None = None
    run: PipelineRun | None = None

    @property
    def last(self) -> PipelineBatch:
        return self.batches[-1]

    @property
    def is_stopped(self) -> bool:
        """Whether an error has stopped the pipeline, and it was not started since."""
        return self.failure is not None and self.failure.restarted_ms is None

    def state(self, now_ms: int) -> str:
        """`quiet` is not an error: a pipeline without input reports no batches."""
        if self.failure is not None and self.is_stopped:
            return "failed" if self.failure.output == self.output else "stopped"
        if self.run is not None and self.run.has_ended:
            return "ended"
        return "running" if now_ms - self.last.at_ms < QUIET_MS else "quiet"


@dataclass(frozen=True, slots=True)
class PipelineReports:
    """The outputs with recent batches, and the errors of pipelines that have not run since."""

    outputs: list[PipelineOutput]
    failures: list[PipelineFailure]

    def only(self, pipeline: str) -> PipelineReports:
        """Those of one pipeline; all if the name is empty."""
        if not pipeline:
            return self
        return PipelineReports(
            [output for output in self.outputs if output.pipeline == pipeline],
            [failure for failure in self.failures if failure.pipeline == pipeline],
        )


@dataclass(frozen=True, slots=True)
class Rejects:
    """The newest entries of a stream of rejects, and the number of entries per reason."""

    stream: bytes
    entries: list[Entry]
    reasons: list[tuple[str, int]]


def parse_report_or_none(entry: Entry) -> PipelineReport | None:
    """What an entry reports, or None if it is another entry."""
    return parse_batch_or_none(entry) or parse_failure_or_none(entry) or parse_run_or_none(entry)


def reports_of(found: Iterable[PipelineReport], since_ms: int) -> PipelineReports:
    """The state of all pipelines from their reports in order, with the batches since a time.

    The newest batches of an output are always there. Long histories are thinned, each output on its own.
    Outputs that the present run no longer has are left out.
    """
    batches: dict[tuple[str, str], list[PipelineBatch]] = {}
    failures: dict[str, PipelineFailure] = {}
    runs: dict[str, PipelineRun] = {}
    for report in found:
        name = report.pipeline
        failure, run = failures.get(name), runs.get(name)
        if isinstance(report, PipelineFailure):
            failures[name] = report
        elif isinstance(report, PipelineRun) and report.has_ended:
            failures.pop(
                name, None
            )  # a later run had nothing to read, or somebody dismissed the failure
            runs[name] = report if run is None else replace(run, has_ended=True)
        elif isinstance(report, PipelineRun):
            runs[name] = report
            if failure is not None:
                failures[name] = replace(failure, restarted_ms=report.at_ms)
        else:
            batches.setdefault((name, report.output), []).append(report)
            failures.pop(name, None)  # it runs again
            if run is not None and run.has_ended:
                runs[name] = replace(run, has_ended=False)
    outputs = [
        PipelineOutput(*key, thinned(known, since_ms), failures.get(key[0]), runs.get(key[0]))
        for key, known in sorted(batches.items())
    ]
    newest = newest_of_queries(outputs)
    outputs = [one for one in outputs if not _is_retired(one, newest[key_of_query(one)].last)]
    return PipelineReports(outputs, list(failures.values()))


def newest_of_queries(outputs: Iterable[PipelineOutput]) -> dict[tuple[str, str], PipelineOutput]:
    """The output with the newest batch of each query, by pipeline and query."""
    found: dict[tuple[str, str], PipelineOutput] = {}
    for output in outputs:
        known = found.setdefault(key_of_query(output), output)
        if (output.last.at_ms, output.last.batch) > (known.last.at_ms, known.last.batch):
            found[key_of_query(output)] = output
    return found


def key_of_query(output: PipelineOutput) -> tuple[str, str]:
    """The pipeline and the query of an output."""
    return output.pipeline, query_of(output.last)


def query_of(batch: PipelineBatch) -> str:
    """The query that wrote a batch. Reports of older versions do not name it."""
    if batch.query:
        return batch.query
    if batch.output in OF_MAIN:
        return MAIN
    return batch.output.removesuffix(STREAM_SUFFIX)


def _is_retired(output: PipelineOutput, newest: PipelineBatch) -> bool:
    """Whether the last run no longer has an output. `newest` is the newest batch of its query."""
    run, last = output.run, output.last
    if run is None or last.at_ms > run.at_ms:
        return False
    if run.queries and query_of(last) not in run.queries:
        return True
    # The outputs of one batch report one after another, so one batch more says nothing.
    return newest.at_ms > run.at_ms and newest.batch > last.batch + 1


def sources_of(batch: PipelineBatch) -> list[bytes]:
    """The streams that a batch has read. They are a JSON array if a name has a comma or is not UTF-8."""
    names: list[object] = list(batch.source.split(",")) if batch.source else []
    try:
        if batch.source.startswith("["):
            names = json.loads(batch.source)
        return [name.encode("utf-8", "surrogateescape") for name in names if isinstance(name, str)]
    except (ValueError, RecursionError):
        return []


def thinned(batches: Sequence[PipelineBatch], since_ms: int) -> list[PipelineBatch]:
    """The newest batches, and before them the slowest one of each part of the time since then."""
    older = [one for one in batches[:-RECENT_BATCHES] if one.at_ms >= since_ms]
    if len(older) <= BATCHES_DRAWN:
        return [*older, *batches[-RECENT_BATCHES:]]
    step_ms = max(1, (older[-1].at_ms - older[0].at_ms) // BATCHES_DRAWN)
    slowest: dict[int, PipelineBatch] = {}
    for one in older:
        known = slowest.get(one.at_ms // step_ms)
        if known is None or (one.seconds or 0) > (known.seconds or 0):
            slowest[one.at_ms // step_ms] = one
    return [*slowest.values(), *batches[-RECENT_BATCHES:]]


def parse_run_or_none(entry: Entry) -> PipelineRun | None:
    """The start or the end of a run that an entry reports, or None if it is another entry."""
    sent = dict(entry.fields)
    if b"pipeline" not in sent or sent.get(b"run") not in (b"started", b"ended"):
        return None
    names = _names(sent.get(b"queries", b""))
    queries = tuple(name for name in names.split(",") if name)
    return PipelineRun(_text(sent[b"pipeline"]), entry.id.ms, sent[b"run"] == b"ended", queries)


def parse_failure_or_none(entry: Entry) -> PipelineFailure | None:
    """The failure that an entry reports, or None if it is another entry."""
    sent = dict(entry.fields)
    if not {b"pipeline", b"output", b"error"} <= sent.keys():
        return None
    pipeline, output = _text(sent[b"pipeline"]), _text(sent[b"output"])
    return PipelineFailure(pipeline, output, entry.id.ms, _text(sent[b"error"], ERROR_BYTES_MAX))


def _text(value: bytes, bytes_max: int = NAME_BYTES_MAX) -> str:
    text = value[:bytes_max].decode("utf-8", "backslashreplace")
    return text if len(value) <= bytes_max else f"{text}..."


def _names(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape") if len(value) <= NAMES_BYTES_MAX else ""


def parse_batch_or_none(entry: Entry) -> PipelineBatch | None:
    """The batch that an entry reports, or None if it is another entry."""
    sent = dict(entry.fields)
    batch = _number_or_none(sent.get(b"batch"))
    if batch is None or b"pipeline" not in sent or b"output" not in sent:
        return None
    lag, pending, read = (_whole_or_none(sent.get(name)) for name in (b"lag", b"pending", b"read"))
    return PipelineBatch(
        pipeline=_text(sent[b"pipeline"]),
        output=_text(sent[b"output"]),
        batch=int(batch),
        # The server's clock, as for `now`. The field `at` has the clock of Spark's machine.
        at_ms=entry.id.ms,
        rows=int(_number_or_none(sent.get(b"rows")) or 0),
        rows_per_second=_number_or_none(sent.get(b"rows_per_second")),
        seconds=_number_or_none(sent.get(b"seconds")),
        lag=lag,
        pending=pending,
        read=read,
        late=_whole_or_none(sent.get(b"late")) or 0,
        query=_text(sent.get(b"query", b"")),
        source=_names(sent.get(b"source", b"")),
        ends=_names(sent.get(b"ends", b"")),
    )


def _whole_or_none(value: bytes | None) -> int | None:
    number = _number_or_none(value)
    return None if number is None else int(number)


def _number_or_none(value: bytes | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    return number if number is None or abs(number) < float("inf") else None


def reject_streams(catalogue: StreamCatalogue) -> list[bytes]:
    """The known streams whose last entry is a reject. Dead letters of workers have their own page."""
    return [
        facts.name
        for facts in catalogue.all_facts()
        if facts.last is not None and is_reject(facts.last) and not facts.name.endswith(SUFFIX)
    ]


def is_reject(entry: Entry) -> bool:
    return any(name == REASON for name, _ in entry.fields)


async def rejects_of(server: ServerClient, streams: Sequence[bytes]) -> list[Rejects]:
    """The newest rejects of some streams."""
    found = []
    for stream in streams:
        read = await read_entries(server, stream, NEWEST, REJECTS_MAX)
        found.append(Rejects(stream, read, count_reasons(read)))
    return found


def count_reasons(entries: Iterable[Entry]) -> list[tuple[str, int]]:
    """The number of entries per reason, most frequent first. An entry may have several reasons."""
    counts: Counter[str] = Counter()
    for entry in entries:
        for name, value in entry.fields:
            if name == REASON:
                counts[value.decode("utf-8", "backslashreplace")] += 1
    return counts.most_common()


def reason_of(entry: Entry) -> str:
    """All reasons of an entry."""
    reasons = [value for name, value in entry.fields if name == REASON]
    return "; ".join(reason.decode("utf-8", "backslashreplace") for reason in reasons)
