"""`penstock tail`: shows entries as they arrive, directly or through a group."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from penstock.cli.connect import URL_DEFAULT, ServerConnection, Url
from penstock.cli.follow import EntrySource, GroupSource, group_place, plan_range
from penstock.cli.terminal.entry_line import (
    Line,
    coloured_entry,
    entry_text,
    json_entry,
    parse_format,
)
from penstock.cli.terminal.moment import Edge, parse_moment
from penstock.cli.terminal.outcome import example, say
from penstock.cli.terminal.output import Stdout
from penstock.cli.terminal.where import Condition, parse_condition

CONSUMER_DEFAULT = "penstock-tail"

EPILOG = example(
    "penstock tail orders                     entries added from now on",
    "penstock tail orders --from 10m          also those of the last ten minutes",
    "penstock tail orders returns --no-follow --json",
    "penstock tail orders --where 'sku~^A' --where qty!=0 -n 5",
    "penstock tail orders --from 2024-05-01T12:00 --format '{time} {field[sku]}'",
    "penstock tail orders --group packers --consumer ann --create-group",
)

Start = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        help="Where to start: start, end, an id, @milliseconds, 2024-05-01T12:00 (UTC), or 10m for"
        " ten minutes ago. The default is end, or start with --no-follow. With --create-group,"
        " where the new group starts.",
    ),
]
Until = Annotated[
    str | None, typer.Option(metavar="TIME", help="Stop before this time. Same forms as --from.")
]
Count = Annotated[
    int | None,
    typer.Option("-n", "--count", min=1, metavar="N", help="Stop after N entries."),
]
NoFollow = Annotated[
    bool, typer.Option("--no-follow", help="Stop at the current end of the streams.")
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="Show only entries with field=value, field!=value, field~regex or json_field$.a.b=value."
        " Repeat it to combine conditions: all must hold.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="TEXT",
        help="Print each entry as TEXT, with the placeholders {stream} {id} {ms} {seq} {time} {fields} {json}"
        " {field[NAME]}.",
    ),
]
GroupName = Annotated[
    str | None, typer.Option(metavar="NAME", help="Read new entries as a consumer of this group.")
]
Consumer = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"The consumer's name. The default is {CONSUMER_DEFAULT}."),
]
NoAck = Annotated[
    bool, typer.Option("--no-ack", help="Do not acknowledge: entries that were shown stay pending.")
]
CreateGroup = Annotated[
    bool, typer.Option("--create-group", help="Create the group, and the stream, if missing.")
]
RetrySeconds = Annotated[
    float,
    typer.Option(
        "--retry", min=0, metavar="SECONDS", help="Retry this long if the connection is lost."
    ),
]


@dataclass(frozen=True, slots=True)
class TailOptions:
    """The options that select entries, as they were typed."""

    streams: list[bytes]
    start: str | None
    until: str | None
    count: int | None
    follow: bool


@dataclass(frozen=True, slots=True)
class Membership:
    """The options that belong to --group."""

    group: str | None
    consumer: str | None
    acknowledges: bool
    creates: bool


def tail(
    streams: Annotated[list[str], typer.Argument(metavar="STREAM")],
    start: Start = None,
    until: Until = None,
    count: Count = None,
    no_follow: NoFollow = False,
    where: Where = None,
    json: Json = False,
    format_: Format = None,
    group: GroupName = None,
    consumer: Consumer = None,
    no_ack: NoAck = False,
    create_group: CreateGroup = False,
    retry_seconds: RetrySeconds = 0,
    url: Url = URL_DEFAULT,
) -> None:
    """Show entries as they are added, in the order of their ids.

    With --group, an entry is acknowledged after it has been written out. An entry that does not match --where
    is not shown and stays pending.
    """
    conditions = [parse_condition(text) for text in where or []]
    output = Stdout()
    line = _line(json, format_, output.is_terminal, with_stream=len(streams) > 1)
    wanted = TailOptions(
        [os.fsencode(name) for name in streams], start, until, count, not no_follow
    )
    membership = Membership(group, consumer, not no_ack, create_group)
    with ServerConnection(url, retry_seconds) as server:
        make_source = _range if group is None else _group
        source = make_source(server, wanted, membership)
        _show(source, conditions, line, count, output)


def _line(json: bool, format_: str | None, colour: bool, with_stream: bool) -> Line:
    if json and format_ is not None:
        raise typer.BadParameter("give either --json or --format, not both")
    if json:
        return json_entry
    if format_ is not None:
        return parse_format(format_)
    show = coloured_entry if colour else entry_text
    return lambda entry: show(entry, with_stream)


def _range(server: ServerConnection, wanted: TailOptions, membership: Membership) -> EntrySource:
    if membership.consumer is not None or membership.creates or not membership.acknowledges:
        raise typer.BadParameter("--consumer, --create-group and --no-ack need --group")
    default = "end" if wanted.follow else "start"
    start = parse_moment(default if wanted.start is None else wanted.start)
    until = None if wanted.until is None else parse_moment(wanted.until)
    return plan_range(server, wanted.streams, start, until, wanted.follow)


def _group(server: ServerConnection, wanted: TailOptions, membership: Membership) -> EntrySource:
    if wanted.until is not None:
        raise typer.BadParameter("--until cannot be used with --group")
    if wanted.start is not None and not membership.creates:
        raise typer.BadParameter(
            "with --group, --from needs --create-group: an existing group has its own position"
        )
    if wanted.count is not None and len(wanted.streams) > 1:
        raise typer.BadParameter(
            "--count and --group work with one STREAM only: COUNT applies to each stream of a read"
        )
    assert membership.group is not None
    consumer = os.fsencode(membership.consumer or CONSUMER_DEFAULT)
    group = GroupSource(server, wanted.streams, os.fsencode(membership.group), consumer)
    group.waits = wanted.follow
    group.acknowledges = membership.acknowledges
    if membership.creates:
        start = parse_moment(wanted.start) if wanted.start is not None else Edge.END
        if not group.create(group_place(server, start)) and wanted.start is not None:
            say("the group exists already and keeps its position: --from has no effect")
    return group


def _show(
    source: EntrySource,
    conditions: Sequence[Condition],
    line: Line,
    count: int | None,
    output: Stdout,
) -> None:
    left = count
    while left != 0:
        found = source.read_or_none(left)
        if found is None:
            return
        shown = [entry for entry in found if all(holds(entry.fields) for holds in conditions)]
        shown = shown[:left]
        for entry in shown:
            output.line(line(entry))
        # Entries must be written before they are acknowledged.
        output.flush()
        source.acknowledge(shown)
        left = None if left is None else left - len(shown)
