"""What is wrong with a server now, most dangerous first.

First what may lose data (disk, replication, memory), then work that does not get done (dead consumers,
pending entries, groups that nobody reads or that fall behind, pipelines that fail or stand still), then what
people have to look at (ids in the future, rejects and dead letters).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.client.xinfo import GroupInfo
from penstock.doctor.streams import FUTURE_MS_MAX
from penstock.human.show import counted, duration_text, harmless, size_text
from penstock.web.http.names import link
from penstock.web.jobs.pipelines import PipelineFailure, PipelineReports, is_reject
from penstock.web.model.facts import StreamFacts
from penstock.web.model.history import GroupHistory, Sample
from penstock.web.watch.figures import REPLICAS_GONE
from penstock.web.watch.group_watch import WatchedGroup
from penstock.web.watch.info import Info, number_of, parts_of, share_of
from penstock.web.watch.pipeline_watch import GONE_MS, StillQuery
from penstock.web.watch.thresholds import (
    BAD,
    CLIENT_SHARE,
    DISK_SHARE,
    FSYNC_MS,
    LAG,
    MACHINE_SHARE,
    MEMORY_SHARE,
    PENDING_AGE_MS,
    REPLICA_SECONDS,
    STILL_MS,
    WARN,
)

GROWTH_SECONDS = 60
REJECT_AGE_MS_MAX = 60 * 60_000
REPAIRED_MS = 5 * 60_000  # a new run that has not failed for so long counts as a repair
REPAIR_NOTED_MS = 60 * 60_000
DEAD_LETTERS = b":dead"
ERROR_SHOWN_MAX = 200
LOOK_AT_LOG = "The server's log says more."


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to look at: how bad it is, what, where, and a link to the place."""

    level: str
    what: str
    where: str
    detail: str
    href: str


def problems_of_server(info: Info) -> Iterator[Problem]:
    """Disk, replication, memory and connections, from INFO."""
    for name, what in (
        ("aof_last_write_status", "The log cannot be written"),
        ("rdb_last_bgsave_status", "The last snapshot failed"),
        ("aof_last_bgrewrite_status", "The last rewrite of the log failed"),
    ):
        if info.get(name, "ok") != "ok":
            yield Problem(BAD, what, "disk", f"{name} is {harmless(info[name])}. {LOOK_AT_LOG}", "")
    yield from _disk(info)
    yield from _replication(info)
    for share, threshold, what, limit in (
        (share_of(info, "used_memory", "maxmemory"), MEMORY_SHARE, "Memory", "maxmemory"),
        (share_of(info, "connected_clients", "maxclients"), CLIENT_SHARE, "Clients", "maxclients"),
    ):
        level = threshold.level(share)
        if level and share is not None:
            yield Problem(
                level,
                f"{what}: {share:.0%} of the limit",
                "server",
                f"The limit is {limit}.",
                link("configuration", search=limit),
            )
    share = share_of(info, "used_memory", "total_system_memory")
    level = MACHINE_SHARE.level(share)
    if level and share is not None:
        detail = "The system may kill the server: trim streams, and set maxmemory."
        yield Problem(level, f"Memory: {share:.0%} of the machine", "server", detail, "")


def _disk(info: Info) -> Iterator[Problem]:
    """How full and how slow the disk of a penstock server is."""
    free, size = (number_of(info, f"penstock_disk_{name}bytes") for name in ("free_", ""))
    level = DISK_SHARE.level(1 - free / size) if free is not None and size else ""
    if level and free is not None and size:
        detail = (
            f"{free / size:.1%} free ({size_text(round(free))}). A rewrite of the log needs room for a"
            " second copy of the data."
        )
        yield Problem(level, "Disk nearly full", "disk", detail, "")
    fsync_us = number_of(info, "penstock_fsync_usec")
    if fsync_us is not None and (level := FSYNC_MS.level(fsync_us / 1000)):
        detail = (
            f"An fsync takes {fsync_us / 1000:,.0f} ms; writes wait for it with appendfsync always."
        )
        yield Problem(level, "Slow disk", "disk", detail, "")


def _replication(info: Info) -> Iterator[Problem]:
    place = link("replication")
    if info.get("role") == "slave" and info.get("master_link_status") != "up":
        seconds = number_of(info, "master_link_down_since_seconds")
        since = "" if seconds is None else f" for {duration_text(round(seconds * 1000))}"
        primary = f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"
        yield Problem(
            BAD,
            "Replica without its primary",
            harmless(primary),
            f"The link is down{since}.",
            place,
        )
    gone = number_of(info, REPLICAS_GONE)
    if gone:
        what = "A replica is gone" if gone == 1 else f"{gone:.0f} replicas are gone"
        yield Problem(WARN, what, "replication", "It was connected in the last hour.", place)
    for name, value in info.items():
        if name.startswith("slave") and name[5:].isdecimal():
            replica = parts_of(value)
            where = harmless(f"{replica.get('ip', '?')}:{replica.get('port', '?')}")
            lag = number_of(replica, "lag")
            level = REPLICA_SECONDS.level(lag)
            if replica.get("state") != "online":
                state = harmless(replica.get("state", "unknown"))
                yield Problem(WARN, "Replica not online", where, f"Its state is {state}.", place)
            elif level and lag is not None:
                yield Problem(level, "Replica silent", where, f"Last heard {lag:.0f} s ago.", place)


def problems_of_watched(groups: Iterable[WatchedGroup]) -> Iterator[Problem]:
    """Dead consumers, ageing pending entries, and groups that nobody reads."""
    for watched in groups:
        where = f"{harmless(watched.group)} of {harmless(watched.stream)}"
        href = link("group", watched.stream, group=watched.group)
        if watched.dead:
            stuck = sum(consumer.pending for consumer in watched.dead)
            names = ", ".join(harmless(consumer.name) for consumer in watched.dead[:3])
            more = "" if len(watched.dead) <= 3 else f" and {len(watched.dead) - 3} more"
            what = (
                "Dead consumer" if len(watched.dead) == 1 else f"{len(watched.dead)} dead consumers"
            )
            detail = f"{names}{more}; {stuck:,} pending entries wait for a claim."
            yield Problem(BAD, what, where, detail, href)
        level = PENDING_AGE_MS.level(watched.oldest_idle_ms)
        if level and watched.oldest_idle_ms is not None:
            age = duration_text(watched.oldest_idle_ms)
            detail = f"{watched.pending:,} pending; the oldest was last delivered {age} ago."
            yield Problem(level, "Pending entries age", where, detail, href)
        if watched.unread is not None:
            unread = f"{watched.unread:,}" if watched.unread else "An unknown number of"
            detail = f"{unread} entries to read, and no consumer asked for them in the last hour."
            yield Problem(WARN, "Nobody reads this group", where, detail, href)


def problems_of_pipelines(
    reports: PipelineReports, still: Iterable[StillQuery], now_ms: int
) -> Iterator[Problem]:
    """Pipelines that an error has stopped, and those that stand still."""
    for failure in reports.failures:
        level = level_of_failure(failure, now_ms)
        if not level:
            continue
        ago = duration_text(max(0, now_ms - failure.at_ms))
        text = f"{harmless(failure.output)}, {ago} ago: {harmless(failure.error[:ERROR_SHOWN_MAX])}"
        yield Problem(
            level,
            "Pipeline failed",
            harmless(failure.pipeline),
            text + failure.restart_text(now_ms),
            link("pipeline", only=failure.pipeline),
        )
    for one in still:
        level = STILL_MS.level(one.silent_ms)
        if level:
            yield Problem(
                level,
                "Pipeline stands still",
                f"{harmless(one.query)} of {harmless(one.pipeline)}",
                f"Entries of {harmless(one.stream)} have waited for {duration_text(one.silent_ms)},"
                " and no batch came. It was killed, or a batch hangs.",
                link("pipeline", only=one.pipeline),
            )


def level_of_failure(failure: PipelineFailure, now_ms: int) -> str:
    """How bad a failure is. A new run that does not fail either is probably a repair."""
    if now_ms - failure.at_ms > GONE_MS:
        return ""
    if failure.restarted_ms is None or now_ms - failure.restarted_ms < REPAIRED_MS:
        return BAD
    return WARN if now_ms - failure.restarted_ms < REPAIR_NOTED_MS else ""


def problem_of_lag(stream: bytes, group: GroupInfo, samples: Sequence[Sample]) -> Problem | None:
    """A large lag. If it does not grow, it is at most a warning."""
    level = LAG.level(group.lag)
    if not level or group.lag is None:
        return None
    growth = growth_of(samples)
    if growth > 0:
        what, more = "Group falls behind", f", {growth:,} more than a minute ago"
    else:
        what, more, level = "Group is behind", ", not growing", WARN
    where = f"{harmless(group.name)} of {harmless(stream)}"
    return Problem(
        level, what, where, f"Lag {group.lag:,}{more}.", link("group", stream, group=group.name)
    )


def growth_of(samples: Sequence[Sample]) -> int:
    """By how much the lag grew in the last minute, or since the first sample."""
    known = [sample for sample in samples if sample.lag is not None]
    if not known:
        return 0
    recent = [sample for sample in known if sample.at >= known[-1].at - GROWTH_SECONDS]
    return (recent[-1].lag or 0) - (recent[0].lag or 0)


def problem_of_clock(facts: StreamFacts, now_ms: int) -> Problem | None:
    """A stream whose last id is in the future. Times and ages of its entries are wrong."""
    ahead_ms = facts.last_id.ms - now_ms
    if ahead_ms <= FUTURE_MS_MAX:
        return None
    detail = f"It is {duration_text(ahead_ms)} ahead: the clock went back, or a producer chose it."
    where = harmless(facts.name)
    return Problem(WARN, "Last id in the future", where, detail, link("stream", facts.name))


def problem_of_rejects(facts: StreamFacts, now_ms: int) -> Problem | None:
    """Dead letters, which wait until someone decides, and rejects of the last hour."""
    if facts.last is None or not facts.length:
        return None
    is_dead = facts.name.endswith(DEAD_LETTERS)
    age_ms = now_ms - facts.last.id.ms
    if not is_dead and (not is_reject(facts.last) or age_ms > REJECT_AGE_MS_MAX):
        return None
    what = "Dead letters" if is_dead else "Rejects"
    count = counted(facts.length, "entry")
    detail = f"{count}, the newest {duration_text(max(0, age_ms))} old."
    return Problem(WARN, what, harmless(facts.name), detail, link("stream", facts.name))


@dataclass(frozen=True, slots=True)
class Collected:
    """What the background work has found."""

    info: Info
    watched: Sequence[WatchedGroup]
    streams: Iterable[StreamFacts]
    history: GroupHistory
    pipelines: PipelineReports
    still: Sequence[StillQuery] = ()


def find_problems(known: Collected, now_ms: int) -> list[Problem]:
    """Everything that is wrong, bad before warnings, and otherwise in the order of this module's text."""
    found = [*problems_of_server(known.info), *problems_of_watched(known.watched)]
    unread = {(one.stream, one.group) for one in known.watched if one.unread is not None}
    rejects = []
    for facts in known.streams:
        for group in facts.groups:
            if LAG.level(group.lag):
                samples = known.history.samples(facts.name, group.name)
                one = problem_of_lag(facts.name, group, samples)
                if one is not None and (one.level == BAD or (facts.name, group.name) not in unread):
                    found.append(one)
        looks = (problem_of_clock(facts, now_ms), problem_of_rejects(facts, now_ms))
        rejects += [one for one in looks if one is not None]
    found += problems_of_pipelines(known.pipelines, known.still, now_ms)
    return sorted([*found, *rejects], key=lambda problem: problem.level != BAD)
