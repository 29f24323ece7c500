"""Running Spark pipelines as they report themselves: an entry for each batch in the stream penstock:metrics.

    pipeline orders  output silver  batch 17  rows 4800  rows_per_second 9120.5  seconds 0.53  lag 0 ...

A number that a pipeline does not know is not in the entry. What is no such entry is passed over: anybody
can add to a stream. Rejects are the entries of a stream that carry their reasons in `_reason`; a stream
is taken for one of rejects when its last entry does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.client.replies import Entry
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.stream_page import NEWEST, read_entries
from penstock.web.server.asking import ServerClient

METRICS_STREAM = b"penstock:metrics"
REASON = b"_reason"
RECORDS_MAX = 1000
REJECTS_MAX = 200
QUIET_MS = 60_000


@dataclass(frozen=True, slots=True)
class PipelineBatch:
    """One batch of one output; None for what it did not tell."""

    pipeline: str
    output: str
    batch: int
    at_ms: int
    rows: int
    rows_per_second: float | None
    seconds: float | None
    lag: int | None
    pending: int | None


@dataclass(frozen=True, slots=True)
class PipelineOutput:
    """An output of a pipeline and its newest batches, oldest first."""

    pipeline: str
    output: str
    batches: list[PipelineBatch]

    @property
    def last(self) -> PipelineBatch:
        return self.batches[-1]

    def state(self, now_ms: int) -> str:
        """Quiet says no more than that: a pipeline without input has no batches to tell of."""
        return "running" if now_ms - self.last.at_ms < QUIET_MS else "quiet"


@dataclass(frozen=True, slots=True)
class Rejects:
    """What is in a stream of rejects: its newest entries, and how often each reason is among them."""

    stream: bytes
    entries: list[Entry]
    reasons: list[tuple[str, int]]


async def outputs_of(server: ServerClient) -> list[PipelineOutput]:
    """Every output that has told of a batch lately."""
    read = await read_entries(server, METRICS_STREAM, NEWEST, RECORDS_MAX)
    found: dict[tuple[str, str], list[PipelineBatch]] = {}
    for entry in reversed(read):
        batch = parse_batch_or_none(entry)
        if batch is not None:
            found.setdefault((batch.pipeline, batch.output), []).append(batch)
    return [PipelineOutput(*key, batches) for key, batches in sorted(found.items())]


def parse_batch_or_none(entry: Entry) -> PipelineBatch | None:
    """The record in an entry; None if it is none."""
    told = {name.decode("utf-8", "replace"): value for name, value in entry.fields}
    batch = _number_or_none(told.get("batch"))
    if batch is None or "pipeline" not in told or "output" not in told:
        return None
    lag, pending = (_number_or_none(told.get(name)) for name in ("lag", "pending"))
    return PipelineBatch(
        pipeline=told["pipeline"].decode("utf-8", "backslashreplace"),
        output=told["output"].decode("utf-8", "backslashreplace"),
        batch=int(batch),
        # The server's clock, which is also that of `now`; `at` is the clock of wherever Spark runs.
        at_ms=entry.id.ms,
        rows=int(_number_or_none(told.get("rows")) or 0),
        rows_per_second=_number_or_none(told.get("rows_per_second")),
        seconds=_number_or_none(told.get("seconds")),
        lag=None if lag is None else int(lag),
        pending=None if pending is None else int(pending),
    )


def _number_or_none(value: bytes | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    return number if number is None or abs(number) < float("inf") else None


def reject_streams(catalogue: StreamCatalogue) -> list[bytes]:
    """The known streams whose last entry says why it was rejected."""
    return [
        facts.name
        for facts in catalogue.all_facts()
        if facts.last is not None and any(name == REASON for name, _ in facts.last.fields)
    ]


async def rejects_of(server: ServerClient, streams: Sequence[bytes]) -> list[Rejects]:
    """The newest rejects of some streams."""
    found = []
    for stream in streams:
        read = await read_entries(server, stream, NEWEST, REJECTS_MAX)
        found.append(Rejects(stream, read, count_reasons(read)))
    return found


def count_reasons(entries: Iterable[Entry]) -> list[tuple[str, int]]:
    """How often each reason is given, the most frequent first; an entry may have several."""
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
