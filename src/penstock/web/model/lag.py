"""Why a server does not know how far behind a group is.

A server has two counters and no index: how many entries the stream ever got, and how many the group has read.
Lag is the one minus the other. It is not known any more

  - when entries ahead of the group are deleted: they were added, and nobody will read them
  - when the group is put to an id by hand: how many entries lie before it would have to be counted; only
    at the ends of the stream that is known without counting
  - always before Redis 7.0, which brought the counters

and is known again when the group has read the last entry, for that is an end. These are the rules of
Redis 7.0, which penstock keeps.
"""

from __future__ import annotations

from penstock.client.xinfo import GroupInfo
from penstock.core.stream_id import SMALLEST, StreamID
from penstock.web.model.facts import StreamFacts

AGAIN = "It is known again when the group has read the last entry."


def loses_lag_at(facts: StreamFacts, id_: StreamID) -> bool:
    """Tell whether a group that is put to an id has no lag then, on a server that counts."""
    if not facts.added or id_ == facts.last_id:
        return False
    if facts.first is None:
        return id_ > facts.last_id
    deleted = facts.max_deleted_id or SMALLEST
    return id_ > facts.first.id or deleted >= facts.first.id


def lag_text(group: GroupInfo) -> str:
    return "unknown" if group.lag is None else f"{group.lag:,}"


def why_unknown(facts: StreamFacts, group: GroupInfo) -> str:
    """Why a group has no lag, in words for the user; empty if it has one."""
    if group.lag is not None:
        return ""
    if facts.added is None:
        return "This server does not count what a group has read; Redis does from 7.0 on."
    deleted = facts.max_deleted_id
    if deleted is not None and deleted > group.last_id:
        return (
            f"Entries ahead of the group were deleted, up to {deleted}: they were added, and nobody"
            f" will read them. {AGAIN}"
        )
    if group.last_id > facts.last_id:
        return (
            f"The group was set to {group.last_id}, an id behind the last one: how many entries come"
            f" until then is not known. {AGAIN}"
        )
    return (
        f"The group is at {group.last_id}, and the server does not know how many entries lie before that:"
        f" it was set there, or it has read past deleted entries. {AGAIN}"
    )
