"""Explains why the lag of a group is unknown.

A server has two counters: the entries ever added to the stream, and the entries the group has read. The lag
is their difference. It becomes unknown

  - if entries ahead of the group are deleted: they count as added, and will never be read
  - if the group is set to an id in the middle of the stream: the entries before it would have to be counted.
    At either end of the stream their number is known
  - always before Redis 7.0, which has no counters

It is known again when the group has read the last entry, because that is an end of the stream. These are the
rules of Redis 7.0, and penstock follows them.
"""

from __future__ import annotations

from penstock.client.xinfo import GroupInfo
from penstock.core.stream_id import SMALLEST, StreamID
from penstock.web.model.facts import StreamFacts

AGAIN = "It is known again when the group has read the last entry."


def loses_lag_at(facts: StreamFacts, id_: StreamID) -> bool:
    """Whether the lag of a group becomes unknown if it is set to an id, on a server with counters."""
    if not facts.added or id_ == facts.last_id:
        return False
    if facts.first is None:
        return id_ > facts.last_id
    deleted = facts.max_deleted_id or SMALLEST
    return id_ > facts.first.id or deleted >= facts.first.id


def lag_text(group: GroupInfo) -> str:
    return "unknown" if group.lag is None else f"{group.lag:,}"


def why_unknown(facts: StreamFacts, group: GroupInfo) -> str:
    """Why the lag of a group is unknown, as text for the user. Empty if it is known."""
    if group.lag is not None:
        return ""
    if facts.added is None:
        return (
            "This server does not count the entries that a group has read; Redis 7.0 and newer do."
        )
    deleted = facts.max_deleted_id
    if deleted is not None and deleted > group.last_id:
        return (
            f"Entries ahead of the group were deleted, up to {deleted}. They count as added but will"
            f" never be read. {AGAIN}"
        )
    if group.last_id > facts.last_id:
        return (
            f"The group was set to {group.last_id}, an id after the last one. The number of entries up to"
            f" that id is not known. {AGAIN}"
        )
    return (
        f"The group is at {group.last_id}, and the server does not know how many entries are before that id:"
        f" the group was set there, or has read past deleted entries. {AGAIN}"
    )
