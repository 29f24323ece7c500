"""`penstock info`: the server and its streams, or one stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from typing import Annotated

import redis
import typer

from penstock.cli.connect import URL_DEFAULT, Json, ServerConnection, Url, Word
from penstock.cli.terminal.outcome import example
from penstock.cli.terminal.output import Stdout, TableColumn
from penstock.client.replies import Entry, array, blob, parts
from penstock.client.xinfo import GroupInfo, StreamInfo, group_infos, stream_info
from penstock.human.show import (
    age_text,
    brief_fields_text,
    duration_text,
    harmless,
    json_fields,
    json_line,
    json_object,
    json_text,
    size_text,
    time_text,
)

EPILOG = example(
    "penstock info                          the server and its streams",
    "penstock info --match 'orders:*'       streams by name",
    "penstock info orders                   one stream in detail",
    "penstock info orders --json            the same, with complete entries",
)

SCAN_COUNT = 1000
DIGITS_MAX = 20
UNKNOWN = "unknown"
NONE = "-"
SERVERS = ("penstock", "valkey", "dragonfly", "keydb")  # each reports NAME_version in INFO

STREAM_COLUMNS = (
    TableColumn("stream"),
    TableColumn("length", numeric=True),
    TableColumn("first", numeric=True),
    TableColumn("last", numeric=True),
    TableColumn("groups", numeric=True),
    TableColumn("worst lag", numeric=True),
)

Facts = dict[str, str | int | None]


def info(
    stream: Annotated[str | None, typer.Argument(metavar="STREAM")] = None,
    match: Annotated[
        str | None, typer.Option(metavar="GLOB", help="Only streams whose names match.")
    ] = None,
    json: Json = False,
    url: Url = URL_DEFAULT,
) -> None:
    """Show the server and its streams, or one stream in detail.

    Streams are found with SCAN, which does not block the server. First and last are the ages of the first and
    the last entry. Worst lag is the largest lag of a group, or `unknown` if the server does not know the lag
    of one of them.

    Long values of entries are shortened. Use --json to see them in full.
    """
    if stream is not None and match is not None:
        raise typer.BadParameter(
            "--match selects from all streams, so give either STREAM or --match"
        )
    output = Stdout()
    with ServerConnection(url) as server:
        if stream is not None:
            _show_stream(server, os.fsencode(stream), json, output)
            return
        facts = server_facts(server)
        now_ms = server.now_ms()
        found = {
            name: about
            for page in _pages_of_names(server, match)
            for name, about in _stream_facts(server, page)
        }
    streams = [found[name] for name in sorted(found)]
    if json:
        output.line(json_line({"server": facts, "streams": streams}))
        return
    output.line(_server_line(facts))
    output.table(STREAM_COLUMNS, [_stream_cells(about, now_ms) for about in streams])


def server_facts(server: ServerConnection) -> Facts:
    """Kind, version and load of the server. None where INFO lacks a field."""
    text = blob(server.ask("INFO")).decode("utf-8", "backslashreplace")
    sent = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    kind = sent.get("server_name") or "redis"
    for candidate in SERVERS:
        if f"{candidate}_version" in sent:
            kind = candidate
    return {
        "address": server.name,
        "server": kind,
        "version": sent.get(f"{kind}_version", sent.get("redis_version")),
        "compatible_with": None if kind == "redis" else sent.get("redis_version"),
        "memory_bytes": _integer_or_none(sent.get("used_memory")),
        "clients": _integer_or_none(sent.get("connected_clients")),
        "commands_per_second": _integer_or_none(sent.get("instantaneous_ops_per_sec")),
        "uptime_seconds": _integer_or_none(sent.get("uptime_in_seconds")),
    }


def _server_line(facts: Facts) -> str:
    """`redis 7.0.15 at 127.0.0.1:6379; clients 3; ...`."""
    parts = [f"{facts['server']} {facts['version'] or ''} at {facts['address']}"]
    if facts["compatible_with"] is not None:
        parts.append(f"as Redis {facts['compatible_with']}")
    if isinstance(facts["memory_bytes"], int):
        parts.append(f"memory {size_text(facts['memory_bytes'])}")
    if facts["clients"] is not None:
        parts.append(f"clients {facts['clients']}")
    if facts["commands_per_second"] is not None:
        parts.append(f"commands/s {facts['commands_per_second']}")
    if isinstance(facts["uptime_seconds"], int):
        parts.append(f"up {duration_text(facts['uptime_seconds'] * 1000)}")
    return harmless("; ".join(parts))


def _integer_or_none(text: str | None) -> int | None:
    is_number = text is not None and text.isdecimal() and len(text) <= DIGITS_MAX
    return int(text) if text is not None and is_number else None


def _pages_of_names(server: ServerConnection, match: str | None) -> Iterator[list[bytes]]:
    """The names of all streams, page by page. SCAN may return a name twice."""
    pattern: list[Word] = [] if match is None else ["MATCH", os.fsencode(match)]
    cursor = b"0"
    while True:
        reply = server.ask("SCAN", cursor, "TYPE", "stream", "COUNT", SCAN_COUNT, *pattern)
        next_cursor, names = parts(reply, 2)
        cursor = blob(next_cursor)
        yield [blob(name) for name in array(names)]
        if cursor == b"0":
            return


def _stream_facts(server: ServerConnection, names: list[bytes]) -> Iterator[tuple[bytes, Facts]]:
    """The facts of each stream. Streams deleted in the meantime are left out."""
    questions = chain.from_iterable(
        (("XINFO", "STREAM", name), ("XINFO", "GROUPS", name)) for name in names
    )
    replies = iter(server.ask_all(list(questions)))
    for name in names:
        about, groups = next(replies), next(replies)
        if isinstance(about, redis.RedisError) or isinstance(groups, redis.RedisError):
            continue
        yield name, _table_facts(name, stream_info(about), group_infos(groups))


def _table_facts(name: bytes, about: StreamInfo, groups: list[GroupInfo]) -> Facts:
    lags = [group.lag for group in groups]
    known = [lag for lag in lags if lag is not None]
    return {
        "stream": json_text(name),
        "length": about.length,
        "first_id": None if about.first is None else str(about.first.id),
        "last_id": None if about.last is None else str(about.last.id),
        "groups": len(groups),
        "worst_lag": max(known) if known and len(known) == len(lags) else None,
    }


def _stream_cells(facts: Facts, now_ms: int) -> list[str]:
    lag = facts["worst_lag"]
    return [
        harmless(str(facts["stream"])),
        str(facts["length"]),
        _age(facts["first_id"], now_ms),
        _age(facts["last_id"], now_ms),
        str(facts["groups"]),
        NONE if not facts["groups"] else UNKNOWN if lag is None else str(lag),
    ]


def _age(id_: str | int | None, now_ms: int) -> str:
    return age_text(int(id_.partition("-")[0]), now_ms) if isinstance(id_, str) else NONE


def _show_stream(server: ServerConnection, name: bytes, json: bool, output: Stdout) -> None:
    about = stream_info(server.ask("XINFO", "STREAM", name, about=name))
    now_ms = server.now_ms()
    ends = {"first-entry": about.first, "last-entry": about.last}
    lines: list[tuple[str, str]] = []
    members: list[tuple[str, str]] = [("stream", json_line(json_text(name)))]
    for key, value in about.sent.items():
        if key in ends:
            found = ends[key]
            lines.append((key, NONE if found is None else _entry_text(found, now_ms)))
            members.append((_json_name(key), _entry_json(found)))
        else:
            shown = value if isinstance(value, int) else json_text(blob(value))
            lines.append((key, harmless(str(shown))))
            members.append((_json_name(key), json_line(shown)))
    if json:
        output.line(json_object(members))
        return
    output.table((TableColumn("stream"), TableColumn(harmless(name))), lines)


def _json_name(key: str) -> str:
    return key.replace("-", "_")


def _entry_text(found: Entry, now_ms: int) -> str:
    age = age_text(found.id.ms, now_ms)
    return f"{found.id}  {time_text(found.id.ms)} ({age})  {brief_fields_text(found.fields)}"


def _entry_json(found: Entry | None) -> str:
    if found is None:
        return "null"
    return json_object([("id", json_line(str(found.id))), ("fields", json_fields(found.fields))])
