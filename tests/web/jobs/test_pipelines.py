"""Reports of pipelines."""

from __future__ import annotations

import itertools

from penstock.client.replies import Entry
from penstock.core.stream_id import StreamID
from penstock.web.jobs.flow import flows_of
from penstock.web.jobs.pipelines import (
    BATCHES_DRAWN,
    QUIET_MS,
    RECENT_BATCHES,
    PipelineBatch,
    PipelineFailure,
    PipelineReports,
    Rejects,
    parse_batch_or_none,
    parse_report_or_none,
    reason_of,
    reject_streams,
    rejects_of,
    thinned,
)
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.history import GroupHistory
from penstock.web.server.asking import ServerClient
from penstock.web.watch.pipeline_watch import PipelineWatch
from tests.web.conftest import Live


async def reports_of(server: ServerClient, seconds: int = 0) -> PipelineReports:
    """What a fresh dashboard knows about pipelines."""
    watch = PipelineWatch(server, StreamCatalogue(server, GroupHistory()))
    await watch.look()
    return watch.reports(await server.now_ms(), seconds)


def test_the_newest_batch_of_each_output_is_its_state(live: Live) -> None:
    for batch in range(3):
        for output in ("silver", "bronze"):
            told = {
                "pipeline": "shop",
                "output": output,
                "batch": batch,
                "rows": 10,
                "seconds": "0.5",
            }
            live.client.xadd("penstock:metrics", told | {"rows_per_second": 20.0, "lag": 3})
    live.client.xadd("penstock:metrics", {"something": "else"})
    found = live.ask(reports_of).outputs
    assert [(output.pipeline, output.output) for output in found] == [
        ("shop", "bronze"),
        ("shop", "silver"),
    ]
    last = found[0].last
    assert (last.batch, last.rows, last.rows_per_second, last.lag, last.pending) == (
        2,
        10,
        20.0,
        3,
        None,
    )
    assert [batch.batch for batch in found[0].batches] == [0, 1, 2]
    assert found[0].state(last.at_ms + 1) == "running"
    assert found[0].state(last.at_ms + QUIET_MS) == "quiet"


def test_an_error_is_shown_until_the_next_batch(live: Live) -> None:
    batch = {"pipeline": "shop", "batch": 1, "rows": 10}
    for output in ("bronze", "silver"):
        live.client.xadd("penstock:metrics", batch | {"output": output})
    failed = {"pipeline": "shop", "output": "silver", "error": "disk full"}
    live.client.xadd("penstock:metrics", failed)
    bronze, silver = live.ask(reports_of).outputs
    assert (bronze.state(0), silver.state(0)) == ("stopped", "failed")
    assert silver.failure is not None
    assert silver.failure.error == "disk full"
    live.client.xadd("penstock:metrics", batch | {"output": "bronze"})
    assert [output.failure for output in live.ask(reports_of).outputs] == [None, None]


def test_a_pipeline_that_fails_in_its_first_batch_is_shown(live: Live) -> None:
    live.client.xadd("penstock:metrics", {"pipeline": "a", "output": "silver", "error": "no disk"})
    live.client.xadd(
        "penstock:metrics", {"pipeline": "b", "output": "silver", "batch": 1, "rows": 1}
    )
    reports = live.ask(reports_of)
    failed, running = flows_of(reports, reports.outputs[0].last.at_ms)
    assert (failed.name, failed.queries, running.name) == ("a", (), "b")
    assert failed.failure is not None
    assert failed.failure.error == "no disk"
    assert reports.only("b").failures == []
    assert reports.only("a").outputs == []


def test_a_busy_pipeline_does_not_hide_a_slow_one(live: Live) -> None:
    seconds, microseconds = live.client.time()
    now_ms = 1000 * seconds + microseconds // 1000
    pipeline = live.client.pipeline(transaction=False)
    for minute in range(50, 0, -1):
        at_ms = now_ms - 60_000 * minute
        told = {"pipeline": "slow", "output": "silver", "batch": 50 - minute, "rows": 1}
        pipeline.xadd("penstock:metrics", told, id=f"{at_ms}-0")
        for number in range(100):  # a hundred reports behind it in the same minute
            told = {"pipeline": "busy", "output": "silver", "batch": number, "rows": 1}
            pipeline.xadd("penstock:metrics", told, id=f"{at_ms + 1 + number}-0")
    pipeline.execute()

    def batches(seconds: int) -> list[int]:
        found = live.ask(lambda server: reports_of(server, seconds)).only("slow").outputs
        return [batch.batch for output in found for batch in output.batches]

    assert batches(3600) == list(range(50))
    assert batches(0) == list(range(21, 50))
    assert batches(60) == list(range(40, 50))  # the newest batches are always there


def test_a_long_history_keeps_its_slowest_batches() -> None:
    batches = [
        PipelineBatch("p", "o", number, 1000 * number, 1, None, 9.0 if number == 7 else 0.1, 0, 0)
        for number in range(20 * BATCHES_DRAWN)
    ]
    found = thinned(batches, 0)
    assert BATCHES_DRAWN <= len(found) <= BATCHES_DRAWN + RECENT_BATCHES + 1
    assert [one.batch for one in found] == sorted({one.batch for one in found})
    assert batches[7] in found
    assert found[-RECENT_BATCHES:] == batches[-RECENT_BATCHES:]
    assert thinned(batches[:3], 10**9) == batches[:3]


def test_a_run_that_was_ended_is_not_quiet(live: Live) -> None:
    told = {"pipeline": "shop", "output": "silver", "batch": 1, "rows": 1}
    live.client.xadd("penstock:metrics", {"pipeline": "shop", "run": "started"})
    live.client.xadd("penstock:metrics", told)

    def state() -> str:
        (output,) = live.ask(reports_of).outputs
        return output.state(output.last.at_ms + QUIET_MS)

    assert state() == "quiet"
    live.client.xadd("penstock:metrics", {"pipeline": "shop", "run": "ended"})
    assert state() == "ended"
    live.client.xadd("penstock:metrics", {"pipeline": "shop", "run": "started"})
    assert state() == "quiet"


def test_a_failure_is_over_when_a_later_run_ends(live: Live) -> None:
    live.client.xadd("penstock:metrics", {"pipeline": "a", "output": "silver", "error": "no disk"})
    (failure,) = live.ask(reports_of).failures
    assert failure.restarted_ms is None
    live.client.xadd("penstock:metrics", {"pipeline": "a", "run": "started"})
    (failure,) = live.ask(reports_of).failures
    assert failure.restarted_ms is not None
    live.client.xadd("penstock:metrics", {"pipeline": "a", "run": "ended"})  # or by hand
    assert live.ask(reports_of).failures == []


def test_outputs_that_were_removed_are_left_out(live: Live) -> None:
    ms = itertools.count(1)

    def add(fields: dict[str, object]) -> None:
        fields |= {"pipeline": "shop"}
        live.client.xadd("penstock:metrics", fields, id=f"{next(ms)}-0")

    def told(output: str, query: str, batch: int) -> None:
        add({"output": output, "query": query, "batch": batch, "rows": 1})

    def outputs() -> list[str]:
        return [output.output for output in live.ask(reports_of).outputs]

    for output, query in (("bronze", "main"), ("reject", "main"), ("by_day", "by_day")):
        told(output, query, 5)
    add({"run": "started", "queries": "main"})
    assert outputs() == ["bronze", "reject"]
    told("bronze", "main", 6)
    assert outputs() == ["bronze", "reject"]  # it may report in a moment
    told("bronze", "main", 7)
    assert outputs() == ["bronze"]
    add({"run": "ended"})
    assert outputs() == ["bronze"]


def test_long_texts_of_reports_are_cut() -> None:
    long = b"x" * 100_000
    fields = [(name, long) for name in (b"pipeline", b"output", b"error", b"source", b"query")]
    failure = parse_report_or_none(Entry(StreamID(1, 0), fields))
    assert isinstance(failure, PipelineFailure)
    assert len(failure.pipeline) < 300
    assert len(failure.error) < 1100
    batch = parse_report_or_none(
        Entry(StreamID(1, 0), [*fields[:2], *fields[3:], (b"batch", b"1")])
    )
    assert isinstance(batch, PipelineBatch)
    assert len(batch.output) + len(batch.query) < 600
    assert batch.source == ""  # half of a list of names would be another one


def test_without_pipelines_there_are_no_outputs(live: Live) -> None:
    assert live.ask(reports_of) == PipelineReports([], [])


def test_invalid_numbers_are_ignored() -> None:
    fields = [
        (b"pipeline", b"p"),
        (b"output", b"o"),
        (b"batch", b"1"),
        (b"lag", b"inf"),
        (b"rows", b"x"),
    ]
    batch = parse_batch_or_none(Entry(StreamID(1, 0), fields))
    assert batch is not None
    assert (batch.lag, batch.rows) == (None, 0)


def test_rejects_are_found_by_their_reason_and_counted(live: Live) -> None:
    for reason in ("qty", "sku", "qty"):
        live.client.xadd("dead", {"_reason": reason, "raw": "x"})
    live.client.xadd("orders", {"raw": "x"})

    async def run(server: ServerClient) -> list[Rejects]:
        catalogue = StreamCatalogue(server, GroupHistory())
        await catalogue.sweep()
        return await rejects_of(server, reject_streams(catalogue))

    (rejects,) = live.ask(run)
    assert (rejects.stream, rejects.reasons) == (b"dead", [("qty", 2), ("sku", 1)])
    assert reason_of(rejects.entries[0]) == "qty"
