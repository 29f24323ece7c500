"""`penstock groups`: the groups of a stream, or the consumers of a group."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated

import typer

from penstock.cli.connect import URL_DEFAULT, Json, Server, Url
from penstock.cli.terminal.outcome import example
from penstock.cli.terminal.output import Column, Output
from penstock.client.replies import array, blob, identifier, mapping, number, number_or_none
from penstock.human.show import duration_text, harmless, json_line, json_text

EPILOG = example(
    "penstock groups orders                the groups",
    "penstock groups orders packers        the consumers of one",
    "penstock groups orders --json | jq 'select(.lag > 1000)'",
)

UNKNOWN = "unknown"
LAG_NOTE = (
    "lag unknown: entries ahead of the group were deleted, or it was set to an id of your choosing,"
    " and the server has not counted since"
)

GROUP_COLUMNS = (
    Column("group"),
    Column("consumers", numeric=True),
    Column("pending", numeric=True),
    Column("last delivered"),
    Column("read", numeric=True),
    Column("lag", numeric=True),
)
CONSUMER_COLUMNS = (
    Column("consumer"),
    Column("pending", numeric=True),
    Column("idle", numeric=True),
    Column("inactive", numeric=True),
)

Row = dict[str, str | int | None]
Rows = list[Row]


def groups(
    stream: Annotated[str, typer.Argument(metavar="STREAM")],
    group: Annotated[str | None, typer.Argument(metavar="GROUP")] = None,
    json: Json = False,
    url: Url = URL_DEFAULT,
) -> None:
    """Show the groups of a stream, or the consumers of one group.

    A lag is `unknown` when the server cannot count: entries ahead of the group were deleted, or the group was
    set to an id in between. Idle is the time since a consumer last asked, inactive since it last got
    something (Redis 7.2 and newer).
    """
    name = os.fsencode(stream)
    output = Output()
    with Server(url) as server:
        if group is not None:
            _show(consumers_of(server, name, os.fsencode(group)), _consumer_table, json, output)
            return
        rows = groups_of(server, name)
    _show(rows, _group_table, json, output)


def _show(rows: Rows, table: Callable[[Rows, Output], None], json: bool, output: Output) -> None:
    if json:
        for row in rows:
            output.line(json_line(row))
    else:
        table(rows, output)


def _group_table(rows: Rows, output: Output) -> None:
    output.table(GROUP_COLUMNS, [_group_cells(row) for row in rows])
    if any(row["lag"] is None for row in rows):
        output.note(LAG_NOTE)


def _consumer_table(rows: Rows, output: Output) -> None:
    output.table(CONSUMER_COLUMNS, [_consumer_cells(row) for row in rows])


def groups_of(server: Server, stream: bytes) -> Rows:
    rows: Rows = []
    for item in array(server.ask("XINFO", "GROUPS", stream, about=stream)):
        group = mapping(item)
        rows.append(
            {
                "name": json_text(blob(group["name"])),
                "consumers": number(group["consumers"]),
                "pending": number(group["pending"]),
                "last_delivered_id": str(identifier(group["last-delivered-id"])),
                # Redis 6 has neither of these.
                "entries_read": number_or_none(group.get("entries-read")),
                "lag": number_or_none(group.get("lag")),
            }
        )
    return rows


def consumers_of(server: Server, stream: bytes, group: bytes) -> Rows:
    rows: Rows = []
    for item in array(server.ask("XINFO", "CONSUMERS", stream, group, about=stream)):
        consumer = mapping(item)
        rows.append(
            {
                "name": json_text(blob(consumer["name"])),
                "pending": number(consumer["pending"]),
                "idle_ms": number(consumer["idle"]),
                "inactive_ms": number_or_none(consumer.get("inactive")),
            }
        )
    return rows


def _group_cells(row: Row) -> list[str]:
    return [UNKNOWN if value is None else harmless(str(value)) for value in row.values()]


def _consumer_cells(row: Row) -> list[str]:
    return [
        harmless(str(row["name"])),
        str(row["pending"]),
        _since(row["idle_ms"]),
        _since(row["inactive_ms"]),
    ]


def _since(ms: str | int | None) -> str:
    if not isinstance(ms, int):
        return UNKNOWN
    return "never" if ms < 0 else duration_text(ms)
