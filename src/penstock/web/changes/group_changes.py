"""Plans changes of groups. Planning only reads; see entry_changes.py."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.client.xinfo import ConsumerInfo, GroupInfo
from penstock.core.stream_id import StreamID
from penstock.human.show import counted, quoted
from penstock.web.changes.entry_changes import Change, some_ids
from penstock.web.model.facts import StreamFacts
from penstock.web.model.groups import consumer_state
from penstock.web.model.unknown_lag import loses_lag_at
from penstock.web.refusal import Refused, Word

LAG_UNKNOWN = "its lag is unknown until it has read the last entry"


def plan_ack(name: bytes, group: bytes, ids: Sequence[StreamID]) -> Change:
    """Acknowledge pending entries. Raises: Refused if none is selected."""
    if not ids:
        raise Refused("no entry is selected")
    effect = f"acknowledges {counted(len(ids), 'entry')} in group {quoted(group)}: {some_ids(ids)}"
    command: tuple[Word, ...] = ("XACK", name, group, *(id_.text for id_ in ids))
    return Change("Acknowledge", (command,), (effect, "no consumer gets them again"))


def plan_claim(
    name: bytes, group: bytes, consumer: bytes, ids: Sequence[StreamID], idle_ms: int
) -> Change:
    """Give pending entries to another consumer. Raises: Refused."""
    if not ids:
        raise Refused("no entry is selected")
    if not consumer:
        raise Refused("name the consumer that gets the entries")
    moved = (
        f"makes {counted(len(ids), 'entry')} pending for {quoted(consumer)}, if idle for at least"
        f" {idle_ms:,} ms: {some_ids(ids)}"
    )
    effects = (moved, "the delivery count of each goes up by one")
    command: tuple[Word, ...] = (
        *("XCLAIM", name, group, consumer, idle_ms),
        *(id_.text for id_ in ids),
    )
    return Change("Claim", (command,), effects)


def plan_reset(facts: StreamFacts, group: GroupInfo, position: StreamID | None) -> Change:
    """Set a group's position: it continues after `position`. None is the end of the stream."""
    # Never $, which may be another id by the time the user confirms.
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
        # No SETID to the same id either: it would reset the number of entries read.
        return Change(
            "Reset the position",
            (),
            (f"nothing to do: {quoted(group.name)} is at {target} already",),
        )
    warnings = []
    if group.pending:
        warnings.append(f"its {group.pending:,} pending entries stay pending at any position")
    if loses_lag_at(facts, target):
        warnings.append(LAG_UNKNOWN)
    return Change(
        "Reset the position",
        (("XGROUP", "SETID", facts.name, group.name, target.text),),
        tuple(effects),
        tuple(warnings),
    )


def plan_create(facts: StreamFacts, name: bytes, position: StreamID | None) -> Change:
    """Create a group that reads entries after `position`. None is the end. Raises: Refused."""
    if not name:
        raise Refused("name the group")
    if any(group.name == name for group in facts.groups):
        raise Refused(f"the stream has a group {quoted(name)} already")
    target = facts.last_id if position is None else position
    word: Word = "$" if position is None else position.text
    gets = f"it reads entries after {target}"
    if position is None:
        gets = f"it reads new entries only; the last id is {target}"
    elif facts.first is not None and target < facts.first.id:
        gets = f"it reads all {facts.length:,} entries and new ones"
    return Change(
        "Create a group",
        (("XGROUP", "CREATE", facts.name, name, word),),
        (f"creates the group {quoted(name)}", gets),
        (LAG_UNKNOWN,) if loses_lag_at(facts, target) else (),
    )


def plan_destroy(facts: StreamFacts, group: GroupInfo) -> Change:
    """Delete a group with its consumers and pending entries."""
    held = f"{_pending_text(group.pending)} and {group.consumers:,} consumers"
    effects = [
        f"deletes {quoted(group.name)} with {held}; the stream keeps its entries",
        f"its position {group.last_id} is lost",
    ]
    warnings = []
    if group.consumers:
        warnings.append("clients that read through this group will get NOGROUP errors")
    return Change(
        "Delete the group",
        (("XGROUP", "DESTROY", facts.name, group.name),),
        tuple(effects),
        tuple(warnings),
    )


def plan_delete_consumers(name: bytes, group: bytes, chosen: Sequence[ConsumerInfo]) -> Change:
    """Delete consumers of a group. Raises: Refused if none is selected."""
    if not chosen:
        raise Refused("no consumer is selected")
    effects = tuple(
        f"deletes {quoted(consumer.name)} with {_pending_text(consumer.pending)}"
        for consumer in chosen
    )
    warnings = []
    if any(consumer.pending for consumer in chosen):
        warnings.append(
            "their pending entries will not be delivered again: claim them for another consumer first"
        )
    if any(consumer_state(consumer) == "alive" for consumer in chosen):
        warnings.append("a consumer that is still active is created again by its next read")
    commands = tuple(("XGROUP", "DELCONSUMER", name, group, one.name) for one in chosen)
    return Change("Delete consumers", commands, effects, tuple(warnings))


def _pending_text(pending: int) -> str:
    return "1 pending entry" if pending == 1 else f"{pending or 'no'} pending entries"
