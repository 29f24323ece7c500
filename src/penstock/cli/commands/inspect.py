"""`penstock inspect`: shows and explains the bytes of a stream, from a server or a file."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.connect import URL_DEFAULT, Json, ServerConnection, Url
from penstock.cli.inspect import views
from penstock.cli.inspect.hexdump import listpack_lines
from penstock.cli.inspect.source import (
    DUMP_MB_MAX,
    LIMIT,
    WantedNodes,
    chosen,
    find_stream,
    kind_of,
    parse_node,
    read_listpack,
    read_payload,
    read_server,
    read_streams,
)
from penstock.cli.terminal.output import Stdout, TableColumn
from penstock.cli.terminal.progress import ProgressBar
from penstock.core import listpack
from penstock.human.show import harmless, json_line, json_text
from penstock.inspect.files import Contents, FileKind, FoundStream, raw_stream
from penstock.inspect.segments import damages, listpack_map
from penstock.inspect.stored import RawNode, RawStream

EPILOG = """\b
Examples:
  penstock inspect orders                       tree, nodes and memory of a key
  penstock inspect orders --node -1             every byte of its last node
  penstock inspect orders --node 1700000000000-0 --json
  penstock inspect orders --what memory --trim 1000000
  penstock inspect dump.rdb                     the streams of a snapshot
  penstock inspect penstock-data --key orders --what all
  penstock inspect node.bin --node 1700000000000-0   a raw listpack, as the node with this id

\b
Exit codes:
  0    success
  1    something is damaged, or the server refused the command
  2    the command line is wrong, or the file cannot be read
  3    the server cannot be reached, or the connection was lost
  130  interrupted (Ctrl-C)"""

STREAM_COLUMNS = (
    TableColumn("db", numeric=True),
    TableColumn("stream"),
    TableColumn("entries", numeric=True),
    TableColumn("nodes", numeric=True),
    TableColumn("bytes", numeric=True),
    TableColumn("last id"),
)
OVERVIEW = (views.TREE, views.NODES, views.MEMORY)


class What(StrEnum):
    """The values of --what."""

    TREE = views.TREE
    NODES = views.NODES
    MEMORY = views.MEMORY
    BYTES = views.BYTES
    ALL = "all"


Target = Annotated[str, typer.Argument(metavar="KEY|FILE", show_default=False)]
Key = Annotated[str | None, typer.Option(metavar="KEY", help="The stream in a file.")]
Db = Annotated[int | None, typer.Option(min=0, help="The database in a file with several.")]
Node = Annotated[
    str | None,
    typer.Option(
        metavar="N|ID",
        help="Show one node: by its number (1 is the first, -1 the last) or by the id of an entry in it.",
    ),
]
View = Annotated[
    What | None,
    typer.Option(help="What to show. The default is all but the bytes; with --node, the bytes."),
]
TrimTo = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="LENGTH", help="Show what a trim to LENGTH would free. Reads all nodes."
    ),
]
Limit = Annotated[int, typer.Option(min=0, help="Read at most this many nodes; 0 reads all.")]
KindOfFile = Annotated[
    FileKind | None, typer.Option(help="The kind of file, if it is not recognized.")
]
DumpMax = Annotated[
    int,
    typer.Option(
        min=1, metavar="MB", help="Do not DUMP larger streams of servers other than penstock."
    ),
]


def inspect(
    context: typer.Context,
    target: Target,
    key: Key = None,
    db: Db = None,
    node: Node = None,
    what: View = None,
    trim: TrimTo = None,
    limit: Limit = LIMIT,
    kind: KindOfFile = None,
    dump_max: DumpMax = DUMP_MB_MAX,
    json: Json = False,
    url: Url = URL_DEFAULT,
) -> None:
    """Show the radix tree, nodes, bytes and memory of a stream.

    The stream is a key of a running server, or it is in a file: a snapshot (RDB), a log (AOF), a data
    directory, a DUMP payload or a raw listpack. If a file of that name exists, the file is read, unless --url
    is given. Without --key, the streams of a snapshot or log are listed. Nothing is changed.

    A penstock server sends only the nodes that are shown. Any other server has to DUMP the whole stream.
    """
    if trim is not None and node is not None:
        raise typer.BadParameter("--trim needs all nodes, so it cannot be used with --node")
    wanted = parse_node(node, 0 if trim is not None else limit)
    printer = Printer(Stdout(), _views(what, wanted), json)
    if kind is None and (_is_given(context, "url") or not _exists(target)):
        if key is not None or db is not None:
            raise typer.BadParameter(f"--key and --db are for files, and there is no file {target}")
        with ServerConnection(url) as server:
            printer.stream(read_server(server, os.fsencode(target), wanted, dump_max), trim)
        return
    kind = kind_of(target, kind)
    if kind in (FileKind.LISTPACK, FileKind.DUMP) and (key is not None or db is not None):
        raise typer.BadParameter(
            f"--key and --db select from a snapshot or log, and {target} is neither"
        )
    if kind is FileKind.LISTPACK:
        _inspect_listpack(target, wanted, printer)
    elif kind is FileKind.DUMP:
        printer.stream(chosen(read_payload(target), wanted), trim)
    else:
        contents = read_streams(target, kind)
        if key is None:
            if (node, what, trim) != (None, None, None):
                raise typer.BadParameter(
                    "--node, --what and --trim show one stream: name it with --key"
                )
            printer.streams(target, contents)
            return
        found = find_stream(target, contents, os.fsencode(key), db)
        raw = raw_stream(target, found, wanted.nodes_max)
        raw.notes += contents.notes
        printer.stream(chosen(raw, wanted), trim)


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether an option was given on the command line, not by the environment or a default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _exists(target: str) -> bool:
    """Whether the file exists. A name that no file can have is a key."""
    try:
        return Path(target).exists()
    except OSError:
        return False


def _views(what: What | None, wanted: WantedNodes) -> tuple[str, ...]:
    if what is What.ALL:
        return (*OVERVIEW, views.BYTES)
    if what is not None:
        return (what.value,)
    return (views.BYTES,) if wanted.is_one else OVERVIEW


def _inspect_listpack(path: str, wanted: WantedNodes, printer: Printer) -> None:
    """Show one listpack, as a node if --node gives its id."""
    data = read_listpack(path)
    if wanted.number is not None:
        raise typer.BadParameter(
            "for a raw listpack, --node must be the id of the node, like 1700000000000-0"
        )
    if wanted.entry_id is None:
        printer.listpack(path, data)
    else:
        node = RawNode(wanted.entry_id, data)
        printer.stream(RawStream(path, b"", [node], 1, number_first=0), None)


class Printer:
    """Prints the result as text or JSON. Raises: typer.Exit with code 1 if something is damaged."""

    def __init__(self, output: Stdout, whats: tuple[str, ...], json: bool) -> None:
        self._output = output
        self._whats = whats
        self._json = json

    def stream(self, raw: RawStream, trim: int | None) -> None:
        with ProgressBar(sum(len(node.data) for node in raw.nodes), False, "{} nodes") as progress:
            found = views.inspected(raw, trim, progress.advance)
        if self._json:
            self._output.line(json_line(views.as_json(found, self._whats)))
        else:
            views.show(found, self._whats, self._output)
        self._end(found.is_damaged)

    def listpack(self, path: str, data: bytes) -> None:
        segments = listpack_map(data)
        if self._json:
            about = {"source": path, "bytes": len(data)}
            self._output.line(json_line(about | {"segments": views.segments_json(data, segments)}))
        else:
            self._output.line(harmless(f"{path}: a listpack of {len(data)} bytes"))
            for line in listpack_lines(data, segments):
                self._output.line(line)
        self._end(bool(damages(segments)))

    def streams(self, path: str, contents: Contents) -> None:
        rows = [_stream_facts(found) for found in contents.streams]
        if self._json:
            about = {"source": path, "notes": contents.notes, "streams": rows}
            self._output.line(json_line(about))
        else:
            for note in contents.notes:
                self._output.line(harmless(f"note: {note}"))
            cells = [[harmless(str(fact)) for fact in row.values()] for row in rows]
            self._output.table(STREAM_COLUMNS, cells)
            self._output.note("use --key STREAM to show one of them")
        self._end(bool(contents.notes))

    def _end(self, is_damaged: bool) -> None:
        if is_damaged:
            raise typer.Exit(1)


def _stream_facts(found: FoundStream) -> dict[str, str | int]:
    stream = found.stream
    size = sum(listpack.total_bytes(node) for _, node in stream.nodes.pairs())
    return {
        "db": found.database,
        "stream": json_text(found.key),
        "entries": stream.length,
        "nodes": stream.nodes.count,
        "bytes": size,
        "last_id": str(stream.last_id),
    }
