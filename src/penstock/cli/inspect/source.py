"""Reads the nodes of a stream for `penstock inspect`, from a server or a file.

A penstock server sends nodes page by page, and only the wanted ones. Any other server sends the whole stream
in one DUMP, which blocks it, so its size is checked first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from penstock.cli.connect import ServerConnection
from penstock.cli.terminal.outcome import BadFile, Failure, Unreachable
from penstock.client.replies import Entry, blob, mapping, number, number_or_none
from penstock.client.xinfo import stream_info
from penstock.core import stream_id
from penstock.core.stream_id import StreamID
from penstock.errors import CorruptData, InvalidID
from penstock.human.show import harmless, size_text
from penstock.inspect import files, stored
from penstock.inspect.files import Contents, FileKind, FoundStream
from penstock.inspect.node_map import node_map
from penstock.inspect.stored import PAGE_NODES, RawNode, RawStream

LIMIT = 100
DUMP_MB_MAX = 16
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class WantedNodes:
    """Which nodes: at most `limit` (0: all), or one by number (from 1, or -1 from the end) or by id."""

    limit: int = LIMIT
    number: int | None = None
    entry_id: StreamID | None = None

    @property
    def is_one(self) -> bool:
        return self.number is not None or self.entry_id is not None

    @property
    def nodes_max(self) -> int:
        """How many nodes must be read, from the first one; 0: all."""
        if self.entry_id is not None or (self.number is not None and self.number < 0):
            return 0
        return self.limit if self.number is None else self.number


def parse_node(text: str | None, limit: int) -> WantedNodes:
    """Read --node. Raises: typer.BadParameter."""
    if text is None:
        return WantedNodes(limit)
    if text.lstrip("-").isdecimal() and text.count("-") == text.startswith("-"):
        if int(text) == 0:
            raise typer.BadParameter("nodes are counted from 1, or from the end: -1 is the last")
        return WantedNodes(limit, number=int(text))
    try:
        return WantedNodes(limit, entry_id=stream_id.parse(text.encode()))
    except (InvalidID, UnicodeError):
        raise typer.BadParameter(
            f"--node {text} is not a number (3, -1) or an id (1700000000000-0)"
        ) from None


def chosen(raw: RawStream, wanted: WantedNodes) -> RawStream:
    """Drop all nodes but the wanted ones. Raises: typer.BadParameter if there is no such node."""
    if not wanted.is_one:
        del raw.nodes[wanted.limit or len(raw.nodes) :]
        return raw
    if wanted.entry_id is not None:
        place = stored.place_of(raw.nodes, wanted.entry_id)
        if place is None or not _holds(raw.nodes[place], wanted.entry_id):
            raise typer.BadParameter(f"no node holds the id {wanted.entry_id}")
    else:
        assert wanted.number is not None
        place = wanted.number - 1 if wanted.number > 0 else len(raw.nodes) + wanted.number
        if not 0 <= place < len(raw.nodes):
            raise typer.BadParameter(
                f"there is no node {wanted.number}: the stream has {raw.nodes_total}"
            )
    raw.number_first = raw.number_first and place + raw.number_first
    raw.nodes[:] = [raw.nodes[place]]
    return raw


def _holds(node: RawNode, entry_id: StreamID) -> bool:
    entries = node_map(node.data, node.master).entries
    return bool(entries) and entry_id <= max(entry.id for entry in entries)


# --- A server ----------------------------------------------------------------------------------------------


def read_server(
    server: ServerConnection, key: bytes, wanted: WantedNodes, dump_mb_max: int
) -> RawStream:
    """Read the wanted nodes of a key. Raises: Failure, typer.BadParameter."""
    about = stream_info(server.ask("XINFO", "STREAM", key, about=key))
    raw = RawStream(server.name, key, [])
    raw.length = about.length
    raw.nodes_total = about.tree_keys
    raw.tree_nodes = about.tree_nodes
    _read_limits(server, raw)
    try:
        _read_native(server, raw, _by_id(wanted, about.last))
    except CorruptData as error:
        raise Failure(str(error)) from None
    except Unreachable:
        raise
    except Failure as error:
        if "unknown command" not in str(error).lower():
            raise
        _read_dump(server, raw, dump_mb_max)
    return chosen(raw, wanted)


def _by_id(wanted: WantedNodes, last: Entry | None) -> WantedNodes:
    """Ask for the last node by the id of the last entry, so that the server need not send the others."""
    if wanted.number == -1 and last is not None:
        return WantedNodes(wanted.limit, entry_id=last.id)
    return wanted


def _read_limits(server: ServerConnection, raw: RawStream) -> None:
    """Read the size limits of nodes. The defaults apply if the user may not run CONFIG GET."""
    try:
        settings = mapping(server.ask("CONFIG", "GET", "stream-node-max-*"))
    except Unreachable:
        raise
    except Failure:
        return
    raw.node_bytes_max = number(settings.get("stream-node-max-bytes", raw.node_bytes_max))
    raw.node_entries_max = number(settings.get("stream-node-max-entries", raw.node_entries_max))


def _read_native(server: ServerConnection, raw: RawStream, wanted: WantedNodes) -> None:
    key = raw.key
    if wanted.entry_id is not None:
        question = stored.nodes_question(key, wanted.entry_id.text, 1)
        goes_on, raw.nodes = stored.parse_nodes_reply(server.ask(*question, about=key))
        raw.number_first = 0 if goes_on is not None else raw.nodes_total or 0
        return
    start: bytes | None = b"-"
    left = wanted.nodes_max
    while start is not None and (left > 0 or not wanted.nodes_max):
        count = min(left, PAGE_NODES) if left > 0 else PAGE_NODES
        reply = server.ask(*stored.nodes_question(key, start, count), about=key)
        start, nodes = stored.parse_nodes_reply(reply)
        if start is not None and not nodes:
            raise Failure("the server sent no nodes but announced more")
        raw.nodes += nodes
        left -= len(nodes)
    if start is None:
        raw.nodes_total = len(raw.nodes)  # the stream may have grown since XINFO


def _read_dump(server: ServerConnection, raw: RawStream, dump_mb_max: int) -> None:
    size = number_or_none(server.ask("MEMORY", "USAGE", raw.key, about=raw.key)) or 0
    if size > dump_mb_max * _MB:
        raise Failure(
            f"{harmless(raw.key)}: about {size_text(size)}. This server lacks PENSTOCK NODES, and DUMP would"
            f" block it; raise --dump-max ({dump_mb_max} MB), or inspect its RDB file"
        )
    payload = server.ask("DUMP", raw.key, about=raw.key)
    if payload is None:
        raise Failure(f"{harmless(raw.key)}: no such key")
    try:
        raw.nodes, raw.notes = stored.dump_nodes(blob(payload))
    except CorruptData as error:
        raise Failure(f"{harmless(raw.key)}: {error}") from None
    raw.nodes_total = len(raw.nodes)


# --- A file ------------------------------------------------------------------------------------------------


def kind_of(path: str, kind: FileKind | None) -> FileKind:
    """The kind of a file: the given one, or the one its content shows. Raises: BadFile."""
    try:
        if not Path(path).is_dir() and not Path(path).is_file():
            reason = "not a file or directory" if Path(path).exists() else "no such file"
            raise BadFile(f"{path}: {reason}")
        found = kind or files.kind_or_none(path)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror or error}") from None
    if found is None:
        raise BadFile(
            f"{path}: not recognized as an RDB file, AOF, listpack or DUMP payload; give its kind with --kind"
        )
    return found


def read_streams(path: str, kind: FileKind) -> Contents:
    """The streams of a snapshot or a log. Raises: Failure."""
    try:
        return files.streams_of(path, kind)
    except OSError as error:
        raise BadFile(f"{error.filename or path}: {error.strerror or error}") from None
    except CorruptData as error:
        raise Failure(f"{error}; see penstock check") from None


def find_stream(path: str, contents: Contents, key: bytes, database: int | None) -> FoundStream:
    """Find a stream by name. Raises: typer.BadParameter."""
    found = [
        stream
        for stream in contents.streams
        if stream.key == key and database in (None, stream.database)
    ]
    if not found:
        where = "" if database is None else f" in database {database}"
        raise typer.BadParameter(f"{path} has no stream {key.decode(errors='replace')}{where}")
    if len(found) > 1:
        numbers = ", ".join(str(stream.database) for stream in found)
        raise typer.BadParameter(f"the stream is in databases {numbers}: select one with --db")
    return found[0]


def read_payload(path: str) -> RawStream:
    """The stream in a DUMP payload. Raises: Failure."""
    try:
        return files.read_dump(path)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror or error}") from None
    except CorruptData as error:
        raise Failure(f"{path}: {error}") from None


def read_listpack(path: str) -> bytes:
    """The bytes of a listpack. Raises: Failure."""
    try:
        return files.read_listpack(path).data
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror or error}") from None
    except CorruptData as error:
        raise Failure(str(error)) from None
