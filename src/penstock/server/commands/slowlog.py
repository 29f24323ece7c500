"""SLOWLOG GET, LEN, RESET, HELP."""

from __future__ import annotations

from itertools import islice
from typing import Any

from penstock.core.frame import Frame
from penstock.engine.arguments import INT64_MAX, int_between
from penstock.engine.commands.help import help_of
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, unknown_subcommand
from penstock.reply import OK, Status
from penstock.server.session.session import Session

GET_COUNT_DEFAULT = 10

_ALL = -1


def slowlog_get(session: Session, frame: Frame) -> list[Any]:
    """The entries, newest first."""
    if frame.count > 3:
        raise unknown_subcommand("SLOWLOG", frame.piece(1))
    count = GET_COUNT_DEFAULT
    if frame.count == 3:
        refusal = CommandError("count should be greater than or equal to -1")
        count = int_between(frame, 2, _ALL, INT64_MAX, refusal)
    entries = session.server.slow_log.entries
    return [
        [entry.id, entry.at_s, entry.us, entry.words, entry.address.encode(), entry.client_name]
        for entry in islice(entries, len(entries) if count == _ALL else min(count, len(entries)))
    ]


def slowlog_len(session: Session, frame: Frame) -> int:
    """The number of entries."""
    return len(session.server.slow_log.entries)


def slowlog_reset(session: Session, frame: Frame) -> Status:
    """Remove all entries; the ids continue."""
    session.server.slow_log.entries.clear()
    return OK


def slowlog_help(session: Session, frame: Frame) -> list[Status]:
    """The subcommands of SLOWLOG."""
    return help_of("SLOWLOG", _HELP)


_HELP = [
    "GET [<count>]",
    "    Return the newest entries (default 10, -1 for all): id, time, microseconds, arguments,",
    "    client address and client name.",
    "LEN",
    "    Count the entries.",
    "RESET",
    "    Remove all entries.",
]

_FLAGS = Flags.ADMIN | Flags.LOADING | Flags.STALE

COMMANDS = (
    Command(
        "SLOWLOG GET",
        slowlog_get,
        -2,
        _FLAGS,
        NO_KEYS,
        "Return entries of the slow log.",
        syntax="[count]",
        since="2.2.12",
        complexity="O(entries shown)",
        group="server",
        in_session=True,
    ),
    Command(
        "SLOWLOG HELP",
        slowlog_help,
        2,
        Flags.LOADING | Flags.STALE,
        NO_KEYS,
        "Show the subcommands of SLOWLOG.",
        since="6.2.0",
        group="server",
        in_session=True,
    ),
    Command(
        "SLOWLOG LEN",
        slowlog_len,
        2,
        _FLAGS,
        NO_KEYS,
        "Count the entries of the slow log.",
        since="2.2.12",
        group="server",
        in_session=True,
    ),
    Command(
        "SLOWLOG RESET",
        slowlog_reset,
        2,
        _FLAGS,
        NO_KEYS,
        "Empty the slow log.",
        since="2.2.12",
        complexity="O(entries)",
        group="server",
        in_session=True,
    ),
)
