"""Which commands there are and how they are used: COMMAND and its subcommands."""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.core.glob import Glob
from penstock.engine.commands.help import help_of
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, syntax_error
from penstock.reply import Members, Pairs, Status
from penstock.server.command_catalogue import Catalogue, access_of
from penstock.server.session.session import Session


def _catalogue(session: Session) -> Catalogue:
    return Catalogue(tally.command for tally in session.server.tallies.by_name.values())


def _names_from(frame: Frame, first: int) -> list[str]:
    """Names in any case. A byte that is no ASCII is in no name, so how it is read does not matter."""
    return [frame.piece(at).decode("latin-1").lower() for at in range(first, frame.count)]


def command(session: Session, frame: Frame) -> list[Any]:
    """All commands."""
    catalogue = _catalogue(session)
    return [catalogue.info(name) for name in catalogue.names]


def count(session: Session, frame: Frame) -> int:
    """How many commands there are; subcommands do not count."""
    return len(_catalogue(session).names)


def command_info(session: Session, frame: Frame) -> list[Any]:
    """The commands named, or all; null for a name that is none."""
    catalogue = _catalogue(session)
    names = _names_from(frame, 2) or catalogue.names
    return [catalogue.info(name) if catalogue.knows(name) else None for name in names]


def docs(session: Session, frame: Frame) -> Pairs:
    """What the commands named, or all, are for; a name that is none adds nothing."""
    catalogue = _catalogue(session)
    names = _names_from(frame, 2) or catalogue.names
    return Pairs([(n.encode(), catalogue.docs(n)) for n in names if catalogue.knows(n)])


def command_list(session: Session, frame: Frame) -> list[bytes]:
    """The names of all commands and subcommands, or of those that a filter lets pass."""
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
        category = wanted.decode("latin-1").lower()
        catalogue = _catalogue(session)
        return [name for name in names if category in catalogue.categories(name)]
    if frame.is_word(3, b"PATTERN"):
        glob = Glob(wanted, ignore_case=True)
        return [name for name in names if glob.matches(name.encode())]
    raise syntax_error()


def _keys_asked_for(session: Session, frame: Frame) -> tuple[Command, list[bytes]]:
    """The row and the keys of a command that is given from the third word on. Raises: CommandError."""
    asked = Frame()
    for at in range(2, frame.count):
        asked.add(frame.piece(at))
    try:
        row = session.server.tallies.lookup.find(asked)
    except CommandError:
        raise CommandError("Invalid command specified") from None
    if row.find_keys is None and row.keys == NO_KEYS:
        raise CommandError("The command has no key arguments")
    if not row.takes(asked.count):
        raise CommandError("Invalid number of arguments specified for command")
    try:
        places = row.key_places(asked)
    except CommandError:
        places = [asked.count]
    if any(at >= asked.count for at in places):  # a number of keys that are not all there
        raise CommandError("Invalid arguments specified for command")
    return row, [asked.piece(at) for at in places]


def getkeys(session: Session, frame: Frame) -> list[bytes]:
    """The keys in a whole command."""
    return _keys_asked_for(session, frame)[1]


def getkeysandflags(session: Session, frame: Frame) -> list[Any]:
    """The keys in a whole command, each with what the command does to it."""
    row, keys = _keys_asked_for(session, frame)
    return [[key, Members([Status(name) for name in access_of(row)])] for key in keys]


def command_help(session: Session, frame: Frame) -> list[Status]:
    """The subcommands of COMMAND."""
    return help_of("COMMAND", _HELP)


_HELP = [
    "(no subcommand)",
    "    Everything about all commands.",
    "COUNT",
    "    How many commands there are.",
    "LIST",
    "    The names of all commands; FILTERBY MODULE, ACLCAT or PATTERN leaves others out.",
    "INFO [<command-name> ...]",
    "    Arity, flags, keys and categories of the commands named, or of all.",
    "DOCS [<command-name> ...]",
    "    Summary and arguments of the commands named, or of all.",
    "GETKEYS <full-command>",
    "    The keys in a command.",
    "GETKEYSANDFLAGS <full-command>",
    "    The keys in a command, and what it does to them.",
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
        "Describe all commands.",
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
        "Tell what commands are for and what they take.",
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
        "Find the keys in a command.",
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
        "Find the keys in a command, and what it does to them.",
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
        "Describe commands.",
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
