"""`penstock info`: the server and its streams, or one stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from typing import Annotated

import redis
import typer

from penstock.cli.connect import URL_DEFAULT, Json, Server, Url, Word
from penstock.cli.terminal.entries import Entry, entry
from penstock.cli.terminal.outcome import example
from penstock.cli.terminal.output import Column, Output
from penstock.client.replies import Reply, array, blob, mapping, number, number_or_none, parts
from penstock.human.show import (
    age_text,
    duration_text,
    fields_text,
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
    "penstock info --match 'orders:*'       some of them",
    "penstock info orders --json",
)

SCAN_COUNT = 1000
DIGITS_MAX = 20
UNKNOWN = "unknown"
NONE = "-"
SERVERS = ("penstock", "valkey", "dragonfly", "keydb")  # they say so in a field of their own

STREAM_COLUMNS = (
    Column("stream"),
    Column("length", numeric=True),
    Column("first", numeric=True),
    Column("last", numeric=True),
    Column("groups", numeric=True),
    Column("worst lag", numeric=True),
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

    The streams are found with SCAN, which does not hold up the server. First and last are the ages of the
    ends of a stream; the worst lag is that of the group that is furthest behind, `unknown` if there is a
    group whose lag the server cannot tell.
    """
    if stream is not None and match is not None:
        raise typer.BadParameter("--match chooses among all streams; one is named already")
    output = Output()
    with Server(url) as server:
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


def server_facts(server: Server) -> Facts:
    """Who answers, and how busy it is; None for what INFO does not tell."""
    text = blob(server.ask("INFO")).decode("utf-8", "backslashreplace")
    told = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    kind = told.get("server_name") or "redis"
    for candidate in SERVERS:
        if f"{candidate}_version" in told:
            kind = candidate
    return {
        "address": server.name,
        "server": kind,
        "version": told.get(f"{kind}_version", told.get("redis_version")),
        "compatible_with": None if kind == "redis" else told.get("redis_version"),
        "memory_bytes": _integer_or_none(told.get("used_memory")),
        "clients": _integer_or_none(told.get("connected_clients")),
        "commands_per_second": _integer_or_none(told.get("instantaneous_ops_per_sec")),
        "uptime_seconds": _integer_or_none(told.get("uptime_in_seconds")),
    }


def _server_line(facts: Facts) -> str:
    """`redis 7.0.15 at 127.0.0.1:6379; clients 3; ...`: what is known of it."""
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


def _pages_of_names(server: Server, match: str | None) -> Iterator[list[bytes]]:
    """The names of all streams, some at a time; SCAN may give one twice."""
    pattern: list[Word] = [] if match is None else ["MATCH", os.fsencode(match)]
    cursor = b"0"
    while True:
        reply = server.ask("SCAN", cursor, "TYPE", "stream", "COUNT", SCAN_COUNT, *pattern)
        onwards, names = parts(reply, 2)
        cursor = blob(onwards)
        yield [blob(name) for name in array(names)]
        if cursor == b"0":
            return


def _stream_facts(server: Server, names: list[bytes]) -> Iterator[tuple[bytes, Facts]]:
    """What the table shows of each; one that is gone meanwhile is left out."""
    questions = chain.from_iterable(
        (("XINFO", "STREAM", name), ("XINFO", "GROUPS", name)) for name in names
    )
    replies = iter(server.ask_all(list(questions)))
    for name in names:
        about, groups = next(replies), next(replies)
        if isinstance(about, redis.RedisError) or isinstance(groups, redis.RedisError):
            continue
        yield name, _table_facts(name, mapping(about), [mapping(group) for group in array(groups)])


def _table_facts(name: bytes, about: dict[str, Reply], groups: list[dict[str, Reply]]) -> Facts:
    first, last = (_entry_or_none(name, about[end]) for end in ("first-entry", "last-entry"))
    lags = [number_or_none(group.get("lag")) for group in groups]
    known = [lag for lag in lags if lag is not None]
    return {
        "stream": json_text(name),
        "length": number(about["length"]),
        "first_id": None if first is None else str(first.id),
        "last_id": None if last is None else str(last.id),
        "groups": len(groups),
        "worst_lag": max(known) if known and len(known) == len(lags) else None,
    }


def _entry_or_none(stream: bytes, reply: Reply) -> Entry | None:
    return None if reply is None else entry(stream, reply)


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


def _show_stream(server: Server, name: bytes, json: bool, output: Output) -> None:
    about = mapping(server.ask("XINFO", "STREAM", name, about=name))
    now_ms = server.now_ms()
    lines: list[tuple[str, str]] = []
    members: list[tuple[str, str]] = [("stream", json_line(json_text(name)))]
    for key, value in about.items():
        if key in ("first-entry", "last-entry"):
            found = _entry_or_none(name, value)
            lines.append((key, NONE if found is None else _entry_text(found, now_ms)))
            members.append((_json_name(key), _entry_json(found)))
        else:
            shown = value if isinstance(value, int) else json_text(blob(value))
            lines.append((key, harmless(str(shown))))
            members.append((_json_name(key), json_line(shown)))
    if json:
        output.line(json_object(members))
        return
    output.table((Column("stream"), Column(harmless(name))), lines)


def _json_name(key: str) -> str:
    return key.replace("-", "_")


def _entry_text(found: Entry, now_ms: int) -> str:
    age = age_text(found.id.ms, now_ms)
    return f"{found.id}  {time_text(found.id.ms)} ({age})  {fields_text(found.fields)}"


def _entry_json(found: Entry | None) -> str:
    if found is None:
        return "null"
    return json_object([("id", json_line(str(found.id))), ("fields", json_fields(found.fields))])
