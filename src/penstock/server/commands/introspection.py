"""COMMAND and its subcommands: the commands of this server and their arguments."""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.core.glob import Glob
from penstock.engine.commands.help import help_of
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, syntax_error
from penstock.reply import Pairs, Status
from penstock.server.command_catalogue import Catalogue, flags_reply
from penstock.server.session.session import Session


def _catalogue(session: Session) -> Catalogue:
    return Catalogue(tally.command for tally in session.server.tallies.by_name.values())


def _names_from(frame: Frame, first: int) -> list[str]:
    """Command names in lower case. Names are ASCII, so the decoding of other bytes does not matter."""
    return [frame.piece(at).decode("latin-1").lower() for at in range(first, frame.count)]


def command(session: Session, frame: Frame) -> list[Any]:
    """All commands."""
    catalogue = _catalogue(session)
    return [catalogue.info(name) for name in catalogue.names]


def count(session: Session, frame: Frame) -> int:
    """The number of commands, without subcommands."""
    return len(_catalogue(session).names)


def command_info(session: Session, frame: Frame) -> list[Any]:
    """The named commands, or all; null for an unknown name."""
    catalogue = _catalogue(session)
    names = _names_from(frame, 2) or catalogue.names
    return [catalogue.info(name) if catalogue.knows(name) else None for name in names]


def docs(session: Session, frame: Frame) -> Pairs:
    """The documentation of the named commands, or of all; unknown names are skipped."""
    catalogue = _catalogue(session)
    names = _names_from(frame, 2) or catalogue.names
    return Pairs([(n.encode(), catalogue.docs(n)) for n in names if catalogue.knows(n)])


def command_list(session: Session, frame: Frame) -> list[bytes]:
    """The names of all commands and subcommands, or of those that match a filter."""
    names = list(_catalogue(session).all_names())
    if frame.count == 5 and frame.is_word(2, b"FILTERBY"):
        names = _filtered(session, frame, names)
    elif frame.count != 2:
        raise syntax_error()
    return [name.encode() for name in names]


def _filtered(session: Session, frame: Frame, names: list[str]) -> list[str]:
    wanted = frame.piece(4)
    if frame.is_word(3, b"MODULE"):
        return []
    if frame.is_word(3, b"ACLCAT"):
        return _catalogue(session).in_category(wanted.decode("latin-1").lower())
    if frame.is_word(3, b"PATTERN"):
        glob = Glob(wanted, ignore_case=True)
        return [name for name in names if glob.matches(name.encode())]
    raise syntax_error()


def _keys_asked_for(session: Session, frame: Frame) -> tuple[Command, Frame, list[int]]:
    """The command in the arguments from the third on, and its keys. Raises: CommandError."""
    asked = frame.copy(2)
    try:
        row = session.server.tallies.lookup.find(asked)
    except CommandError:
        raise CommandError("Invalid command specified") from None
    if row.flags & Flags.PUBSUB or (row.find_keys is None and row.keys == NO_KEYS):
        raise CommandError("The command has no key arguments")
    if not row.takes(asked.count):
        raise CommandError("Invalid number of arguments specified for command")
    try:
        places = row.key_places(asked)
    except CommandError:
        places = [asked.count]
    if any(at >= asked.count for at in places):  # fewer keys than the given number
        raise CommandError("Invalid arguments specified for command")
    return row, asked, places


def getkeys(session: Session, frame: Frame) -> list[bytes]:
    """The keys of a full command."""
    _, asked, places = _keys_asked_for(session, frame)
    return [asked.piece(at) for at in places]


def getkeysandflags(session: Session, frame: Frame) -> list[Any]:
    """The keys of a full command, with its access to each."""
    row, asked, places = _keys_asked_for(session, frame)
    return [
        [asked.piece(at), flags_reply(row.access_to(asked, number))]
        for number, at in enumerate(places)
    ]


def command_help(session: Session, frame: Frame) -> list[Status]:
    """The subcommands of COMMAND."""
    return help_of("COMMAND", _HELP)


_HELP = [
    "(no subcommand)",
    "    Return details of all commands.",
    "COUNT",
    "    Count the commands.",
    "LIST",
    "    List the names of commands; FILTERBY selects by MODULE, ACLCAT or PATTERN.",
    "INFO [<command-name> ...]",
    "    Return arity, flags, keys and categories of commands, or of all.",
    "DOCS [<command-name> ...]",
    "    Return summary and arguments of commands, or of all.",
    "GETKEYS <full-command>",
    "    Return the keys of a full command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys of a full command, and its access to them.",
]

_FLAGS = Flags.LOADING | Flags.STALE | Flags.CONNECTION
_OF_ALL = "O(commands)"

COMMANDS = (
    Command(
        "COMMAND",
        command,
        -1,
        _FLAGS,
        NO_KEYS,
        "Return details of all commands.",
        since="2.8.13",
        complexity=_OF_ALL,
        group="server",
        in_session=True,
    ),
    Command(
        "COMMAND COUNT",
        count,
        2,
        _FLAGS,
        NO_KEYS,
        "Count the commands.",
        since="2.8.13",
        group="server",
        in_session=True,
    ),
    Command(
        "COMMAND DOCS",
        docs,
        -2,
        _FLAGS,
        NO_KEYS,
        "Return the documentation of commands.",
        syntax="[command-name [command-name ...]]",
        since="7.0.0",
        complexity=_OF_ALL,
        group="server",
        in_session=True,
    ),
    Command(
        "COMMAND GETKEYS",
        getkeys,
        -4,
        _FLAGS,
        NO_KEYS,
        "Return the keys of a full command.",
        syntax="command [arg [arg ...]]",
        since="2.8.13",
        complexity="O(arguments)",
        group="server",
        in_session=True,
    ),
    Command(
        "COMMAND GETKEYSANDFLAGS",
        getkeysandflags,
        -4,
        _FLAGS,
        NO_KEYS,
        "Return the keys of a full command, and its access to them.",
        syntax="command [arg [arg ...]]",
        since="7.0.0",
        complexity="O(arguments)",
        group="server",
        in_session=True,
    ),
    Command(
        "COMMAND HELP",
        command_help,
        2,
        _FLAGS,
        NO_KEYS,
        "Show the subcommands of COMMAND.",
        since="5.0.0",
        group="server",
        in_session=True,
    ),
    Command(
        "COMMAND INFO",
        command_info,
        -2,
        _FLAGS,
        NO_KEYS,
        "Return details of commands.",
        syntax="[command-name [command-name ...]]",
        since="2.8.13",
        complexity=_OF_ALL,
        group="server",
        in_session=True,
    ),
    Command(
        "COMMAND LIST",
        command_list,
        -2,
        _FLAGS,
        NO_KEYS,
        "List the names of commands.",
        syntax="[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
        since="7.0.0",
        complexity=_OF_ALL,
        group="server",
        in_session=True,
    ),
)
