"""Rules about streams, groups and consumers. They work on facts from a server or from files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.client.dead_letters import DELAYED_SUFFIX, only_keeps
from penstock.doctor.finding import Finding, Severity
from penstock.human.show import counted, duration_text, harmless

FUTURE_MS_MAX = 5000


@dataclass(frozen=True, slots=True)
class ConsumerFacts:
    """`idle_ms`: since its last command."""

    name: bytes
    pending: int
    idle_ms: int


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """`lag` is None if it is unknown. `is_behind`: it has not read the last entry."""

    name: bytes
    lag: int | None
    is_behind: bool
    pending: int
    consumers: Sequence[ConsumerFacts]


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """`was_cut`: entries were trimmed or deleted at some time."""

    name: bytes
    length: int
    last_ms: int
    was_cut: bool
    groups: Sequence[GroupFacts]


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on something counts as wrong."""

    idle_ms: int = 3_600_000
    entries: int = 100_000


def stream_findings(stream: StreamFacts, now_ms: int, limits: Limits) -> Iterator[Finding]:
    """Everything that is wrong with one stream."""
    name = harmless(stream.name)
    ahead_ms = stream.last_ms - now_ms
    if ahead_ms > FUTURE_MS_MAX:
        yield Finding(
            Severity.WARNING,
            "clock",
            f"stream {name}: the last id is {duration_text(ahead_ms)} in the future",
            "the clock was set back, or a producer chose the id; new ids continue from there until the clock"
            " reaches it, and ages and trimming by time are wrong",
        )
    if not stream.was_cut and stream.length >= limits.entries:
        yield Finding(
            Severity.WARNING,
            "no-retention",
            f"stream {name} has {stream.length} entries and was never trimmed",
            f"give it a rule (stream-retention {name} age 7d), or add with MAXLEN (XADD {name} MAXLEN ~"
            f" {limits.entries} ...)",
        )
    for group in stream.groups:
        # Delayed entries of workers are never read, but claimed.
        is_read = not stream.name.endswith(DELAYED_SUFFIX)
        yield from _group_findings(name, group, is_read, limits)


def _group_findings(
    stream: str, group: GroupFacts, is_read: bool, limits: Limits
) -> Iterator[Finding]:
    name = harmless(group.name)
    readers = [consumer for consumer in group.consumers if not only_keeps(consumer.name)]
    idle = [consumer for consumer in readers if consumer.idle_ms >= limits.idle_ms]
    if is_read and group.is_behind and len(idle) == len(readers):
        lag = "an unknown number of entries" if group.lag is None else counted(group.lag, "entry")
        since = (
            f"its last consumer was there {duration_text(min(one.idle_ms for one in idle))} ago"
            if idle
            else "it has no consumers"
        )
        yield Finding(
            Severity.WARNING,
            "unread-group",
            f"group {name} of stream {stream} has {lag} to read, and {since}",
            f"start its consumers, or remove it: XGROUP DESTROY {stream} {name}",
        )
    for consumer in idle:
        if consumer.pending:
            who, held = harmless(consumer.name), counted(consumer.pending, "pending entry")
            yield Finding(
                Severity.WARNING,
                "dead-consumer",
                f"consumer {who} of group {name}, stream {stream}, holds {held} and was last there"
                f" {duration_text(consumer.idle_ms)} ago",
                f"let others take them over (XAUTOCLAIM {stream} {name} ...), then XGROUP DELCONSUMER",
            )
