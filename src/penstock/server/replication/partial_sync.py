"""PSYNC: a replica continues from the backlog, or gets a snapshot.

A replica that may not know the names of producers does not continue behind entries that were sent with their
names (names_apart.py): it would lack the entries. If this server follows a penstock, that primary must first
send the names apart. Until then the replica has to ask again.

An empty primary does not send its emptiness to a replica that has data: a primary that lost its disk would
wipe out its replicas (`replica-allow-empty-primary`). A server without data that never had a primary asks for
`?` if it is penstock, and is served. If it is a Redis, it asks as one with data does, and waits until this
server has a key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.errors import CommandError
from penstock.server.log import LOG
from penstock.server.replication.names_apart import may_have_names
from penstock.server.replication.replicas import Replica, State

if TYPE_CHECKING:
    from penstock.server.replication.replication import Replication

_ID = re.compile(r"[0-9a-f]{40}")
_REPORT_EVERY_MS = 60_000


def synchronise(replication: Replication, replica: Replica, asked_id: str, wanted: int) -> None:
    """Answer PSYNC: the bytes since `wanted`, or later a snapshot. Raises: CommandError."""
    feed = replication.feed
    feed.hand_over()
    if replica.needs_names_apart and not replication.puts_names_apart():
        raise CommandError("Can't SYNC yet: my primary must learn of this replica", "NOMASTERLINK")
    ip, port = replica.address
    who = f"{ip}:{port}"
    missing = _missing_or_none(replication, replica, asked_id, wanted)
    if missing is not None:
        named = b" " + feed.history.id.encode() if replica.can_continue_renamed else b""
        replica.write(b"+CONTINUE" + named + b"\r\n")
        replica.acked_ms = replication.server.steady_ms()
        replica.enter(State.ONLINE)
        replica.write(missing)
        replication.counts.partial_ok += 1
        LOG.info("replica %s continues; it gets %d bytes", who, len(missing))
        return
    if asked_id != "?":
        replication.counts.partial_refused += 1
        if not feed.history.knows(asked_id, wanted):
            _refuse_if_empty(replication)
    if feed.backlog is None:
        feed.history.start_over()
        feed.begin()
    LOG.info("replica %s needs a snapshot", who)
    replica.enter(State.WAIT)
    replication.full_sync.start_if_due()


def _missing_or_none(
    replication: Replication, replica: Replica, asked_id: str, wanted: int
) -> bytes | None:
    """The bytes that a replica needs to continue; None if it cannot."""
    history, backlog = replication.feed.history, replication.feed.backlog
    if backlog is None or not _ID.fullmatch(asked_id):
        return None
    if not history.knows(asked_id, wanted) or not backlog.covers(wanted):
        return None
    missing = backlog.since(wanted)
    return None if replica.needs_names_apart and may_have_names(missing) else missing


def _refuse_if_empty(replication: Replication) -> None:
    if replication.has_keys() or replication.setting("replica-allow-empty-primary"):
        return
    now_ms, last_ms = replication.server.steady_ms(), replication.refused_ms
    if last_ms is None or now_ms - last_ms >= _REPORT_EVERY_MS:  # it asks again every second
        replication.refused_ms = now_ms
        LOG.warning(
            "a replica that may have data asks for a sync, but this server is empty: refused until it has a"
            " key. To let the replica lose its data, set replica-allow-empty-primary yes%s",
            _needed_replicas(replication),
        )
    raise CommandError("Can't SYNC: this primary is empty, and you are not", "NOMASTERLINK")


def _needed_replicas(replication: Replication) -> str:
    """The end of the log line if the first key waits for a replica, and every replica for the first key."""
    for name in ("min-replicas-ack", "min-replicas-to-write"):
        if replication.setting(name):
            return f". Without that, no client can add a key: {name} refuses writes until a replica is online"
    return ""
