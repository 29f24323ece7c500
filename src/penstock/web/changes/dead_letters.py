"""Plans to give dead letters back to their groups, as `penstock dead STREAM redrive` does."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.client.dead_letters import (
    GROUP,
    SOURCE_ID,
    SOURCE_STREAM,
    SUFFIX,
    add_words,
    claim_words,
    drop_words,
    facts_of,
)
from penstock.client.replies import Entry
from penstock.core.stream_id import parse
from penstock.errors import InvalidID
from penstock.human.show import counted, quoted
from penstock.web.changes.entry_changes import Change
from penstock.web.model.stream_page import read_ids
from penstock.web.refusal import Refused, Word
from penstock.web.server.asking import ServerClient


async def plan_redrive_dead(server: ServerClient, stream: bytes, chosen: Sequence[Entry]) -> Change:
    """Give dead letters of a stream back, each before it is removed. Raises: Refused."""
    if not chosen:
        raise Refused("no entry is selected")
    commands: list[tuple[Word, ...]] = []
    claimed = added = 0
    for entry in chosen:
        source, source_id, group = _origin(entry)
        if await read_ids(server, source, [parse(source_id)]):
            commands.append(claim_words(source, group, source_id))
            claimed += 1
        else:
            commands.append(add_words(source, entry.fields))
            added += 1
        commands.append(drop_words(stream + SUFFIX, entry.id))
    effects = [f"removes {counted(len(chosen), 'entry')} from {quoted(stream + SUFFIX)}"]
    if added:
        effects.insert(0, f"adds {counted(added, 'entry')} again: the original is gone")
    if claimed:
        effects.insert(0, f"gives {counted(claimed, 'entry')} back, with all attempts")
    warnings = ("all groups of the stream see entries that are added again",) if added else ()
    # An entry may be deleted by the time it is claimed: then its letter must stay.
    return Change(
        "Redrive dead letters",
        tuple(commands),
        tuple(effects),
        warnings,
        each_needs_all_before=True,
    )


def _origin(entry: Entry) -> tuple[bytes, bytes, bytes]:
    """Stream, id and group of the original. Raises: Refused if a field is missing or wrong."""
    facts = facts_of(entry.fields)
    for name in (SOURCE_STREAM, SOURCE_ID, GROUP):
        if not facts.get(name):
            raise Refused(f"{entry.id} has no field {name.decode()}")
    try:
        parse(facts[SOURCE_ID])
    except InvalidID:
        raise Refused(f"{entry.id}: _source_id is not an id") from None
    return facts[SOURCE_STREAM], facts[SOURCE_ID], facts[GROUP]
