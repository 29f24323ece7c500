"""Changes of groups that a page proposes: as entry_changes.py has them, planned by asking only."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.client.xinfo import ConsumerInfo, GroupInfo
from penstock.core.stream_id import StreamID
from penstock.human.show import quoted
from penstock.web.changes.entry_changes import Change, some_ids
from penstock.web.model.facts import StreamFacts
from penstock.web.model.groups import consumer_state
from penstock.web.model.lag import loses_lag_at
from penstock.web.refusal import Refused, Word

LAG_UNKNOWN = "its lag is unknown until it has read the last entry"


def plan_ack(name: bytes, group: bytes, ids: Sequence[StreamID]) -> Change:
    """Take entries out of a group's pending list. Raises: Refused if none is chosen."""
    if not ids:
        raise Refused("no entry is chosen")
    effects = (
        f"{len(ids)} entries count as done in {quoted(group)}, and nobody gets them again: {some_ids(ids)}",
    )
    command: tuple[Word, ...] = ("XACK", name, group, *(id_.text for id_ in ids))
    return Change("Acknowledge", (command,), effects)


def plan_claim(
    name: bytes, group: bytes, consumer: bytes, ids: Sequence[StreamID], idle_ms: int
) -> Change:
    """Give pending entries to another consumer. Raises: Refused."""
    if not ids:
        raise Refused("no entry is chosen")
    if not consumer:
        raise Refused("name the consumer that gets the entries")
    moved = (
        f"{len(ids)} entries become pending for {quoted(consumer)}, if nobody has touched them"
        f" for {idle_ms:,} ms: {some_ids(ids)}"
    )
    effects = (moved, "each counts as delivered once more")
    command: tuple[Word, ...] = (
        *("XCLAIM", name, group, consumer, idle_ms),
        *(id_.text for id_ in ids),
    )
    return Change("Claim", (command,), effects)


def plan_reset(facts: StreamFacts, group: GroupInfo, position: StreamID | None) -> Change:
    """Move a group: it next reads what follows `position`; None is the end of the stream."""
    # Never $, which is another id by the time of a yes.
    target = facts.last_id if position is None else position
    effects = [f"{quoted(group.name)} moves from {group.last_id} to {target}"]
    if target < group.last_id:
        effects.append(
            f"entries from {target} (not included) to {group.last_id} are delivered again"
        )
    elif target > group.last_id:
        effects.append(
            f"entries from {group.last_id} (not included) to {target} are never delivered to it"
        )
    else:
        # Not even SETID to the same id: it would forget how many entries were read.
        return Change(
            "Reset the position", (), (f"nothing: {quoted(group.name)} is at {target} already",)
        )
    warnings = []
    if group.pending:
        warnings.append(
            f"its {group.pending:,} pending entries stay pending, whatever the position"
        )
    if loses_lag_at(facts, target):
        warnings.append(LAG_UNKNOWN)
    return Change(
        "Reset the position",
        (("XGROUP", "SETID", facts.name, group.name, target.text),),
        tuple(effects),
        tuple(warnings),
    )


def plan_create(facts: StreamFacts, name: bytes, position: StreamID | None) -> Change:
    """Make a group that reads what follows `position`; None is the end. Raises: Refused."""
    if not name:
        raise Refused("name the group")
    if any(group.name == name for group in facts.groups):
        raise Refused(f"the stream has a group {quoted(name)} already")
    target = facts.last_id if position is None else position
    word: Word = "$" if position is None else position.text
    gets = f"it gets what follows {target}"
    if position is None:
        gets = f"it gets what comes from now on; the last id is {target}"
    elif facts.first is not None and target < facts.first.id:
        gets = f"it gets all {facts.length:,} entries, and what comes"
    return Change(
        "Create a group",
        (("XGROUP", "CREATE", facts.name, name, word),),
        (f"{quoted(name)} becomes a group of the stream", gets),
        (LAG_UNKNOWN,) if loses_lag_at(facts, target) else (),
    )


def plan_destroy(facts: StreamFacts, group: GroupInfo) -> Change:
    """Delete a group with all that it knows."""
    goes = f"{quoted(group.name)} goes, and with it {_pending_text(group.pending)}"
    effects = [
        f"{goes} and {group.consumers:,} consumers; the stream keeps its entries",
        f"its position {group.last_id} is forgotten: a group made again begins where it is told to",
    ]
    warnings = []
    if group.consumers:
        warnings.append("whoever reads by this group gets errors from then on (NOGROUP)")
    return Change(
        "Delete the group",
        (("XGROUP", "DESTROY", facts.name, group.name),),
        tuple(effects),
        tuple(warnings),
    )


def plan_delete_consumers(name: bytes, group: bytes, chosen: Sequence[ConsumerInfo]) -> Change:
    """Delete consumers of a group. Raises: Refused if none is chosen."""
    if not chosen:
        raise Refused("no consumer is chosen")
    effects = tuple(
        f"{quoted(consumer.name)} goes, and with it {_pending_text(consumer.pending)}"
        for consumer in chosen
    )
    warnings = []
    if any(consumer.pending for consumer in chosen):
        warnings.append(
            "what was pending there is delivered to nobody again: claim it first for another consumer"
        )
    if any(consumer_state(consumer) == "alive" for consumer in chosen):
        warnings.append("a consumer that still asks is there again with its next question")
    commands = tuple(("XGROUP", "DELCONSUMER", name, group, one.name) for one in chosen)
    return Change("Delete consumers", commands, effects, tuple(warnings))


def _pending_text(pending: int) -> str:
    return "1 pending entry" if pending == 1 else f"{pending or 'no'} pending entries"
