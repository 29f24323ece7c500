"""Runs faults against servers while clients work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.failover.clients import CLIENTS, GROUP, Client
from tests.support.failover.columns import Column
from tests.support.failover.faults import Fault
from tests.support.failover.judging import Outcome, judge
from tests.support.replication.links import eventually, same
from tests.support.replication.sentinels import Group, running_group

ENOUGH = 20  # answers to all clients, before a fault and after it is healed
ATTEMPTS_MIN = 10  # of each client while the fault lasts


@contextmanager
def running_column(column: Column, folder: Path) -> Iterator[Group]:
    """Start the servers of a column."""
    with running_group(folder, column.lines, column.servers, column.kind) as group:
        yield group


def run_faults(column: Column, group: Group, faults: Sequence[Fault]) -> dict[str, Outcome]:
    """One fault after the other; each has a stream and clients of its own."""
    found = {}
    for number, fault in enumerate(faults):
        try:
            found[fault.name] = _run(column, group, fault, f"s{number}")
        except AssertionError as error:
            text = f"{column}, {fault}: {error}\n{group.ends_of_logs()}"
            raise AssertionError(text) from error
    return found


def _run(column: Column, group: Group, fault: Fault, stream: str) -> Outcome:
    old = group.heal()
    with old.client() as client:
        eventually(lambda: _has_group(client, stream), "writes are taken")
        for node in group.nodes:
            with node.client() as other:
                same(client, other)
    clients = [Client(group, number, stream, column.waits) for number in range(CLIENTS)]
    for one in clients:
        one.start()
    try:
        _wait_for_answers(clients)
        fault.begin(group, old)
        if fault.is_replaced:
            group.wait_for_primary_other_than(old)
        _wait_for_attempts(clients)
        group.heal()
        _wait_for_answers(clients)
    finally:
        for one in clients:
            one.stop()
    primary = group.heal()
    with primary.client() as client:
        for node in group.nodes:
            with node.client() as other:
                same(client, other)
        return judge(clients, client, stream)


def _has_group(client: Any, stream: str) -> bool:
    """Make the group. The first attempt may have been refused too late."""
    if not client.exists(stream):
        client.xgroup_create(stream, GROUP, mkstream=True)
    return bool(client.xinfo_groups(stream))


def _wait_for_answers(clients: Sequence[Client]) -> None:
    """Every client gets answers."""
    before = [len(one.acknowledged) for one in clients]
    eventually(
        lambda: all(
            len(one.acknowledged) >= count + ENOUGH
            for one, count in zip(clients, before, strict=True)
        ),
        "writes of all clients are answered",
    )


def _wait_for_attempts(clients: Sequence[Client]) -> None:
    """Every client tries something."""
    before = [one.attempts for one in clients]
    eventually(
        lambda: all(
            one.attempts >= count + ATTEMPTS_MIN for one, count in zip(clients, before, strict=True)
        ),
        "all clients try to write",
    )
