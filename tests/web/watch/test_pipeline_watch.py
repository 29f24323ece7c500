"""Reports of pipelines are read as they arrive, and pipelines that stand still are noticed."""

from __future__ import annotations

import json

import pytest

from penstock.core.stream_id import StreamID
from penstock.web.jobs.pipelines import PipelineBatch
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.history import GroupHistory
from penstock.web.server.asking import ServerClient
from penstock.web.watch import pipeline_watch
from penstock.web.watch.pipeline_watch import PipelineWatch, ends_of
from tests.web.conftest import Live

MINUTE_MS = 60_000


def batch(live: Live, number: int, **more: object) -> dict[str, object]:
    """Add the report of a batch that has read all of `orders`."""
    last = live.client.xinfo_stream("orders")["last-generated-id"].decode()
    told = {"pipeline": "shop", "output": "silver", "query": "main", "batch": number, "rows": 1}
    told |= {"source": "orders", "ends": last, "seconds": 0.5}
    live.client.xadd("penstock:metrics", told | more)
    return told


def silent_after(live: Live, *ages_ms: int) -> list[list[int]]:
    """How long each query has been found to stand still, when looking at some times after now."""

    async def run(server: ServerClient) -> list[list[int]]:
        catalogue = StreamCatalogue(server, GroupHistory())
        await catalogue.sweep()
        watch = PipelineWatch(server, catalogue)
        await watch.look()
        now_ms = await server.now_ms()
        watch.recent = watch.reports(now_ms)
        return [[one.silent_ms for one in watch.find_still(now_ms + age_ms)] for age_ms in ages_ms]

    return live.ask(run)


def test_a_pipeline_with_entries_behind_its_last_batch_stands_still(live: Live) -> None:
    live.client.xadd("orders", {"n": 1})
    batch(live, 1)
    assert silent_after(live, 0, 9 * MINUTE_MS) == [[], []]
    live.client.xadd("orders", {"n": 2})
    # Only what was waited for since the first look counts: the entry may be new.
    assert silent_after(live, 60 * MINUTE_MS, 69 * MINUTE_MS) == [[], [9 * MINUTE_MS]]
    batch(live, 2)
    assert silent_after(live, 0, 9 * MINUTE_MS) == [[], []]


def test_a_batch_may_take_as_long_as_the_ones_before_it(live: Live) -> None:
    live.client.xadd("orders", {"n": 1})
    batch(live, 1, seconds=300)
    live.client.xadd("orders", {"n": 2})
    assert silent_after(live, 0, 14 * MINUTE_MS, 16 * MINUTE_MS) == [[], [], [16 * MINUTE_MS]]


@pytest.mark.parametrize("ended", [{"run": "ended"}, {"output": "silver", "error": "disk full"}])
def test_a_pipeline_that_was_ended_or_failed_does_not_stand_still(
    live: Live, ended: dict[str, str]
) -> None:
    live.client.xadd("orders", {"n": 1})
    batch(live, 1)
    live.client.xadd("orders", {"n": 2})
    live.client.xadd("penstock:metrics", {"pipeline": "shop"} | ended)
    assert silent_after(live, 0, 9 * MINUTE_MS) == [[], []]
    live.client.xadd("penstock:metrics", {"pipeline": "shop", "run": "started"})
    assert [bool(found) for found in silent_after(live, 0, 9 * MINUTE_MS)] == [False, True]


def started(live: Live, *queries: str) -> None:
    told = {"pipeline": "shop", "run": "started", "queries": ",".join(queries)}
    live.client.xadd("penstock:metrics", told)


def test_a_query_that_was_removed_does_not_stand_still(live: Live) -> None:
    live.client.xadd("orders", {"n": 1})
    for query in ("main", "by_day"):
        batch(live, 1, query=query, output=query)
    live.client.xadd("orders", {"n": 2})
    assert len(silent_after(live, 0, 9 * MINUTE_MS)[1]) == 2
    started(live, "main")
    batch(live, 2, output="main")
    assert silent_after(live, 0, 40 * MINUTE_MS) == [[], []]
    live.client.xadd("orders", {"n": 3})
    assert len(silent_after(live, 0, 9 * MINUTE_MS)[1]) == 1  # the query that is still there


def test_an_output_that_was_removed_from_a_query_does_not_stand_still(live: Live) -> None:
    live.client.xadd("orders", {"n": 1})
    batch(live, 1, output="bronze")
    batch(live, 1, output="reject")
    live.client.xadd("orders", {"n": 2})
    batch(live, 2, output="bronze")
    assert silent_after(live, 0, 40 * MINUTE_MS) == [[], []]  # also without a start


def test_names_with_commas_or_odd_bytes_are_watched(live: Live) -> None:
    for stream in (b"a,b", b"\xff", b"["):
        live.client.delete("penstock:metrics")
        live.client.xadd(stream, {"n": 1})
        last = live.client.xinfo_stream(stream)["last-generated-id"].decode()
        source = json.dumps([stream.decode("utf-8", "surrogateescape")])
        live.client.xadd("orders", {"n": 1})
        batch(live, 1, source=source, ends=last)
        assert silent_after(live, 0, 9 * MINUTE_MS) == [[], []]
        live.client.xadd(stream, {"n": 2})
        assert silent_after(live, 0, 9 * MINUTE_MS) == [[], [9 * MINUTE_MS]], stream


def test_a_pipeline_that_is_gone_for_a_week_is_not_missed(live: Live) -> None:
    live.client.xadd("orders", {"n": 1})
    batch(live, 1)
    live.client.xadd("orders", {"n": 2})
    assert silent_after(live, 0, 8 * 24 * 60 * MINUTE_MS) == [[], []]


def test_reports_of_older_versions_and_odd_ones_say_nothing() -> None:
    def ends(source: str, ends: str) -> list[tuple[bytes, StreamID]]:
        told = PipelineBatch("p", "o", 1, 1, 1, None, None, None, None, source=source, ends=ends)
        return ends_of(told)

    assert ends("orders", "") == []
    assert ends("a,b", "1-0") == []
    assert ends("a", "no id") == []
    assert ends("a,b", "1-0,2-5") == [(b"a", StreamID(1, 0)), (b"b", StreamID(2, 5))]
    assert ends('["a,b"]', "1-0") == [(b"a,b", StreamID(1, 0))]
    for odd in ("[", "[1]", '["\\ud800"]', "[" * 3000):
        assert ends(odd, "1-0") == []


def test_a_look_reads_only_what_is_new(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_watch, "PAGE", 3)
    live.client.xadd("orders", {"n": 1})

    async def run(server: ServerClient) -> None:
        watch = PipelineWatch(server, StreamCatalogue(server, GroupHistory()))

        async def known() -> list[int]:
            await watch.look()
            found = watch.reports(await server.now_ms()).outputs
            return [one.batch for output in found for one in output.batches]

        assert await known() == []
        for number in range(8):
            batch(live, number)
        assert await known() == list(range(8))
        before = server.reads
        assert await known() == list(range(8))
        assert server.reads - before == 3  # the ends of the stream, and the time
        batch(live, 8)
        assert await known() == list(range(9))
        live.client.xtrim("penstock:metrics", maxlen=4, approximate=False)
        assert await known() == [5, 6, 7, 8]
        live.client.delete("penstock:metrics")
        assert await known() == []
        batch(live, 1)
        assert await known() == [1]

    live.ask(run)
