"""`penstock pending`: shows the pending entries of a group."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

import redis
import typer

from penstock.cli.connect import URL_DEFAULT, Json, ServerConnection, Url, Word, refusal
from penstock.cli.terminal.entries import StreamEntry, entries
from penstock.cli.terminal.moment import parse_duration
from penstock.cli.terminal.outcome import example
from penstock.cli.terminal.output import Stdout, TableColumn
from penstock.client.replies import Reply, array, blob, identifier, number, parts
from penstock.core import stream_id
from penstock.core.stream_id import StreamID
from penstock.human.show import (
    duration_text,
    fields_text,
    harmless,
    json_fields,
    json_line,
    json_object,
    json_text,
)

EPILOG = example(
    "penstock pending orders packers",
    "penstock pending orders packers --min-idle 5m --payload",
    "penstock pending orders packers --consumer ann --count 1000 --json",
)

PAGE = 500
PAYLOAD_PAGE = 50
DELETED = "(deleted)"
COLUMNS = (
    TableColumn("id"),
    TableColumn("consumer"),
    TableColumn("idle", numeric=True),
    TableColumn("deliveries", numeric=True),
)


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    """One pending entry of a group."""

    id: StreamID
    consumer: bytes
    idle_ms: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class PendingSelection:
    """Selects rows of XPENDING."""

    stream: bytes
    group: bytes
    consumer: bytes | None
    idle_ms_min: int

    def words(self, start: StreamID, count: int) -> list[Word]:
        words: list[Word] = ["XPENDING", self.stream, self.group]
        if self.idle_ms_min:
            words += ["IDLE", self.idle_ms_min]
        words += [str(start), "+", count]
        return words if self.consumer is None else [*words, self.consumer]


def pending(
    stream: Annotated[str, typer.Argument(metavar="STREAM")],
    group: Annotated[str, typer.Argument(metavar="GROUP")],
    consumer: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only entries of this consumer.")
    ] = None,
    min_idle: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Only entries delivered at least this long ago: 30s, 5m, 2h."
        ),
    ] = "0s",
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, metavar="N", help="Show at most N entries.")
    ] = 100,
    payload: Annotated[
        bool, typer.Option("--payload", help="Also show the fields of each entry.")
    ] = False,
    json: Json = False,
    url: Url = URL_DEFAULT,
) -> None:
    """Show the pending entries of a group, oldest first.

    A pending entry was delivered to a consumer and not acknowledged yet. Idle is the time since its last
    delivery.
    """
    selection = PendingSelection(
        os.fsencode(stream),
        os.fsencode(group),
        None if consumer is None else os.fsencode(consumer),
        parse_duration(min_idle),
    )
    output = Stdout()
    with ServerConnection(url) as server:
        if not json:
            _show_summary(server, selection, output)
        rows = islice(_rows(server, selection, count), min(count, sys.maxsize))
        pages = _with_entries(server, selection.stream, rows) if payload else _without(rows)
        if json:
            for row, found in pages:
                output.line(_json_row(row, found, payload))
            return
        columns = (*COLUMNS, TableColumn("payload")) if payload else COLUMNS
        cells = [_cells(row, found, payload) for row, found in pages]
    if cells:
        output.table(columns, cells)


def _show_summary(server: ServerConnection, selection: PendingSelection, output: Stdout) -> None:
    reply = server.ask("XPENDING", selection.stream, selection.group, about=selection.stream)
    count, first, last, owned = parts(reply, 4)
    total = number(count)
    if not total:
        output.line("0 pending")
        return
    shares = [parts(item, 2) for item in array(owned)]
    owners = ", ".join(f"{harmless(blob(name))} {number(share)}" for name, share in shares)
    output.line(f"{total} pending, {identifier(first)} to {identifier(last)}: {owners}")


def _rows(
    server: ServerConnection, selection: PendingSelection, count: int
) -> Iterator[PendingDelivery]:
    """Rows, page by page; at least `count` if the group has that many."""
    start = stream_id.SMALLEST
    page_rows = min(PAGE, count)
    while True:
        reply = server.ask(*selection.words(start, page_rows), about=selection.stream)
        page = [_row(item) for item in array(reply)]
        yield from page
        if len(page) < page_rows or page[-1].id == stream_id.LARGEST:
            return
        start = page[-1].id.next()


def _row(reply: Reply) -> PendingDelivery:
    id_, consumer, idle, deliveries = parts(reply, 4)
    return PendingDelivery(identifier(id_), blob(consumer), number(idle), number(deliveries))


def _without(
    rows: Iterator[PendingDelivery],
) -> Iterator[tuple[PendingDelivery, StreamEntry | None]]:
    return ((row, None) for row in rows)


def _with_entries(
    server: ServerConnection, stream: bytes, rows: Iterator[PendingDelivery]
) -> Iterator[tuple[PendingDelivery, StreamEntry | None]]:
    """Each row with its entry, or None if the entry has been deleted."""
    while page := list(islice(rows, PAYLOAD_PAGE)):
        replies = server.ask_all([("XRANGE", stream, str(row.id), str(row.id)) for row in page])
        for row, reply in zip(page, replies, strict=True):
            if isinstance(reply, redis.RedisError):
                raise refusal(reply, stream)
            found = entries(stream, reply)
            yield row, found[0] if found else None


def _cells(row: PendingDelivery, entry: StreamEntry | None, payload: bool) -> list[str]:
    cells = [str(row.id), harmless(row.consumer), duration_text(row.idle_ms), str(row.deliveries)]
    if payload:
        cells.append(DELETED if entry is None else fields_text(entry.fields))
    return cells


def _json_row(row: PendingDelivery, entry: StreamEntry | None, payload: bool) -> str:
    members = [
        ("id", json_line(str(row.id))),
        ("consumer", json_line(json_text(row.consumer))),
        ("idle_ms", json_line(row.idle_ms)),
        ("deliveries", json_line(row.deliveries)),
    ]
    if payload:
        members.append(("fields", "null" if entry is None else json_fields(entry.fields)))
    return json_object(members)
