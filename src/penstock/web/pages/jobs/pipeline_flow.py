"""Pipelines as flows: what the reports say, as the cells of elements/flow."""

from __future__ import annotations

from penstock.human.show import duration_text, harmless
from penstock.web.elements.flow import FlowCells
from penstock.web.http.names import link
from penstock.web.jobs.flow import REJECT, FlowOutput, FlowQuery, PipelineFlow
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.rates import rate_text
from penstock.web.watch.thresholds import BAD, LAG, PIPELINE_LEVELS, WARN

UNKNOWN_SOURCE = b"source"


def flow_cells(flow: PipelineFlow, catalogue: StreamCatalogue, now_ms: int) -> FlowCells:
    """A pipeline as the element shows it."""
    failure = flow.failure
    error = ""
    if failure is not None:
        ago = duration_text(max(0, now_ms - failure.at_ms))
        error = harmless(f"{failure.output} failed {ago} ago: {failure.error}")
        error += failure.restart_text(now_ms)
    state = "failed"
    if failure is None or failure.restarted_ms is not None:
        is_running = any(query.state == "running" for query in flow.queries)
        state = "running" if is_running else "quiet"
    return {
        "name": harmless(flow.name),
        "href": link("pipeline", only=flow.name),
        "state": state,
        "level": PIPELINE_LEVELS.get(state, ""),
        "error": error,
        "error_level": BAD if state == "failed" else WARN,
        "sources": [source_cells(name, catalogue) for name in flow.sources or (UNKNOWN_SOURCE,)],
        "queries": [query_cells(query, now_ms) for query in flow.queries],
    }


def source_cells(name: bytes, catalogue: StreamCatalogue) -> FlowCells:
    """A source stream. A name that the server does not know is shown without facts."""
    row = catalogue.row_or_none(name)
    if row is None:
        return {"name": harmless(name), "href": "", "facts": []}
    return {
        "name": harmless(name),
        "href": link("stream", name),
        "facts": [
            {"name": "length", "text": f"{row.facts.length:,}"},
            {"name": "in", "text": rate_text(row.meter.rate_in)},
        ],
    }


def query_cells(query: FlowQuery, now_ms: int) -> FlowCells:
    """A query with the facts of its newest batch."""
    last = query.last
    lag = last.lag
    facts = [
        {
            "name": "lag",
            "text": "unknown" if lag is None else f"{lag:,}",
            "level": LAG.level(lag),
        },
        {"name": "batch", "text": f"{last.batch:,}", "level": ""},
        {
            "name": "time",
            "text": "-" if last.seconds is None else f"{last.seconds:.2f} s",
            "level": "",
        },
        {
            "name": "last",
            "text": f"{duration_text(max(0, now_ms - last.at_ms))} ago",
            "level": "",
        },
    ]
    if last.late:
        facts.append({"name": "late", "text": f"{last.late:,}", "level": WARN})
    return {
        "name": harmless(query.name),
        "state": query.state,
        "level": PIPELINE_LEVELS.get(query.state, ""),
        "edge": rate_text(query.read_per_second),
        "facts": facts,
        "outputs": [output_node(output) for output in query.outputs],
    }


def output_node(output: FlowOutput) -> FlowCells:
    """An output. Rejected rows are a warning."""
    is_warning = output.name == REJECT and output.recent_rows > 0
    rows = output.recent_rows if output.name == REJECT else output.rows
    count = output.recent_batches if output.name == REJECT else 1
    what = f"in the last {count} batches" if count > 1 else "in the last batch"
    return {
        "name": harmless(output.name),
        "edge": rate_text(output.rows_per_second),
        "text": f"{rows:,} {what}",
        "level": WARN if is_warning else "",
    }
