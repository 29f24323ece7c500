"""The place of data in a replication history: an id, and the number of bytes of its stream.

A log notes it behind the effects of each batch, inside of the batch's checksum; a snapshot in its aux fields:

    #PSREPL:8371445e8b0c33a19d6e32fd1ffb4bdb1b2ec4c4:1042:0:p\\r\\n   id, offset, database, role
    repl-id, repl-offset, repl-stream-db, penstock-role, penstock-names

The role is `p` on a primary, and on a former one until it follows another server; it is `r` on a replica. A
snapshot has it only as the base of a log. `:apart` behind the role, and `apart` in the last field, say that
the stream has the names of producers apart (server/replication/names_apart.py). Redis skips lines that begin
with #. It knows the first three fields, and skips the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

HEAD = b"#PSREPL:"
_LINE = re.compile(HEAD + rb"([0-9a-f]{40}):(\d{1,18}):(\d{1,9})(:p|:r)?(:apart)?\r\n")
_ID = re.compile(rb"[0-9a-f]{40}")
_ROLE = b"penstock-role"
_NAMES = b"penstock-names"
_APART = b"apart"


@dataclass(frozen=True, slots=True)
class ReplicationPoint:
    """The data after the first `offset` bytes of the stream with this id.

    `database`: the one that is selected in the stream there. `of_primary`: the server that noted
    this was a primary, so some changes may be nowhere else. `names_apart`: the stream has the names of
    producers apart from here on.
    """

    id: str
    offset: int
    database: int = 0
    of_primary: bool = False
    names_apart: bool = False


def encode_point(point: ReplicationPoint) -> bytes:
    """The line of a log."""
    role = b"p" if point.of_primary else b"r"
    apart = b":" + _APART if point.names_apart else b""
    place = point.id.encode(), point.offset, point.database
    return b"%s%s:%d:%d:%s%s\r\n" % (HEAD, *place, role, apart)


def parse_point_or_none(line: bytes) -> ReplicationPoint | None:
    """Parse a line of a log; None for any other line."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    is_primary, is_apart = found[4] == b":p", found[5] is not None
    return ReplicationPoint(
        found[1].decode(), int(found[2]), int(found[3]), is_primary, names_apart=is_apart
    )


def aux_of(point: ReplicationPoint | None, is_base: bool) -> dict[bytes, bytes]:
    """The aux fields of a snapshot. `is_base`: it is part of a log."""
    if point is None:
        return {}
    aux = {_ROLE: b"p"} if is_base and point.of_primary else {}
    if point.names_apart:
        aux[_NAMES] = _APART
    return aux | {
        b"repl-stream-db": b"%d" % point.database,
        b"repl-id": point.id.encode(),
        b"repl-offset": b"%d" % point.offset,
    }


def point_of_aux_or_none(aux: Mapping[bytes, bytes]) -> ReplicationPoint | None:
    """What the aux fields of a snapshot say."""
    name, offset = aux.get(b"repl-id", b""), aux.get(b"repl-offset", b"")
    if not _ID.fullmatch(name) or not offset.isdigit() or len(offset) > 18:
        return None
    of_primary = aux.get(_ROLE) == b"p"
    return ReplicationPoint(
        name.decode(), int(offset), database_of_aux(aux), of_primary, names_apart_in_aux(aux)
    )


def database_of_aux(aux: Mapping[bytes, bytes]) -> int:
    """The database that is selected in the stream after a snapshot."""
    text = aux.get(b"repl-stream-db", b"0")
    return int(text) if text.isdigit() and len(text) <= 9 else 0


def names_apart_in_aux(aux: Mapping[bytes, bytes]) -> bool:
    """Whether the stream after a snapshot has the names of producers apart."""
    return aux.get(_NAMES) == _APART
