"""`penstock add`: one entry from the command line, or many from stdin."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import redis
import typer

from penstock.cli.connect import URL_DEFAULT, ServerConnection, Url, Word, refusal
from penstock.cli.terminal.json_input import InputLine, JsonInput
from penstock.cli.terminal.outcome import Failure, Unreachable, example, stop_writing
from penstock.cli.terminal.progress import ProgressBar
from penstock.client.replies import Reply, blob
from penstock.human.show import harmless

EPILOG = example(
    "penstock add orders sku=A1 qty=2",
    "penstock add orders sku=A1 --maxlen 1000000",
    "penstock add orders - < orders.jsonl      one JSON object per line",
    "penstock tail orders --no-follow --json | jq -c .fields | penstock add copy -",
)

FROM_STDIN = "-"

Fields = Annotated[
    list[str] | None,
    typer.Argument(metavar="FIELD=VALUE", help="The fields, or - to read entries from stdin."),
]
Stdin = Annotated[
    bool, typer.Option("--stdin", help="Read entries from stdin, one JSON object per line.")
]
EntryId = Annotated[
    str | None,
    typer.Option("--id", metavar="ID", help="The id, or ms-*. By default the server generates it."),
]
MaxLength = Annotated[
    int | None, typer.Option("--maxlen", min=0, metavar="N", help="Trim the stream to N entries.")
]
MinId = Annotated[
    str | None, typer.Option("--minid", metavar="ID", help="Trim entries with smaller ids.")
]
Approximate = Annotated[
    bool | None,
    typer.Option(
        "--approx/--exact",
        help="Trim whole nodes only, which is faster (default), or to the exact entry.",
    ),
]
NoCreate = Annotated[bool, typer.Option("--no-create", help="Fail if the stream does not exist.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not print ids.")]


@dataclass(frozen=True, slots=True)
class Appending:
    """The part of XADD that all entries of a call share: everything before the fields."""

    stream: bytes
    head: list[Word]

    def words(self, fields: Sequence[tuple[bytes, bytes]]) -> list[Word]:
        return [*self.head, *(word for pair in fields for word in pair)]


def add(
    stream: Annotated[str, typer.Argument(metavar="STREAM")],
    fields: Fields = None,
    stdin: Stdin = False,
    id_: EntryId = None,
    maxlen: MaxLength = None,
    minid: MinId = None,
    approximate: Approximate = None,
    no_create: NoCreate = False,
    quiet: Quiet = False,
    url: Url = URL_DEFAULT,
) -> None:
    """Add entries to a stream and print their ids.

    Entries come from the command line or, one JSON object per line, from stdin. Values that are not strings
    are stored as JSON. Reading stops at the first bad line; the entries before it have been added.
    """
    words = fields or []
    from_stdin = stdin or words == [FROM_STDIN]
    if from_stdin and words not in ([], [FROM_STDIN]):
        raise typer.BadParameter(
            "give fields on the command line or read them from stdin, not both"
        )
    if from_stdin and id_ is not None and not id_.endswith("*"):
        raise typer.BadParameter("with stdin, --id must be ms-*: entries cannot share an id")
    pairs = [] if from_stdin else [_parse_field(word) for word in words]
    if not pairs and not from_stdin:
        raise typer.BadParameter("give at least one field as field=value, or - to read stdin")
    trim = _trim(maxlen, minid, approximate)
    name = os.fsencode(stream)
    creation: list[Word] = ["NOMKSTREAM"] if no_create else []
    appending = Appending(name, ["XADD", name, *creation, *trim, os.fsencode(id_ or "*")])
    with ServerConnection(url) as server:
        if from_stdin:
            _add_all(server, appending, quiet)
        else:
            _add_one(server, appending, pairs, quiet)


def _parse_field(word: str) -> tuple[bytes, bytes]:
    name, equals, value = word.partition("=")
    if not equals:
        raise typer.BadParameter(f"{word!r} is not a field: write field=value")
    return os.fsencode(name), os.fsencode(value)


def _trim(maxlen: int | None, minid: str | None, approximate: bool | None) -> list[Word]:
    how = "=" if approximate is False else "~"
    if maxlen is not None and minid is not None:
        raise typer.BadParameter("give either --maxlen or --minid, not both")
    if maxlen is not None:
        return ["MAXLEN", how, maxlen]
    if minid is not None:
        return ["MINID", how, os.fsencode(minid)]
    if approximate is not None:
        raise typer.BadParameter("--approx and --exact need --maxlen or --minid")
    return []


def _add_one(
    server: ServerConnection,
    appending: Appending,
    pairs: Sequence[tuple[bytes, bytes]],
    quiet: bool,
) -> None:
    reply = server.ask(*appending.words(pairs), about=appending.stream)
    if reply is None:
        raise _no_stream(appending)
    if not quiet:
        typer.echo(harmless(blob(reply)))


def _no_stream(appending: Appending) -> Failure:
    return Failure(f"{harmless(appending.stream)}: no such stream, and --no-create was given")


def _add_all(server: ServerConnection, appending: Appending, quiet: bool) -> None:
    """Send entries as they arrive, without waiting for a full batch."""
    ids = IdPrinter(quiet)
    source = JsonInput(typer.get_binary_stream("stdin"))
    added = 0
    with ProgressBar(source.bytes_total_or_none, not quiet) as progress:
        for batch in source.batches():
            try:
                replies = server.ask_all([appending.words(line.fields) for line in batch])
            except Unreachable as error:
                raise Unreachable(
                    f"{error}; {added} added before, and possibly some of the next {len(batch)}"
                ) from None
            given = [reply for reply in replies if isinstance(reply, bytes)]
            added += len(given)
            ids.print(given)
            progress.advance(source.bytes_read, added)
            _check_all_added(appending, batch, replies, added)
    if source.problem_or_none is not None:
        raise Failure(f"{source.problem_or_none}; {added} added")


def _check_all_added(
    appending: Appending,
    batch: Sequence[InputLine],
    replies: Sequence[Reply | redis.RedisError],
    added: int,
) -> None:
    for line, reply in zip(batch, replies, strict=True):
        if isinstance(reply, bytes):
            continue
        failure = _no_stream(appending)
        if isinstance(reply, redis.RedisError):
            failure = refusal(reply, appending.stream)
        raise Failure(f"line {line.number}: {failure}; {added} added")


class IdPrinter:
    """Prints ids until the reader closes the pipe. Entries are still added after that."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def print(self, ids: Sequence[bytes]) -> None:
        if self._quiet:
            return
        try:
            for id_ in ids:
                sys.stdout.write(f"{harmless(id_)}\n")
            sys.stdout.flush()
        except BrokenPipeError:
            stop_writing()
            self._quiet = True
