"""`penstock dead`: the dead letters of a stream."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from penstock.cli.connect import URL_DEFAULT, Json, ServerConnection, Url
from penstock.cli.terminal.entries import StreamEntry, entries
from penstock.cli.terminal.outcome import Failure, example
from penstock.cli.terminal.output import Stdout, TableColumn
from penstock.client.dead_letters import FACTS, SUFFIX, add_words, claim_words, drop_words, facts_of
from penstock.human.show import entry_json, fields_text, harmless

EPILOG = example(
    "penstock dead orders ls                        what is dead, and why",
    "penstock dead orders show 1700000000000-0      one entry with its traceback",
    "penstock dead orders redrive 1700000000000-0   try it again",
    "penstock dead orders redrive --all             try all of them again",
    "penstock dead orders drop 1700000000000-0      remove it",
)

PAGE = 500
COLUMNS = (
    TableColumn("id"),
    TableColumn("source id"),
    TableColumn("group"),
    TableColumn("attempts", numeric=True),
    TableColumn("reason"),
)


class Action(StrEnum):
    """What to do with dead letters."""

    LS = "ls"
    SHOW = "show"
    REDRIVE = "redrive"
    DROP = "drop"


def dead(
    stream: Annotated[str, typer.Argument(metavar="STREAM")],
    action: Annotated[Action, typer.Argument(metavar="ls|show|redrive|drop")],
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID ...]")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False,
    json: Json = False,
    url: Url = URL_DEFAULT,
) -> None:
    """Show dead letters, try them again, or remove them.

    A worker moves an entry to STREAM:dead when its attempts are used up, when its handler raises Dead, or
    when its payload cannot be read. `redrive` gives it back to the group that failed, with all its attempts.
    If the entry is no longer in STREAM, it is added again, and all groups see it. IDs are those of
    STREAM:dead.
    """
    name = os.fsencode(stream) + SUFFIX
    output = Stdout()
    with ServerConnection(url) as server:
        if action is Action.LS:
            _list(_all(server, name), json, output)
            return
        found = _all(server, name) if everything else [_one(server, name, id_) for id_ in ids or ()]
        if not found and not everything:
            raise typer.BadParameter(f"{action} needs the id of an entry, or --all")
        for entry in found:
            if action is Action.SHOW:
                _show(name, entry, json, output)
            elif action is Action.DROP:
                server.ask("XDEL", name, str(entry.id), about=name)
                output.line(f"dropped {entry.id}")
            else:
                output.line(f"redriven {entry.id} to {_redrive(server, name, entry)}")


def _all(server: ServerConnection, name: bytes) -> list[StreamEntry]:
    found: list[StreamEntry] = []
    start = "-"
    while True:
        page = entries(name, server.ask("XRANGE", name, start, "+", "COUNT", PAGE, about=name))
        found += page
        if len(page) < PAGE:
            return found
        start = str(page[-1].id.next())


def _one(server: ServerConnection, name: bytes, id_: str) -> StreamEntry:
    found = entries(name, server.ask("XRANGE", name, id_, id_, about=name))
    if not found:
        raise Failure(f"{harmless(name)} has no entry {harmless(id_)}")
    return found[0]


def _list(found: list[StreamEntry], json: bool, output: Stdout) -> None:
    if json:
        for entry in found:
            output.line(entry_json(entry.stream, entry.id, entry.fields))
        return
    rows = []
    for entry in found:
        facts = facts_of(entry.fields)
        shown = [facts.get(name, b"") for name in (b"_source_id", b"_group", b"_attempts")]
        reason = facts.get(b"_reason", b"").split(b"\n")[0]
        rows.append([str(entry.id), *map(harmless, shown), harmless(reason)])
    output.table(COLUMNS, rows)


def _show(name: bytes, entry: StreamEntry, json: bool, output: Stdout) -> None:
    if json:
        output.line(entry_json(name, entry.id, entry.fields))
        return
    output.line(f"{entry.id}")
    facts = facts_of(entry.fields)
    for fact in FACTS:
        if fact != b"_traceback" and fact in facts:
            output.line(f"  {fact.decode()[1:]}: {harmless(facts[fact])}")
    output.line(f"  fields: {fields_text([one for one in entry.fields if one[0] not in FACTS])}")
    for line in facts.get(b"_traceback", b"").decode(errors="replace").splitlines():
        output.line(f"  {harmless(line)}")


def _redrive(server: ServerConnection, name: bytes, entry: StreamEntry) -> str:
    """Give an entry back to its group, or add it again; then remove the dead letter.

    These are two steps, because a transaction would remove it even if the first one were refused.
    """
    facts = facts_of(entry.fields)
    try:
        source, source_id, group = (
            facts[name] for name in (b"_source_stream", b"_source_id", b"_group")
        )
    except KeyError as error:
        raise Failure(f"{entry.id} has no field {harmless(error.args[0])}") from None
    there = entries(source, server.ask("XRANGE", source, source_id, source_id, about=source))
    again = claim_words(source, group, source_id) if there else add_words(source, entry.fields)
    if not server.ask(*again, about=source):
        raise Failure(f"{entry.id} is no longer in {harmless(source)}: try again")
    server.ask(*drop_words(name, entry.id), about=name)
    return harmless(source)
