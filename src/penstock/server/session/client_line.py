"""A client in one line, as CLIENT LIST shows it.

    id=3 addr=127.0.0.1:50898 laddr=127.0.0.1:6379 fd=12 name= age=0 idle=0 flags=N db=0 ... resp=2

Names and order are Redis's. Sizes are those of penstock's buffers: `qbuf` is unparsed input, `rbs` the size
of the reply buffer, `obl` the bytes in it, `oll` and `omem` the replies set aside and those the socket has
not sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.server.net.client_memory import client_bytes
from penstock.server.session.states import (
    BLOCKED,
    CLOSING,
    IN_MULTI,
    MONITOR,
    REPLICA,
    SUBSCRIBED,
)

if TYPE_CHECKING:
    from penstock.server.session.session import Session

_MARKS = (
    (MONITOR, "O"),
    (REPLICA, "S"),
    (SUBSCRIBED, "P"),
    (IN_MULTI, "x"),
    (BLOCKED, "b"),
)


def client_type(session: Session) -> str:
    """`replica`, `pubsub` or `normal`; a primary that this server follows is no client."""
    if session.state & REPLICA:
        return "replica"
    return "pubsub" if session.state & SUBSCRIBED else "normal"


def client_line(session: Session) -> str:
    """The line of a client, without a line end."""
    compat = session.server.engine.context.compat
    now_ms = session.server.steady_ms()
    info = session.info
    transaction = session.transaction
    fields: dict[str, Any] = {
        "id": session.id,
        "addr": info.address,
        "laddr": info.local_address,
        "fd": info.fd,
        "name": info.name.decode(),
        "age": max(0, now_ms - info.created_ms) // 1000,
        "idle": max(0, now_ms - session.active_ms) // 1000,
        "flags": _flags(session),
        "db": session.keyspace.index,
        "sub": len(session.channels),
        "psub": len(session.patterns),
        "ssub": len(session.shard_channels),
        "multi": -1 if transaction is None else len(transaction.commands),
    }
    if compat.client_lists_watches:
        fields["watch"] = 0 if session.watching is None else session.watching.count
    fields |= _memory(session)
    fields["cmd"] = last_command(session)
    fields["user"] = session.user.shown_name
    fields["redir"] = -1
    fields["resp"] = 3 if session.output.resp3 else 2
    if compat.client_lists_library:
        fields["lib-name"] = info.library_name.decode()
        fields["lib-ver"] = info.library_version.decode()
    if compat.client_lists_thread:
        fields["io-thread"] = 0
    return " ".join(f"{name}={value}" for name, value in fields.items())


def last_command(session: Session) -> str:
    """The name of the last command, `client|list`; NULL if there was none or it was unknown."""
    last = session.last
    return "NULL" if last is None else last.command.name.lower().replace(" ", "|")


def _flags(session: Session) -> str:
    marks = "".join(mark for bit, mark in _MARKS if session.state & bit)
    if session.watching is not None and session.watching.broken:
        marks += "d"
    if session.state & CLOSING:
        marks += "c"
    if session.info.on_unix_socket:
        marks += "U"
    if session.info.no_evict:
        marks += "e"
    if session.info.no_touch:
        marks += "T"
    return marks or "N"


def _memory(session: Session) -> dict[str, Any]:
    found = client_bytes(session)
    return {
        "qbuf": found.kept,
        "qbuf-free": found.kept_room - found.kept,
        "argv-mem": found.words,
        "multi-mem": found.queued,
        "rbs": found.reply_room,
        "rbp": session.output.size,
        "obl": session.output.size,
        "oll": len(session.replies.aside),
        "omem": found.aside + found.unsent,
        "tot-mem": found.total,
        "events": "rw" if found.unsent else "r",
    }
