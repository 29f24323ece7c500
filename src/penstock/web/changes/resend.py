"""Plans to add an edited entry, or to send rejects back to their original stream.

A redriven entry has the same fields as with `penstock replay`: those of the reject without `_reason`, and
`_source_stream` and `_source_id`, the stream and id of the original entry. A pipeline writes these two into
the reject. If they are missing, they name the reject itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.client.replies import Entry
from penstock.human.show import Fields, counted, quoted
from penstock.web.changes.entry_changes import Change, plan_add, some_ids
from penstock.web.jobs.pipelines import REASON
from penstock.web.model.facts import stream_facts
from penstock.web.refusal import Refused, Word
from penstock.web.server.asking import ServerClient

SOURCE_STREAM, SOURCE_ID = b"_source_stream", b"_source_id"

Reject = tuple[bytes, Entry]  # the stream that holds it, and the entry


async def plan_resend(server: ServerClient, name: bytes, fields: Fields, id_: str = "*") -> Change:
    """Add an edited copy of an entry. Raises: Refused."""
    if not name:
        raise Refused("name the stream")
    added = plan_add(name, fields, id_)
    warnings = await _new_streams(server, [name])
    return Change("Resend the entry", added.commands, added.effects, warnings)


async def plan_redrive(
    server: ServerClient, chosen: Sequence[Reject], target: bytes, delete: bool
) -> Change:
    """Add rejects to `target`, or each to its original stream, and delete them if wanted. Raises: Refused."""
    if not chosen:
        raise Refused("no entry is selected")
    ordered = sorted(chosen, key=lambda reject: (reject[0], reject[1].id))
    adds: list[tuple[Word, ...]] = []
    goes: dict[bytes, int] = {}
    for stream, entry in ordered:
        to = target or _origin(entry)
        words = [word for field in redriven(stream, entry) for word in field]
        adds.append(("XADD", to, "*", *words))
        goes[to] = goes.get(to, 0) + 1
    effects = [
        f"adds {counted(count, 'entry')} to {quoted(to)}, without _reason"
        for to, count in goes.items()
    ]
    warnings = list(await _new_streams(server, list(goes)))
    deletes = _deletes(ordered) if delete else []
    if delete:
        effects.append(f"then deletes {counted(len(ordered), 'entry')}: {_some(ordered)}")
    else:
        warnings.append("the rejects are kept: if you redrive them again, they are added again")
    return Change("Redrive rejects", (*adds, *deletes), tuple(effects), tuple(warnings))


def redriven(stream: bytes, reject: Entry) -> Fields:
    """The fields of the redriven entry, as with `penstock replay`."""
    kept = [field for field in reject.fields if field[0] != REASON]
    if any(name == SOURCE_ID for name, _ in reject.fields):
        return kept
    return [*kept, (SOURCE_STREAM, stream), (SOURCE_ID, reject.id.text)]


def _origin(reject: Entry) -> bytes:
    for name, value in reject.fields:
        if name == SOURCE_STREAM and value:
            return value
    raise Refused(f"{reject.id} has no field _source_stream: name the stream to send it to")


def _deletes(rejects: Iterable[Reject]) -> list[tuple[Word, ...]]:
    ids: dict[bytes, list[bytes]] = {}
    for stream, entry in rejects:
        ids.setdefault(stream, []).append(entry.id.text)
    return [("XDEL", stream, *gone) for stream, gone in ids.items()]


def _some(rejects: Sequence[Reject]) -> str:
    return some_ids([entry.id for _, entry in rejects])


async def _new_streams(server: ServerClient, names: Sequence[bytes]) -> tuple[str, ...]:
    """Warnings about streams that do not exist yet. The server refuses keys of another type."""
    found = await stream_facts(server, names)
    return tuple(
        f"the stream {quoted(name)} does not exist and will be created"
        for name in names
        if name not in found
    )
