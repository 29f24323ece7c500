"""PING, ECHO, SELECT, AUTH, HELLO, RESET, QUIT.

A new client is the user `default` (acl/users.py). While that user has no password, it may omit AUTH.
"""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.engine.arguments import database_at, int_at
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, Command, Flags, QuickForm
from penstock.errors import (
    CommandError,
    invalid_client_name,
    shown,
    syntax_error,
    wrong_arity,
)
from penstock.reply import OK, Pairs, ReplyWriter, Status
from penstock.server.acl.users import DEFAULT
from penstock.server.session.client_info import is_printable
from penstock.server.session.session import Session
from penstock.server.session.states import CLOSING, REPLY_OFF, REPLY_SKIP_NEXT, STRANGER, SUBSCRIBED
from penstock.server.session.transaction import leave

_PONG = Status("PONG")
_PONG_LINE = b"+PONG\r\n"
_RESET = Status("RESET")


def ping(session: Session, frame: Frame) -> Status | bytes | list[bytes]:
    """Reply PONG. A subscribed RESP2 client gets an array, because +PONG would look like a message."""
    if frame.count > 2:
        raise wrong_arity("PING")
    if session.state & SUBSCRIBED and not session.output.resp3:
        return [b"pong", b"" if frame.count == 1 else frame.piece(1)]
    return _PONG if frame.count == 1 else frame.piece(1)


class QuickPing(QuickForm):
    """PING without a text."""

    __slots__ = ()

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        if frame.count != 1:
            return False
        reply.put_raw(_PONG_LINE)
        return True


def echo(session: Session, frame: Frame) -> bytes:
    """Reply with the argument."""
    return frame.piece(1)


def select(session: Session, frame: Frame) -> Status:
    """Select the database of the following commands."""
    session.keyspace = database_at(session.server.engine.context, frame, 1)
    return OK


def quit(session: Session, frame: Frame) -> Status:
    """Close the connection after the reply."""
    session.state |= CLOSING
    return OK


def auth(session: Session, frame: Frame) -> Status:
    """Authenticate."""
    if frame.count > 3:
        raise syntax_error()
    users = session.server.users
    if frame.count == 2:
        if users.default.nopass:
            raise CommandError(
                "AUTH <password> called without any password configured for the default user."
                " Are you sure your configuration is correct?"
            )
        users.log_in(session, DEFAULT, frame.piece(1), frame.piece(0))
    else:
        users.log_in(session, frame.piece(1), frame.piece(2), frame.piece(0))
    return OK


def hello(session: Session, frame: Frame) -> Pairs:
    """Choose the protocol, authenticate and set a name if requested; reply with the server's properties."""
    protocol = 0
    if frame.count > 1:
        protocol = int_at(
            frame, 1, CommandError("Protocol version is not an integer or out of range")
        )
        if protocol not in (2, 3):
            raise CommandError("unsupported protocol version", "NOPROTO")
    place_of_login, name = _hello_options(frame)
    if place_of_login:
        user, password = frame.piece(place_of_login), frame.piece(place_of_login + 1)
        session.server.users.log_in(session, user, password, frame.piece(0))
    if session.state & STRANGER:
        shown = (
            "HELLO <proto>" if session.server.engine.context.compat.hello_shows_version else "HELLO"
        )
        raise CommandError(
            f"HELLO must be called with the client already authenticated, otherwise the {shown}"
            " AUTH <user> <pass> option can be used to authenticate the client and select the RESP"
            " protocol version at the same time",
            "NOAUTH",
        )
    if name is not None:
        session.info.name = name
    if protocol:
        session.output.resp3 = protocol == 3
    return _greeting(session)


def _hello_options(frame: Frame) -> tuple[int, bytes | None]:
    """The index of user and password (0 if absent), and the name."""
    login = 0
    name = None
    at = 2
    while at < frame.count:
        behind = frame.count - 1 - at
        if frame.is_word(at, b"AUTH") and behind >= 2:
            login = at + 1
            at += 3
        elif frame.is_word(at, b"SETNAME") and behind >= 1:
            name = frame.piece(at + 1)
            if not is_printable(name):
                raise invalid_client_name()
            at += 2
        else:
            raise CommandError(f"Syntax error in HELLO option '{shown(frame.piece(at))}'")
    return login, name


def _greeting(session: Session) -> Pairs:
    """The properties that clients look for, under Redis's names."""
    version = session.server.engine.context.compat.redis_version
    items: list[tuple[bytes, Any]] = [
        (b"server", b"redis"),
        (b"version", version.encode()),
        (b"proto", 3 if session.output.resp3 else 2),
        (b"id", session.id),
        (b"mode", b"standalone"),
        (b"role", b"master" if session.server.replication.is_primary else b"replica"),
        (b"modules", []),
    ]
    return Pairs(items)


def reset(session: Session, frame: Frame) -> Status:
    """Reset the connection: no transaction, subscriptions or name, RESP2, database 0, user `default`."""
    server = session.server
    session.server.monitors.leave(session)
    session.keyspace = server.engine.context.databases[0]
    session.output.resp3 = False
    leave(session)
    session.unsubscribe()
    session.info.name = b""
    session.state &= ~(REPLY_OFF | REPLY_SKIP_NEXT)
    if server.engine.context.compat.reset_forgets_options:
        session.info.no_evict = False
        session.info.no_touch = False
    server.users.become(session, server.users.default)
    if server.users.needs_login():
        server.strangers.add(session)
    return _RESET


_ALWAYS = Flags.NO_SCRIPT | Flags.LOADING | Flags.STALE | Flags.FAST | Flags.NO_AUTH
_PLAIN = Flags.LOADING | Flags.STALE | Flags.FAST | Flags.CONNECTION

COMMANDS = (
    Command(
        "PING",
        ping,
        -1,
        Flags.FAST | Flags.CONNECTION | Flags.WHILE_SUBSCRIBED,
        NO_KEYS,
        "Check the connection.",
        syntax="[message]",
        group="connection",
        in_session=True,
        quick=QuickPing(),
    ),
    Command(
        "ECHO",
        echo,
        2,
        _PLAIN,
        NO_KEYS,
        "Return the argument.",
        syntax="message",
        group="connection",
        in_session=True,
    ),
    Command(
        "SELECT",
        select,
        2,
        _PLAIN,
        NO_KEYS,
        "Select a database.",
        syntax="index",
        group="connection",
        in_session=True,
    ),
    Command(
        "QUIT",
        quit,
        -1,
        _ALWAYS | Flags.CONNECTION | Flags.NOT_QUEUED | Flags.WHILE_SUBSCRIBED,
        NO_KEYS,
        "Close the connection.",
        group="connection",
        in_session=True,
    ),
    Command(
        "AUTH",
        auth,
        -2,
        _ALWAYS | Flags.CONNECTION,
        NO_KEYS,
        "Authenticate the connection.",
        syntax="[username] password",
        complexity="O(1), the same for a wrong password",
        group="connection",
        in_session=True,
    ),
    Command(
        "HELLO",
        hello,
        -1,
        _ALWAYS | Flags.CONNECTION,
        NO_KEYS,
        "Choose the protocol version, and return the server's properties.",
        syntax="[protover [AUTH username password] [SETNAME clientname]]",
        since="6.0.0",
        group="connection",
        in_session=True,
    ),
    Command(
        "RESET",
        reset,
        1,
        _ALWAYS | Flags.CONNECTION | Flags.NOT_QUEUED | Flags.WHILE_SUBSCRIBED,
        NO_KEYS,
        "Reset the connection to its initial state.",
        since="6.2.0",
        group="connection",
        in_session=True,
    ),
)
