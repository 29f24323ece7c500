"""`penstock groups`: the groups of a stream, or the consumers of a group."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated

import typer

from penstock.cli.connect import URL_DEFAULT, Json, ServerConnection, Url
from penstock.cli.terminal.outcome import example
from penstock.cli.terminal.output import Stdout, TableColumn
from penstock.client.xinfo import consumer_infos, group_infos
from penstock.human.show import duration_text, harmless, json_line, json_text

EPILOG = example(
    "penstock groups orders                the groups",
    "penstock groups orders packers        the consumers of one group",
    "penstock groups orders --json | jq 'select(.lag > 1000)'",
)

UNKNOWN = "unknown"
LAG_NOTE = (
    "lag unknown: entries ahead of the group were deleted, or the group was set to an arbitrary id;"
    " known again when the group has read the last entry"
)

GROUP_COLUMNS = (
    TableColumn("group"),
    TableColumn("consumers", numeric=True),
    TableColumn("pending", numeric=True),
    TableColumn("last delivered"),
    TableColumn("read", numeric=True),
    TableColumn("lag", numeric=True),
)
CONSUMER_COLUMNS = (
    TableColumn("consumer"),
    TableColumn("pending", numeric=True),
    TableColumn("idle", numeric=True),
    TableColumn("inactive", numeric=True),
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

    The lag of a group is the number of entries it has not read yet. The server cannot count them, and the lag
    is `unknown`, if entries ahead of the group were deleted or the group was set to an id in the middle of
    the stream.

    Idle is the time since a consumer last sent a command. Inactive is the time since it last received an
    entry (Redis 7.2 and newer).
    """
    name = os.fsencode(stream)
    output = Stdout()
    with ServerConnection(url) as server:
        if group is not None:
            _show(consumers_of(server, name, os.fsencode(group)), _consumer_table, json, output)
            return
        rows = groups_of(server, name)
    _show(rows, _group_table, json, output)


def _show(rows: Rows, table: Callable[[Rows, Stdout], None], json: bool, output: Stdout) -> None:
    if json:
        for row in rows:
            output.line(json_line(row))
    else:
        table(rows, output)


def _group_table(rows: Rows, output: Stdout) -> None:
    output.table(GROUP_COLUMNS, [_group_cells(row) for row in rows])
    if any(row["lag"] is None for row in rows):
        output.note(LAG_NOTE)


def _consumer_table(rows: Rows, output: Stdout) -> None:
    output.table(CONSUMER_COLUMNS, [_consumer_cells(row) for row in rows])


def groups_of(server: ServerConnection, stream: bytes) -> Rows:
    return [
        {
            "name": json_text(group.name),
            "consumers": group.consumers,
            "pending": group.pending,
            "last_delivered_id": str(group.last_id),
            "entries_read": group.entries_read,
            "lag": group.lag,
        }
        for group in group_infos(server.ask("XINFO", "GROUPS", stream, about=stream))
    ]


def consumers_of(server: ServerConnection, stream: bytes, group: bytes) -> Rows:
    return [
        {
            "name": json_text(consumer.name),
            "pending": consumer.pending,
            "idle_ms": consumer.idle_ms,
            "inactive_ms": consumer.inactive_ms,
        }
        for consumer in consumer_infos(
            server.ask("XINFO", "CONSUMERS", stream, group, about=stream)
        )
    ]


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
