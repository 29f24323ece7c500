"""For tests of servers and clients: DEBUG SLEEP, OBJECT, SET-ACTIVE-EXPIRE, DIGEST, RELOAD, LOADAOF, HELP.

Refused unless enable-debug-command allows it (session/admission.py), because a client could stop the server
for an hour.
"""

from __future__ import annotations

import re
import time

from penstock.core.frame import Frame
from penstock.engine.commands.help import help_of
from penstock.engine.digest import data_digest
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, no_such_key, unknown_subcommand
from penstock.reply import OK, Status
from penstock.server.commands.persistence import durability_of
from penstock.server.reloading import reload_log, reload_snapshot
from penstock.server.session.session import Session

_LEADING_NUMBER = re.compile(rb"\s*[+-]?(\d+\.?\d*|\.\d+)")
_LEADING_INTEGER_NOT_ZERO = re.compile(rb"\s*[+-]?0*[1-9]")


def debug(session: Session, frame: Frame) -> Status | list[Status]:
    """All subcommands in one row: as in Redis, DEBUG is not a container."""
    if frame.count == 2 and frame.is_word(1, b"HELP"):
        return help_of("DEBUG", _HELP)
    if frame.count == 3 and frame.is_word(1, b"SLEEP"):
        # Stopping the whole server is the purpose of this command.
        time.sleep(max(0.0, _leading_number(frame.piece(2))))
        return OK
    if frame.count == 3 and frame.is_word(1, b"OBJECT"):
        return _describe(session, frame)
    if frame.count == 3 and frame.is_word(1, b"SET-ACTIVE-EXPIRE"):
        number = _LEADING_INTEGER_NOT_ZERO.match(frame.piece(2))
        session.server.active_expire = number is not None
        return OK
    if frame.is_word(1, b"DIGEST") and frame.count == 2:
        return Status(data_digest(session.server.engine.context.databases))
    if frame.is_word(1, b"RELOAD"):
        return _reload(session, frame)
    if frame.is_word(1, b"LOADAOF") and frame.count == 2:
        reload_log(durability_of(session))
        return OK
    raise unknown_subcommand("DEBUG", frame.piece(1))


def _reload(session: Session, frame: Frame) -> Status:
    """Save and load all data, as a restart would."""
    words = {frame.piece(at).upper() for at in range(2, frame.count)}
    if not words <= {b"NOSAVE"}:
        raise CommandError("DEBUG RELOAD only supports the NOSAVE option.")
    reload_snapshot(durability_of(session), save=not words)
    return OK


def _leading_number(text: bytes) -> float:
    """The number at the start of a text, as C's strtod reads it; 0 if there is none."""
    number = _LEADING_NUMBER.match(text)
    return 0.0 if number is None else float(number[0])


def _describe(session: Session, frame: Frame) -> Status:
    value = session.keyspace.find(frame.piece(2))
    if value is None:
        raise no_such_key()
    row = session.server.tallies.by_name["OBJECT ENCODING"].command
    encoding = row.run(session.server.engine.context, frame).decode()
    return Status(f"Value at:{id(value):#x} refcount:1 encoding:{encoding}")


_HELP = [
    "DIGEST",
    "    A digest of all data, equal for equal data.",
    "LOADAOF",
    "    Load the log again.",
    "OBJECT <key>",
    "    Show how Redis would store a value.",
    "RELOAD [NOSAVE]",
    "    Save a snapshot and load it again.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Turn the periodic removal of expired keys on or off.",
    "SLEEP <seconds>",
    "    Stop the whole server for some seconds. Decimals allowed.",
]

COMMANDS = (
    Command(
        "DEBUG",
        debug,
        -2,
        Flags.ADMIN | Flags.NO_SCRIPT | Flags.LOADING | Flags.STALE | Flags.PROTECTED,
        NO_KEYS,
        "Debugging and test commands.",
        syntax="subcommand [argument]",
        complexity="O(n) for RELOAD, LOADAOF and DIGEST, with n the size of the data; else O(1)",
        group="server",
        in_session=True,
    ),
)
