"""`penstock retention`: what the server's rules, or other ones, would remove from streams now."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated

import typer

from penstock.cli.connect import URL_DEFAULT, Json, ServerConnection, Url
from penstock.cli.terminal.outcome import Failure, example
from penstock.cli.terminal.output import Stdout, TableColumn
from penstock.client.replies import array, blob
from penstock.client.retention import DIRECTIVE, effect_words, parse_effect
from penstock.engine.retention.policy import Policy, parse_policies, policy_of
from penstock.errors import CommandError
from penstock.human.show import harmless, json_line, json_text, size_text

EPILOG = example(
    "penstock retention                              every stream that has a rule",
    "penstock retention orders                       one stream, by the rule of the server",
    "penstock retention orders age 7d acked yes      one stream, by another rule",
)

COLUMNS = (
    TableColumn("stream"),
    TableColumn("length", numeric=True),
    TableColumn("bytes", numeric=True),
    TableColumn("removable", numeric=True),
    TableColumn("first kept"),
    TableColumn("held by"),
    TableColumn("rule"),
)
SCAN_COUNT = 1000
Row = dict[str, str | int | None]


def retention(
    stream: Annotated[str | None, typer.Argument(metavar="[STREAM]")] = None,
    rule: Annotated[list[str] | None, typer.Argument(metavar="[OPTION VALUE ...]")] = None,
    json: Json = False,
    url: Url = URL_DEFAULT,
) -> None:
    """Show what a retention rule would remove now. Nothing is changed.

    Options of a rule: age TIME, bytes SIZE, length COUNT, acked yes, idle-group TIME, force yes. Without
    them, the rules of the server's setting `stream-retention` are used. Whole nodes are removed, so up to a
    node of entries (100) stays that a rule would let go.

    `held by` is the group that has not acknowledged the next entries. Only a penstock server has retention.
    """
    output = Stdout()
    with ServerConnection(url) as server:
        if rule:
            assert stream is not None
            policy = _parse([stream, *rule])[0]
            rows = [_row(server, os.fsencode(stream), policy)]
        else:
            rows = list(_by_setting(server, stream))
    if json:
        for row in rows:
            output.line(json_line(row))
    else:
        output.table(COLUMNS, [_cells(row) for row in rows])


def _by_setting(server: ServerConnection, stream: str | None) -> Iterator[Row]:
    found = array(server.ask("CONFIG", "GET", DIRECTIVE))
    if len(found) != 2:
        raise Failure(f"{server.name} has no setting {DIRECTIVE}: it is not a penstock server")
    policies = _parse(blob(found[1]).decode(errors="surrogateescape").split())
    names = _streams(server) if stream is None else [os.fsencode(stream)]
    for name in names:
        policy = policy_of(policies, name)
        if policy is not None:
            yield _row(server, name, policy)
        elif stream is not None:
            raise Failure(
                f"no rule of {DIRECTIVE} matches {harmless(name)}: add one, or give the options of a rule"
            )


def _streams(server: ServerConnection) -> Iterator[bytes]:
    cursor = b"0"
    while True:
        at, names = array(server.ask("SCAN", cursor, "COUNT", SCAN_COUNT, "TYPE", "stream"))
        yield from sorted(map(blob, array(names)))
        cursor = blob(at)
        if cursor == b"0":
            return


def _row(server: ServerConnection, name: bytes, policy: Policy) -> Row:
    words = policy.text().split()[1:]
    effect = parse_effect(server.ask(*effect_words(name, words), about=name))
    return {
        "stream": json_text(name),
        "length": effect.length,
        "bytes": effect.size_bytes,
        "removable": effect.removed_entries,
        "removable_bytes": effect.removed_bytes,
        "first_kept": None if effect.first_kept is None else effect.first_kept.decode(),
        "held_by": None if effect.held_by is None else json_text(effect.held_by),
        "rule": " ".join(words),
    }


def _cells(row: Row) -> list[str]:
    size = row["bytes"]
    assert isinstance(size, int)
    shown = [row["first_kept"], row["held_by"], row["rule"]]
    return [
        harmless(str(row["stream"])),
        str(row["length"]),
        size_text(size),
        str(row["removable"]),
        *("-" if value is None else harmless(str(value)) for value in shown),
    ]


def _parse(words: list[str]) -> tuple[Policy, ...]:
    try:
        policies = parse_policies(words)
    except CommandError as error:
        raise typer.BadParameter(str(error)) from None
    return policies
