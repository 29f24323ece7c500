"""CLIENT: properties of this connection, and control of others.

    this one       ID INFO SETNAME GETNAME SETINFO NO-EVICT NO-TOUCH REPLY
    tracking       TRACKING CACHING TRACKINGINFO GETREDIR: answered, but keys are not tracked
    others         LIST KILL UNBLOCK PAUSE UNPAUSE

The rows are in client_rows.py.
"""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine.arguments import int_at, timeout_at
from penstock.engine.commands.help import help_of
from penstock.errors import (
    CommandError,
    invalid_client_name,
    shown,
    syntax_error,
    unknown_subcommand,
)
from penstock.reply import NO_REPLY, OK, Members, NoReply, Pairs, Status, Verbatim
from penstock.server.session.client_info import is_printable
from penstock.server.session.client_line import client_line, client_type
from penstock.server.session.kill_filter import KillFilter, parse_kill_filter, type_at
from penstock.server.session.session import Session
from penstock.server.session.states import CLOSING, REPLY_OFF, REPLY_SKIP, REPLY_SKIP_NEXT


def client_id(session: Session, frame: Frame) -> int:
    """The id of this connection."""
    return session.id


def client_info(session: Session, frame: Frame) -> Verbatim:
    """A line about this connection."""
    return _lines([session])


def client_list(session: Session, frame: Frame) -> Verbatim:
    """A line per connection: all, those of a type, or those with given ids."""
    sessions = session.server.sessions
    if frame.count == 2:
        return _lines(list(sessions.values()))
    if frame.count == 4 and frame.is_word(2, b"TYPE"):
        wanted = type_at(frame, 3)
        return _lines([one for one in sessions.values() if client_type(one) == wanted])
    if frame.count > 3 and frame.is_word(2, b"ID"):
        refusal = CommandError("Invalid client ID")
        ids = [int_at(frame, index, refusal) for index in range(3, frame.count)]
        return _lines([sessions[number] for number in ids if number in sessions])
    raise syntax_error()


def _lines(sessions: list[Session]) -> Verbatim:
    text = "".join(client_line(session) + "\n" for session in sessions)
    return Verbatim(text.encode("utf-8", "surrogateescape"))


def client_getname(session: Session, frame: Frame) -> bytes | None:
    """The name of this connection."""
    return session.info.name or None


def client_setname(session: Session, frame: Frame) -> Status:
    """Set the name of this connection; an empty one removes it."""
    name = frame.piece(2)
    if not is_printable(name):
        raise invalid_client_name()
    session.info.name = name
    return OK


def client_setinfo(session: Session, frame: Frame) -> Status:
    """Set the name or version of the client's library."""
    value = frame.piece(3)
    is_name = frame.is_word(2, b"LIB-NAME")
    if not is_name and not frame.is_word(2, b"LIB-VER"):
        raise CommandError(f"Unrecognized option '{shown(frame.piece(2))}'")
    if not is_printable(value):
        option = shown(frame.piece(2))
        raise CommandError(f"{option} cannot contain spaces, newlines or special characters.")
    if is_name:
        session.info.library_name = value
    else:
        session.info.library_version = value
    return OK


def client_no_evict(session: Session, frame: Frame) -> Status:
    """Exempt this connection from client eviction."""
    session.info.no_evict = _switch_at(frame, 2)
    return OK


def client_no_touch(session: Session, frame: Frame) -> Status:
    """Do not update the access time of keys."""
    session.info.no_touch = _switch_at(frame, 2)
    return OK


def _switch_at(frame: Frame, index: int) -> bool:
    if frame.is_word(index, b"ON"):
        return True
    if frame.is_word(index, b"OFF"):
        return False
    raise syntax_error()


def client_reply(session: Session, frame: Frame) -> Status | NoReply:
    """Turn replies on or off, or skip the next reply. Only ON has a reply itself."""
    if frame.is_word(2, b"ON"):
        session.state &= ~(REPLY_OFF | REPLY_SKIP)
        return OK
    if frame.is_word(2, b"OFF"):
        session.state |= REPLY_OFF
    elif frame.is_word(2, b"SKIP"):
        if not session.state & REPLY_OFF:
            session.state |= REPLY_SKIP_NEXT
    else:
        raise syntax_error()
    return NO_REPLY


def client_tracking(session: Session, frame: Frame) -> Status:
    """Refuse to track keys; OFF changes nothing. As in Redis, the options are checked first."""
    at = 3
    while at < frame.count:
        if at + 1 < frame.count and frame.is_word(at, b"REDIRECT"):
            int_at(frame, at + 1)
            at += 1
        elif at + 1 < frame.count and frame.is_word(at, b"PREFIX"):
            at += 1
        elif not any(frame.is_word(at, word) for word in _TRACKING_WORDS):
            raise syntax_error()
        at += 1
    if _switch_at(frame, 2):
        raise CommandError("CLIENT TRACKING ON is not supported: this server does not track keys")
    return OK


_TRACKING_WORDS = (b"BCAST", b"OPTIN", b"OPTOUT", b"NOLOOP")


def client_caching(session: Session, frame: Frame) -> Status:
    """Refused with Redis's error for a client whose keys are not tracked."""
    raise CommandError(
        "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT "
        "mode enabled"
    )


def client_trackinginfo(session: Session, frame: Frame) -> Pairs:
    """The state of tracking: off."""
    return Pairs([(b"flags", Members([b"off"])), (b"redirect", -1), (b"prefixes", [])])


def client_getredir(session: Session, frame: Frame) -> int:
    """The client that gets invalidations: none, because keys are not tracked."""
    return -1


def client_kill(session: Session, frame: Frame) -> Status | int:
    """Close the connection with an address, or all that match a filter."""
    if frame.count == 3:
        wanted = KillFilter(address=shown(frame.piece(2)), skip_self=False)
        if not _kill(session, wanted):
            raise CommandError("No such client")
        return OK
    return _kill(session, parse_kill_filter(frame, session.server))


def _kill(session: Session, wanted: KillFilter) -> int:
    """Close all that match, and return their number. A client that kills itself gets its reply first."""
    now_ms = session.server.steady_ms()
    killed = 0
    for other in list(session.server.sessions.values()):
        if not wanted.matches(other, now_ms) or (other is session and wanted.skip_self):
            continue
        if other is session:
            session.state |= CLOSING
        else:
            other.kill()
        killed += 1
    return killed


def client_unblock(session: Session, frame: Frame) -> int:
    """Unblock a client, as if its timeout had passed or with an error."""
    if frame.count > 4:
        raise unknown_subcommand("CLIENT", frame.piece(1))
    by_error = frame.count == 4 and frame.is_word(3, b"ERROR")
    if frame.count == 4 and not by_error and not frame.is_word(3, b"TIMEOUT"):
        raise CommandError("CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
    other = session.server.sessions.get(int_at(frame, 2))
    if other is None or other.waiter is None or other.waiter.done:
        return 0  # a client that a pause holds back, or that was served, is not blocked
    if by_error:
        other.waiter.fail(CommandError("client unblocked via CLIENT UNBLOCK", "UNBLOCKED"))
    else:
        other.waiter.time_out()
    return 1


def client_pause(session: Session, frame: Frame) -> Status:
    """Hold back all commands, or all writes, for a time."""
    if frame.count > 4:
        raise unknown_subcommand("CLIENT", frame.piece(1))
    writes_only = frame.count == 4 and frame.is_word(3, b"WRITE")
    if frame.count == 4 and not writes_only and not frame.is_word(3, b"ALL"):
        raise CommandError("CLIENT PAUSE mode must be WRITE or ALL")
    wait_ms = timeout_at(frame, 2)
    until_ms = session.server.steady_ms() + wait_ms if wait_ms else 0
    session.server.pause.begin(until_ms, writes_only)
    return OK


def client_unpause(session: Session, frame: Frame) -> Status:
    """End the pause."""
    session.server.pause.end()
    return OK


def client_help(session: Session, frame: Frame) -> list[Status]:
    """The subcommands of CLIENT."""
    knows = session.server.engine.context.compat.knows
    return help_of("CLIENT", [line for since, lines in _HELP if knows(since) for line in lines])


_HELP = [
    ("6.0.0", ["CACHING (YES|NO)", "    Refused: keys are not tracked."]),
    ("6.0.0", ["GETREDIR", "    Return -1: keys are not tracked."]),
    ("2.6.9", ["GETNAME", "    Return the name of this connection."]),
    ("5.0.0", ["ID", "    Return the id of this connection."]),
    ("6.2.0", ["INFO", "    Return a line about this connection."]),
    (
        "2.4.0",
        [
            "KILL <ip:port>",
            "    Close the connection from this address.",
            "KILL <option> <value> [<option> <value> [...]]",
            "    Close the connections that match all options. Options are:",
            "    * ADDR (<ip:port>|<unixsocket>:0)",
            "      Connections from this address.",
            "    * LADDR (<ip:port>|<unixsocket>:0)",
            "      Connections to this address of the server.",
            "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
            "      Connections of this type.",
            "    * USER <username>",
            "      Connections of this user.",
            "    * SKIPME (YES|NO)",
            "      Skip this connection (default: yes).",
            "    * ID <client-id>",
            "      The connection with this id.",
        ],
    ),
    ("7.4.0", ["    * MAXAGE <maxage>", "      Connections at least this many seconds old."]),
    (
        "2.4.0",
        [
            "LIST [options ...]",
            "    Return a line per connection. Options are:",
            "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
            "      Only connections of this type.",
            "    * ID <client-id> [<client-id> ...]",
            "      Only connections with these ids.",
            "UNPAUSE",
            "    End a pause.",
            "PAUSE <timeout> [WRITE|ALL]",
            "    Hold back all commands, or all writes, for this many milliseconds.",
            "REPLY (ON|OFF|SKIP)",
            "    Turn replies on or off; SKIP omits the next one.",
            "SETNAME <name>",
            "    Set the name of this connection.",
            "UNBLOCK <clientid> [TIMEOUT|ERROR]",
            "    Unblock a client.",
        ],
    ),
    (
        "6.0.0",
        [
            "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
            "         [OPTIN] [OPTOUT] [NOLOOP]",
            "    ON is refused: keys are not tracked.",
        ],
    ),
    ("6.2.0", ["TRACKINGINFO", "    Return the state of tracking, which is off."]),
    ("7.0.0", ["NO-EVICT (ON|OFF)", "    Exempt this connection from client eviction."]),
    ("7.2.0", ["SETINFO <option> <value>", "    Set the library: LIB-NAME or LIB-VER."]),
    ("7.2.0", ["NO-TOUCH (ON|OFF)", "    Do not update the access time of keys."]),
]
