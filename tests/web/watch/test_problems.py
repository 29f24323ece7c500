"""What is wrong: each planted fault is found, the most dangerous first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.client.replies import Entry
from penstock.client.xinfo import ConsumerInfo, GroupInfo
from penstock.core.stream_id import SMALLEST, StreamID
from penstock.web.jobs.pipelines import PipelineFailure, PipelineReports
from penstock.web.model.facts import StreamFacts
from penstock.web.model.history import GroupHistory, Sample
from penstock.web.watch.group_watch import WatchedGroup
from penstock.web.watch.info import parse_info
from penstock.web.watch.pipeline_watch import StillQuery
from penstock.web.watch.problems import Collected, Problem, find_problems, growth_of
from penstock.web.watch.thresholds import BAD, LAG, WARN, Threshold, marked

NOW_MS = 1_700_000_000_000
NO_REPORTS = PipelineReports([], [])
DEAD = ConsumerInfo(b"ann", 7, 10**7, 10**7)


def facts(name: bytes, *groups: GroupInfo, last: Entry | None = None) -> StreamFacts:
    length = 0 if last is None else 1
    return StreamFacts(name, length, 1, SMALLEST, last, last, 1, None, 1, 1, groups)


def group(lag: int | None) -> GroupInfo:
    return GroupInfo(b"g", 1, 0, SMALLEST, 1, lag)


def found(
    *streams: StreamFacts,
    info: str = "",
    watched: tuple[WatchedGroup, ...] = (),
    history: GroupHistory | None = None,
    pipelines: PipelineReports = NO_REPORTS,
    still: tuple[StillQuery, ...] = (),
) -> list[Problem]:
    return find_problems(
        Collected(
            info=parse_info(info.encode()),
            watched=watched,
            streams=streams,
            history=history or GroupHistory(),
            pipelines=pipelines,
            still=still,
        ),
        NOW_MS,
    )


@pytest.mark.parametrize(
    ("info", "level", "what"),
    [
        ("aof_last_write_status:err", BAD, "The log cannot be written"),
        ("rdb_last_bgsave_status:err", BAD, "The last snapshot failed"),
        ("aof_last_bgrewrite_status:err", BAD, "The last rewrite of the log failed"),
        ("role:slave\r\nmaster_link_status:down", BAD, "Replica without its primary"),
        ("role:master\r\nslave0:ip=10.0.0.7,port=1,state=online,lag=31", BAD, "Replica silent"),
        ("slave0:ip=10.0.0.7,port=1,state=wait_bgsave,lag=0", WARN, "Replica not online"),
        ("used_memory:96\r\nmaxmemory:100", BAD, "Memory: 96% of the limit"),
        (
            "used_memory:91\r\nmaxmemory:0\r\ntotal_system_memory:100",
            BAD,
            "Memory: 91% of the machine",
        ),
        ("penstock_disk_free_bytes:14\r\npenstock_disk_bytes:100", WARN, "Disk nearly full"),
        ("penstock_disk_free_bytes:4\r\npenstock_disk_bytes:100", BAD, "Disk nearly full"),
        ("penstock_fsync_usec:34000", WARN, "Slow disk"),
        ("replicas_gone:1", WARN, "A replica is gone"),
        ("connected_clients:80\r\nmaxclients:100", WARN, "Clients: 80% of the limit"),
    ],
)
def test_a_fault_of_the_server_is_found(info: str, level: str, what: str) -> None:
    (problem,) = found(info=info)
    assert (problem.level, problem.what) == (level, what)


@pytest.mark.parametrize(
    "info",
    [
        "",
        "# Server\r\nno colon\r\nused_memory:many\r\nmaxmemory:100",
        "used_memory:9\r\nmaxmemory:0",
        "role:master\r\nslave0:ip=10.0.0.7,port=1,state=online,lag=1\r\naof_last_write_status:ok",
        "role:slave\r\nmaster_link_status:up\r\nslaves:many",
        "penstock_disk_free_bytes:16\r\npenstock_disk_bytes:100\r\npenstock_fsync_usec:900",
        "penstock_disk_free_bytes:0\r\npenstock_disk_bytes:0\r\ntotal_system_memory:0",
    ],
)
def test_a_healthy_or_strange_server_has_no_problem(info: str) -> None:
    assert found(info=info) == []


def test_dead_consumers_and_old_pending_entries_are_found() -> None:
    watched = (WatchedGroup(b"s", b"g", 7, 10 * 60_000, (DEAD,)),)
    problems = found(watched=watched)
    assert [(one.level, one.what) for one in problems] == [
        (BAD, "Dead consumer"),
        (WARN, "Pending entries age"),
    ]
    assert problems[0].href == "group?name=s&group=g"
    assert found(watched=(WatchedGroup(b"s", b"g", 7, 1000, ()),)) == []


def test_a_group_that_nobody_reads_is_found_below_the_limit_of_lag() -> None:
    (problem,) = found(watched=(WatchedGroup(b"s", b"g", 0, None, (), unread=3),))
    assert (problem.level, problem.what) == (WARN, "Nobody reads this group")
    assert problem.detail.startswith("3 entries to read")
    # Its lag says the same, unless it is bad.
    unread = (WatchedGroup(b"s", b"g", 0, None, (), unread=5_000),)
    (problem,) = found(facts(b"s", group(5_000)), watched=unread)
    assert problem.what == "Nobody reads this group"
    (problem,) = found(watched=(WatchedGroup(b"s", b"g", 0, None, (), unread=0),))
    assert problem.detail.startswith("An unknown number of entries")


def test_a_group_that_falls_behind_is_worse_than_one_that_is_behind() -> None:
    history = GroupHistory()
    for second, lag in ((0, 200_000), (30, 250_000)):
        history.note(facts(b"s", group(lag)), second)
    (problem,) = found(facts(b"s", group(250_000)), history=history)
    assert (problem.level, problem.what) == (BAD, "Group falls behind")
    assert "50,000 more" in problem.detail
    (problem,) = found(facts(b"s", group(250_000)))
    assert (problem.level, problem.what) == (WARN, "Group is behind")
    assert found(facts(b"s", group(None)), facts(b"t", group(10))) == []


def test_only_the_last_minute_counts_as_growth() -> None:
    assert growth_of([Sample(0, 0, 0), Sample(50, 900, 0), Sample(100, 1000, 0)]) == 100
    assert growth_of([Sample(0, None, 0)]) == growth_of([]) == 0


def test_dead_letters_always_wait_and_rejects_for_an_hour() -> None:
    def entry(age_ms: int) -> Entry:
        return Entry(StreamID(NOW_MS - age_ms, 0), [(b"_reason", b"x")])

    day = 24 * 3_600_000
    assert [one.what for one in found(facts(b"s:dead", last=entry(day)))] == ["Dead letters"]
    assert [one.what for one in found(facts(b"rejected", last=entry(1000)))] == ["Rejects"]
    assert found(facts(b"rejected", last=entry(day)), facts(b"s:dead")) == []


def test_a_pipeline_that_failed_is_found() -> None:
    failure = PipelineFailure("shop", "silver", NOW_MS - 120_000, "disk full")
    (problem,) = found(pipelines=PipelineReports([], [failure]))
    assert (problem.level, problem.what, problem.where) == (BAD, "Pipeline failed", "shop")
    assert problem.detail.startswith("silver, 2m")
    assert problem.href == "pipeline?only=shop"
    old = PipelineFailure("shop", "silver", NOW_MS - 8 * 24 * 3_600_000, "disk full")
    assert found(pipelines=PipelineReports([], [old])) == []


@pytest.mark.parametrize(("minutes", "levels"), [(4, [BAD]), (6, [WARN]), (61, [])])
def test_a_failed_pipeline_that_was_started_again_is_a_note_and_then_nothing(
    minutes: int, levels: list[str]
) -> None:
    restarted_ms = NOW_MS - 60_000 * minutes
    failure = PipelineFailure("shop", "silver", restarted_ms - 60_000, "disk full", restarted_ms)
    problems = found(pipelines=PipelineReports([], [failure]))
    assert [one.level for one in problems] == levels
    assert all(f"disk full (started again {minutes}m ago" in one.detail for one in problems)


@pytest.mark.parametrize(("minutes", "levels"), [(4, []), (6, [WARN]), (31, [BAD])])
def test_a_pipeline_that_stands_still_is_found(minutes: int, levels: list[str]) -> None:
    problems = found(still=(StillQuery("shop", "main", b"orders", minutes * 60_000),))
    assert [one.level for one in problems] == levels
    assert all("Entries of orders have waited" in one.detail for one in problems)


def test_ids_in_the_future_are_found() -> None:
    ahead = replace(facts(b"s"), last_id=StreamID(NOW_MS + 60_000, 0))
    (problem,) = found(ahead)
    assert (problem.level, problem.what) == (WARN, "Last id in the future")
    assert found(replace(ahead, last_id=StreamID(NOW_MS + 1000, 0))) == []


def test_what_is_bad_comes_first() -> None:
    watched = (
        WatchedGroup(b"s", b"g", 7, 10 * 60_000, ()),
        WatchedGroup(b"t", b"g", 7, None, (DEAD,)),
    )
    levels = [one.level for one in found(info="rdb_last_bgsave_status:err", watched=watched)]
    assert levels == [BAD, BAD, WARN]


def test_a_threshold_has_two_steps() -> None:
    steps = Threshold(10, 20)
    assert [steps.level(value) for value in (None, 9, 10, 19, 20)] == ["", "", WARN, WARN, BAD]
    assert marked("5", LAG.level(5)) == "5"
    assert marked("1,000", LAG.level(1000)) == {"text": "1,000", "level": WARN}
