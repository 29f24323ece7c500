"""A pipeline as a flow: its source streams, its queries, and what each query writes.

    orders ──┬── main ──┬── bronze
             │          ├── silver
             │          └── reject
             └── revenue_by_minute ──┬── revenue_by_minute
                                     └── revenue_by_minute.stream

Everything comes from the reports of batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.web.jobs.pipelines import (
    MAIN,
    OF_MAIN,
    RECENT_BATCHES,
    PipelineBatch,
    PipelineFailure,
    PipelineOutput,
    PipelineReports,
    query_of,
    sources_of,
)

REJECT = "reject"


@dataclass(frozen=True, slots=True)
class FlowOutput:
    """What a query writes to one place."""

    name: str
    rows: int
    rows_per_second: float | None
    recent_rows: int
    recent_batches: int
    state: str


@dataclass(frozen=True, slots=True)
class FlowQuery:
    """A query of a pipeline, and its newest batch."""

    name: str
    last: PipelineBatch
    read_per_second: float | None
    state: str
    outputs: tuple[FlowOutput, ...]

    @property
    def rejected(self) -> int:
        """The rows that its newest batches rejected."""
        return sum(one.recent_rows for one in self.outputs if one.name == REJECT)


@dataclass(frozen=True, slots=True)
class PipelineFlow:
    """A pipeline. `sources` is empty if the reports do not name them.

    Without recent batches it has no queries: it has failed in its first batch.
    """

    name: str
    sources: tuple[bytes, ...]
    queries: tuple[FlowQuery, ...]
    failure: PipelineFailure | None


def flows_of(reports: PipelineReports, now_ms: int) -> list[PipelineFlow]:
    """The flow of every pipeline, by name."""
    by_pipeline: dict[str, list[PipelineOutput]] = {}
    for output in reports.outputs:
        by_pipeline.setdefault(output.pipeline, []).append(output)
    flows = [_flow(name, found, now_ms) for name, found in by_pipeline.items()]
    flows += [
        PipelineFlow(failure.pipeline, (), (), failure)
        for failure in reports.failures
        if failure.pipeline not in by_pipeline
    ]
    return sorted(flows, key=lambda flow: flow.name)


def _flow(name: str, outputs: Sequence[PipelineOutput], now_ms: int) -> PipelineFlow:
    by_query: dict[str, list[PipelineOutput]] = {}
    for output in outputs:
        by_query.setdefault(query_of(output.last), []).append(output)
    queries = [_query(query, found, now_ms) for query, found in by_query.items()]
    queries.sort(key=lambda query: (query.name != MAIN, query.name))
    sources = dict.fromkeys(source for output in outputs for source in sources_of(output.last))
    return PipelineFlow(name, tuple(sources), tuple(queries), outputs[0].failure)


def _query(name: str, outputs: Sequence[PipelineOutput], now_ms: int) -> FlowQuery:
    newest = max(outputs, key=lambda output: output.last.at_ms)
    known = sorted(outputs, key=_place)
    states = {output.state(now_ms) for output in outputs}
    return FlowQuery(
        name=name,
        last=newest.last,
        read_per_second=_rate(newest, now_ms, "read"),
        state=next(
            one for one in ("failed", "stopped", "running", "ended", "quiet") if one in states
        ),
        outputs=tuple(
            FlowOutput(
                name=output.output,
                rows=output.last.rows,
                rows_per_second=_rate(output, now_ms, "rows"),
                recent_rows=sum(batch.rows for batch in output.batches[-RECENT_BATCHES:]),
                recent_batches=len(output.batches[-RECENT_BATCHES:]),
                state=output.state(now_ms),
            )
            for output in known
        ),
    )


def _place(output: PipelineOutput) -> tuple[int, str]:
    """Bronze, silver and rejects first, in the order of the flow."""
    fixed = OF_MAIN.index(output.output) if output.output in OF_MAIN else len(OF_MAIN)
    return fixed, output.output


def _rate(output: PipelineOutput, now_ms: int, what: str) -> float | None:
    """Rows per second of wall time over the newest batches; 0 if nothing runs, None if unknown."""
    recent = output.batches[-RECENT_BATCHES:]
    counts = [getattr(batch, what) for batch in recent]
    if any(count is None for count in counts):
        return None
    if output.state(now_ms) != "running":
        return 0.0
    if len(recent) < 2:
        return recent[-1].rows_per_second
    seconds = (recent[-1].at_ms - recent[0].at_ms) / 1000
    # The first batch arrived before the interval began.
    return sum(counts[1:]) / seconds if seconds > 0 else None
