"""`penstock backup` and `penstock restore`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from penstock.backup.note import BackupFailed, Note, ServerAway, note_path, read_note_or_none
from penstock.backup.reading import Contents
from penstock.backup.restoring import restore as restore_to
from penstock.backup.taking import Backup
from penstock.cli.connect import URL_DEFAULT, Url, parse_option
from penstock.cli.terminal.outcome import Failure, Unreachable, example, say
from penstock.cli.terminal.output import Stdout
from penstock.cli.terminal.progress import ProgressBar
from penstock.human.show import harmless, json_line, size_text
from penstock.persist.disk import SystemDisk

BACKUP_EPILOG = example(
    "penstock backup orders.rdb             the server at PENSTOCK_URL",
    "penstock backup backups/               a name with the time, in a directory",
    "penstock backup --url redis://10.0.0.2:6379 orders.rdb --json",
)
RESTORE_EPILOG = example(
    "penstock restore orders.rdb new-data   then: penstock serve --dir new-data",
)
_MB_BITS = 20

JsonOne = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def backup(
    destination: Annotated[str, typer.Argument(metavar="DEST", show_default=False)],
    json: JsonOne = False,
    url: Url = URL_DEFAULT,
) -> None:
    """Make a consistent, checked copy of a running server.

    The server sends a snapshot, as it does to a replica. Every change that was acknowledged before the
    command started is in it. The file is synced and read back from start to end before it gets its name DEST.
    Beside it, DEST.json says when it was taken, what it holds, and its checksum. If DEST is a directory, the
    name has the time in it. A file is never replaced.

    The user needs the rights for PSYNC and REPLCONF. Redis and Valkey can be backed up too, if they hold
    strings, lists and streams only.
    """
    path = _place(destination)
    server = parse_option(url)
    disk = SystemDisk()
    with _failing(), _progress("{} MB received and checked") as (advance, set_total):
        done = 0

        def on_bytes(count: int, total: int | None) -> None:
            nonlocal done
            if total is not None:
                set_total(2 * total)  # received, then read back
            advance(count - done)
            done = count

        note = Backup(disk, path).take(server, on_bytes, advance)
    _report(
        path,
        note,
        json,
        f"{size_text(note.size)}, {note.keys} keys, {note.streams} streams, {note.entries} entries;"
        " read back and sound",
    )


def restore(
    source: Annotated[str, typer.Argument(metavar="SOURCE", show_default=False)],
    directory: Annotated[str, typer.Argument(metavar="DIR", show_default=False)],
    json: JsonOne = False,
) -> None:
    """Make a data directory of a backup.

    SOURCE is a file of `penstock backup`, or any snapshot (RDB). DIR must be empty or missing. The copy is
    compared with the note of the backup and read back. Then start a server: penstock serve --dir DIR.
    """
    path = directory.rstrip("/") or "/"
    with _failing(), _progress("{} MB copied and checked") as (advance, _):
        if read_note_or_none(source) is None:
            say(
                f"there is no {note_path(source)}: only the checksum inside of the file is compared"
            )
        found = restore_to(SystemDisk(), source, path, advance)
    _report(
        path,
        found,
        json,
        f"{found.keys} keys, {found.streams} streams, {found.entries} entries;"
        f" start it with penstock serve --dir {path}",
    )


def _report(path: str, found: Note | Contents, json: bool, text: str) -> None:
    output = Stdout()
    if json:
        output.line(json_line({"path": path, **asdict(found)}))
    else:
        output.line(harmless(f"{path}: {text}"))


def _place(destination: str) -> str:
    """The path of the backup: a directory gets a file with the time in its name."""
    if not destination.endswith("/") and not Path(destination).is_dir():
        return destination
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return str(Path(destination) / f"penstock-{now}.rdb")


@contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except ServerAway as error:
        raise Unreachable(str(error)) from None
    except BackupFailed as error:
        raise Failure(str(error)) from None


@contextmanager
def _progress(
    counted: str,
) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """A function that counts bytes, and one that sets their total."""
    done = 0
    with ProgressBar(None, ids_are_printed=False, count_format=counted) as bar:

        def advance(count: int) -> None:
            nonlocal done
            before, done = done, done + count
            if before >> _MB_BITS != done >> _MB_BITS:
                bar.advance(done, done >> _MB_BITS)

        yield advance, bar.set_total
