"""Compares what clients were told with what is there at the end."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.failover.clients import GROUP, TOKEN, Client

ALL = 10**6


@dataclass(frozen=True, slots=True)
class Outcome:
    """One fault.

    lost                 entries whose XADD was acknowledged, and that are not there
    refused_but_there    entries whose XADD was refused, and that are there
    out_of_order         entries that are not in the order in which their client has sent them
    redelivered          entries whose XACK was acknowledged, and that are pending or delivered again
    seconds_without      the longest time in which nobody had a change acknowledged
    """

    acknowledged: int
    lost: int
    refused_but_there: int
    out_of_order: int
    redelivered: int
    seconds_without: float


def judge(clients: Sequence[Client], client: Any, stream: str) -> Outcome:
    """Read a whole stream and its group from the primary."""
    entries: list[tuple[bytes, bytes]] = [
        (found, fields[TOKEN]) for found, fields in client.xrange(stream)
    ]
    there = {token: found for found, token in entries}
    again = _delivered_again(client, stream, dict(entries))
    told = {token: found for one in clients for token, found in one.acknowledged.items()}
    acked = {entry for one in clients for entry in one.acked.items()}
    return Outcome(
        acknowledged=len(told),
        lost=sum(there.get(token) != found for token, found in told.items()),
        refused_but_there=sum(token in there for one in clients for token in one.refused),
        out_of_order=_out_of_order(clients, [token for _, token in entries]),
        redelivered=len(acked & again),
        seconds_without=_longest_gap(clients),
    )


def _delivered_again(
    client: Any, stream: str, tokens: dict[bytes, bytes]
) -> set[tuple[bytes, bytes]]:
    """The entries that consumers still have, or would get now."""
    pending = [row["message_id"] for row in client.xpending_range(stream, GROUP, "-", "+", ALL)]
    for _, entries in client.xreadgroup(GROUP, "judge", {stream: ">"}, count=ALL) or ():
        pending += [found for found, _ in entries]
    return {(found, tokens[found]) for found in pending if found in tokens}


def _out_of_order(clients: Sequence[Client], tokens: Iterable[bytes]) -> int:
    """Entries behind a later one of the same client, or there twice; and ids that a client saw fall."""
    numbers: dict[bytes, list[int]] = {}
    for token in tokens:
        name, _, number = token.partition(b":")
        numbers.setdefault(name, []).append(int(number))
    ids = [[_order(found) for found in one.acknowledged.values()] for one in clients]
    return sum(map(_falls, numbers.values())) + sum(map(_falls, ids))


def _falls(values: Sequence[Any]) -> int:
    return sum(after <= before for before, after in itertools.pairwise(values))


def _order(entry: bytes) -> tuple[int, int]:
    ms, _, number = entry.partition(b"-")
    return int(ms), int(number)


def _longest_gap(clients: Sequence[Client]) -> float:
    times = sorted(when for one in clients for when in one.times)
    return max((after - before for before, after in itertools.pairwise(times)), default=0.0)
