"""What is known of a backup: NAME.rdb.json beside NAME.rdb."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from penstock.errors import PenstockError

FORMAT = 1


class BackupFailed(PenstockError):
    """A backup cannot be taken, checked or restored. The text is for the user."""


class ServerAway(BackupFailed):
    """The server cannot be reached, or the connection was lost."""


@dataclass(frozen=True, slots=True)
class Note:
    """A backup and its contents.

    began       UTC, when the server was asked: everything acknowledged before is in the backup
    replid      the replication history of the server, and
    offset      the position of the data in it
    size        in bytes
    sha256      of the file
    """

    began: str
    ended: str
    source: str
    server: str
    replid: str
    offset: int
    size: int
    sha256: str
    keys: int
    streams: int
    entries: int

    def encoded(self) -> bytes:
        """As JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2).encode() + b"\n"


def note_path(backup: str) -> str:
    """The path of the note of a backup."""
    return f"{backup}.json"


def read_note_or_none(backup: str) -> Note | None:
    """The note of a backup; None if it has none. Raises: BackupFailed if it cannot be understood."""
    place = Path(note_path(backup))
    try:
        sent = json.loads(place.read_bytes())
        if sent.pop("format") != FORMAT:
            raise ValueError("of another format")
        wanted = {field.name: field.type for field in fields(Note)}
        if sent.keys() != wanted.keys():
            raise ValueError("with other fields")
        if any(type(sent[name]).__name__ != kind for name, kind in wanted.items()):
            raise ValueError("with values of another type")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise BackupFailed(f"{place}: not a note of a backup: {error}") from None
    return Note(**sent)
