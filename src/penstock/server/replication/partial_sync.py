"""PSYNC: a replica continues from the backlog, or gets a snapshot.

An empty primary does not send its emptiness to a replica that has data: a primary that lost its disk would
wipe out its replicas (`replica-allow-empty-primary`). A replica without data asks for `?`, and is served.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.errors import CommandError
from penstock.server.log import LOG
from penstock.server.replication.replicas import Replica, State

if TYPE_CHECKING:
    from penstock.server.replication.replication import Replication

_ID = re.compile(r"[0-9a-f]{40}")


def synchronise(replication: Replication, replica: Replica, asked_id: str, wanted: int) -> None:
    """Answer PSYNC: the bytes since `wanted`, or later a snapshot. Raises: CommandError."""
    feed = replication.feed
    feed.hand_over()
    backlog = feed.backlog
    ip, port = replica.address
    who = f"{ip}:{port}"
    if (
        backlog is not None
        and _ID.fullmatch(asked_id)
        and feed.history.knows(asked_id, wanted)
        and backlog.covers(wanted)
    ):
        named = b" " + feed.history.id.encode() if replica.can_continue_renamed else b""
        missing = backlog.since(wanted)
        replica.write(b"+CONTINUE" + named + b"\r\n")
        replica.acked_ms = replication.server.steady_ms()
        replica.enter(State.ONLINE)
        replica.write(missing)
        replication.counts.partial_ok += 1
        LOG.info("replica %s continues; it gets %d bytes", who, len(missing))
        return
    if asked_id != "?":
        replication.counts.partial_refused += 1
        # A Redis that has never had replicas asks for byte 1 of its own history, with or without data.
        may_have_data = wanted > 1 or replica.asks_if_empty
        if may_have_data and not feed.history.knows(asked_id, wanted):
            _refuse_if_empty(replication)
    if backlog is None:
        feed.history.start_over()
        feed.begin()
    LOG.info("replica %s needs a snapshot", who)
    replica.enter(State.WAIT)
    replication.full_sync.start_if_due()


def _refuse_if_empty(replication: Replication) -> None:
    if replication.has_keys() or replication.setting("replica-allow-empty-primary"):
        return
    LOG.warning(
        "a replica with data asks for a sync, but this server is empty: refused. To let it lose its data, set"
        " replica-allow-empty-primary yes"
    )
    raise CommandError("Can't SYNC: this primary is empty, and you are not", "NOMASTERLINK")
