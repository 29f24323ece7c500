"""Pipelines as flows, from their reports."""

from __future__ import annotations

from penstock.web.jobs.flow import PipelineFlow, flows_of
from penstock.web.jobs.pipelines import (
    QUIET_MS,
    PipelineBatch,
    PipelineFailure,
    PipelineOutput,
    PipelineReports,
)

NOW_MS = 1_000_000


def batch(output: str, number: int = 1, **more: object) -> PipelineBatch:
    """A batch of ten rows, one second after the one before it."""
    told = {
        "rows": 10,
        "rows_per_second": 5.0,
        "seconds": 0.5,
        "lag": 0,
        "pending": 0,
        "read": 20,
        "at_ms": NOW_MS - 10_000 + 1000 * number,
    }
    return PipelineBatch(pipeline="shop", output=output, batch=number, **(told | more))  # type: ignore[arg-type]


def output(*batches: PipelineBatch, failure: PipelineFailure | None = None) -> PipelineOutput:
    return PipelineOutput("shop", batches[0].output, list(batches), failure)


def reported(outputs: list[PipelineOutput]) -> PipelineReports:
    return PipelineReports(outputs, [])


def shape(flow: PipelineFlow) -> dict[str, list[str]]:
    return {query.name: [one.name for one in query.outputs] for query in flow.queries}


def test_outputs_belong_to_the_query_that_wrote_them() -> None:
    named = [
        output(batch(name, query=query, source="orders,more"))
        for name, query in (
            ("by_minute.stream", "by_minute"),
            ("by_minute", "by_minute"),
            ("reject", "main"),
            ("silver", "main"),
            ("bronze", "main"),
            ("table", "main"),
        )
    ]
    (flow,) = flows_of(reported(named), NOW_MS)
    assert flow.sources == (b"orders", b"more")
    assert shape(flow) == {
        "main": ["bronze", "silver", "reject", "table"],
        "by_minute": ["by_minute", "by_minute.stream"],
    }


def test_reports_of_older_versions_are_grouped_by_their_names() -> None:
    (flow,) = flows_of(
        reported([output(batch(name)) for name in ("silver", "a", "a.stream")]), NOW_MS
    )
    assert flow.sources == ()
    assert shape(flow) == {"main": ["silver"], "a": ["a", "a.stream"]}


def test_rates_are_those_of_wall_time() -> None:
    batches = [batch("silver", number) for number in range(1, 5)]
    (flow,) = flows_of(reported([output(*batches)]), NOW_MS)
    (query,) = flow.queries
    assert (query.read_per_second, query.outputs[0].rows_per_second) == (20.0, 10.0)
    assert query.state == "running"
    (flow,) = flows_of(reported([output(*batches)]), NOW_MS + QUIET_MS)
    assert (flow.queries[0].read_per_second, flow.queries[0].state) == (0.0, "quiet")


def test_an_unknown_number_makes_the_rate_unknown() -> None:
    batches = [batch("silver", number, read=None) for number in range(2)]
    (flow,) = flows_of(reported([output(*batches)]), NOW_MS)
    assert flow.queries[0].read_per_second is None


def test_rejects_of_the_newest_batches_are_counted() -> None:
    batches = [batch("reject", number, rows=number % 2) for number in range(20)]
    (flow,) = flows_of(reported([output(*batches)]), NOW_MS)
    assert flow.queries[0].rejected == 5


def test_a_failure_is_that_of_its_output() -> None:
    failure = PipelineFailure("shop", "silver", NOW_MS, "disk full")
    outputs = [output(batch("silver"), failure=failure), output(batch("agg"), failure=failure)]
    (flow,) = flows_of(reported(outputs), NOW_MS)
    assert flow.failure == failure
    assert {query.name: query.state for query in flow.queries} == {
        "main": "failed",
        "agg": "stopped",
    }
