"""The place of data in a replication history: an id, and the number of bytes of its stream.

A log notes it behind the effects of each batch, inside of the batch's checksum; a snapshot in its aux fields:

    #PSREPL:8371445e8b0c33a19d6e32fd1ffb4bdb1b2ec4c4:1042:0\\r\\n     id, offset, database
    repl-id, repl-offset, repl-stream-db

Redis skips lines that begin with #, and knows the three fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

HEAD = b"#PSREPL:"
_LINE = re.compile(HEAD + rb"([0-9a-f]{40}):(\d{1,18}):(\d{1,9})\r\n")
_ID = re.compile(rb"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class ReplicationPoint:
    """The data after the first `offset` bytes of the stream with this id.

    `database`: the one that is selected in the stream there.
    """

    id: str
    offset: int
    database: int = 0


def encode_point(point: ReplicationPoint) -> bytes:
    """The line of a log."""
    return b"%s%s:%d:%d\r\n" % (HEAD, point.id.encode(), point.offset, point.database)


def parse_point_or_none(line: bytes) -> ReplicationPoint | None:
    """Parse a line of a log; None for any other line."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    return ReplicationPoint(found[1].decode(), int(found[2]), int(found[3]))


def aux_of(point: ReplicationPoint | None) -> dict[bytes, bytes]:
    """The aux fields of a snapshot."""
    if point is None:
        return {}
    return {
        b"repl-stream-db": b"%d" % point.database,
        b"repl-id": point.id.encode(),
        b"repl-offset": b"%d" % point.offset,
    }


def point_of_aux_or_none(aux: Mapping[bytes, bytes]) -> ReplicationPoint | None:
    """What the aux fields of a snapshot say."""
    name, offset = aux.get(b"repl-id", b""), aux.get(b"repl-offset", b"")
    if not _ID.fullmatch(name) or not offset.isdigit() or len(offset) > 18:
        return None
    return ReplicationPoint(name.decode(), int(offset), database_of_aux(aux))


def database_of_aux(aux: Mapping[bytes, bytes]) -> int:
    """The database that is selected in the stream after a snapshot."""
    text = aux.get(b"repl-stream-db", b"0")
    return int(text) if text.isdigit() and len(text) <= 9 else 0
