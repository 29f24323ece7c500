"""CONFIG GET, SET, REWRITE, RESETSTAT, HELP: settings while the server runs."""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.core.glob import Glob
from penstock.engine.commands.help import help_of
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, ConfigError, shown, syntax_error
from penstock.reply import OK, Pairs, Status
from penstock.server.config import file as config_file
from penstock.server.config.settings import AT_START, PROTECTED, Config, Directive
from penstock.server.log import LOG
from penstock.server.session.session import Session

HELP_LINES = [
    "GET <pattern>",
    "    Return the settings that match a pattern.",
    "SET <directive> <value>",
    "    Change a setting.",
    "RESETSTAT",
    "    Reset the counters of INFO.",
    "REWRITE",
    "    Update the configuration file.",
]


def get(session: Session, frame: Frame) -> Pairs:
    """The settings that match any of the patterns. A plain name is shown as the client wrote it."""
    config = _config(session)
    found: dict[str, bytes] = {}
    for at in range(2, frame.count):
        pattern = frame.piece(at)
        glob = Glob(pattern, ignore_case=True)
        plain = not any(char in pattern for char in b"*?[")
        for name in config.names():
            if name not in found and glob.matches(name.encode()):
                found[name] = pattern if plain else name.encode()
    return Pairs(
        [
            (shown_name, config.shown(name).encode(errors="surrogateescape"))
            for name, shown_name in found.items()
        ]
    )


def set(session: Session, frame: Frame) -> Status:
    """Change settings, all or none."""
    if frame.count % 2:
        raise syntax_error()
    config = _config(session)
    given = [
        (frame.piece(at), frame.piece(at + 1).decode(errors="surrogateescape"))
        for at in range(2, frame.count, 2)
    ]
    ours, foreign = _told_apart(config, given, session)
    values: dict[str, Any] = {}
    for name, row, text in ours:
        try:
            value = row.parse((text,))
        except ConfigError as error:
            raise _failed(name, error) from error
        values[row.name] = (
            row.kind.joined(config.values[row.name], value) if (row.kind.adds_to_default) else value
        )
    try:
        config.change(values)
    except ConfigError as error:
        raise _failed(error.args[1], error.args[0]) from error
    for name, text in foreign:
        config.ignored[name] = text
        LOG.warning("CONFIG SET %s: the directive has no effect here and is ignored", name)
    return OK


def _told_apart(
    config: Config, given: list[tuple[bytes, str]], session: Session
) -> tuple[list[tuple[str, Directive, str]], list[tuple[str, str]]]:
    """Separate our directives from ignored ones. Raises: CommandError for unknown or immutable ones."""
    ours: list[tuple[str, Directive, str]] = []
    foreign: list[tuple[str, str]] = []
    seen: dict[str, None] = {}
    for word, text in given:
        name = shown(word).lower()
        row = config.directives.get(name)
        if row is None and name not in config.vocabulary.ignored:
            raise CommandError(
                f"Unknown option or number of arguments for CONFIG SET - '{shown(word)}'"
            )
        if name in seen:
            raise _failed(shown(word), "duplicate parameter")
        seen[name] = None
        if row is None:
            foreign.append((name, text))
            continue
        if row.when == AT_START:
            raise _failed(shown(word), "can't set immutable config")
        if row.when == PROTECTED and not _may_set_protected(config, session):
            raise _failed(shown(word), "can't set protected config")
        ours.append((shown(word), row, text))
    return ours, foreign


def _may_set_protected(config: Config, session: Session) -> bool:
    who = config.value("enable-protected-configs")
    return who == "yes" or (who == "local" and _is_local(session.info.address))


def _is_local(address: str) -> bool:
    return address.startswith(("127.", "[::1]", "/"))


def rewrite(session: Session, frame: Frame) -> Status:
    """Update the file that the server was started with."""
    config = _config(session)
    if config.file is None:
        raise CommandError("The server is running without a config file")
    try:
        config_file.rewrite(config, config.file, _user_lines(session))
    except OSError as error:
        raise CommandError(f"Rewriting config file: {error.strerror}") from error
    return OK


def _user_lines(session: Session) -> list[str]:
    """The `user` lines of the file: none if there is an aclfile, or only the user `default` as it was."""
    users = session.server.users
    if users.file or users.are_default():
        return []
    return [line.decode("utf-8", "surrogateescape") for line in users.lines()]


def resetstat(session: Session, frame: Frame) -> Status:
    """Reset the counters of INFO."""
    server = session.server
    for tally in server.tallies.by_name.values():
        tally.reset()
    server.errors.clear()
    server.bytes_in = 0
    server.bytes_out = 0
    if server.door is not None:
        server.door.reset_count()
    server.client_memory.evicted = 0
    server.users.log.counts.clear()
    if server.durability is not None:
        server.durability.child.reset_counts()
    return OK


def help(session: Session, frame: Frame) -> list[Status]:
    """The subcommands of CONFIG."""
    return help_of("CONFIG", HELP_LINES)


def _config(session: Session) -> Config:
    config = session.server.config
    assert isinstance(config, Config), "a server without settings has no CONFIG"
    return config


def _failed(name: str, why: object) -> CommandError:
    return CommandError(f"CONFIG SET failed (possibly related to argument '{name}') - {why}")


_FLAGS = Flags.ADMIN | Flags.NO_SCRIPT | Flags.LOADING | Flags.STALE

COMMANDS = (
    Command(
        "CONFIG GET",
        get,
        -3,
        _FLAGS,
        NO_KEYS,
        "Return settings.",
        syntax="parameter [parameter ...]",
        since="2.0.0",
        complexity="O(settings) a pattern",
        group="server",
        in_session=True,
    ),
    Command(
        "CONFIG SET",
        set,
        -4,
        _FLAGS,
        NO_KEYS,
        "Change settings, all or none.",
        syntax="parameter value [parameter value ...]",
        since="2.0.0",
        complexity="O(settings given)",
        group="server",
        in_session=True,
    ),
    Command(
        "CONFIG RESETSTAT",
        resetstat,
        2,
        _FLAGS,
        NO_KEYS,
        "Reset the counters of INFO.",
        since="2.0.0",
        group="server",
        in_session=True,
    ),
    Command(
        "CONFIG REWRITE",
        rewrite,
        2,
        _FLAGS,
        NO_KEYS,
        "Update the configuration file with the settings in force.",
        since="2.8.0",
        group="server",
        in_session=True,
    ),
    Command(
        "CONFIG HELP",
        help,
        2,
        Flags.LOADING | Flags.STALE,
        NO_KEYS,
        "Show the subcommands of CONFIG.",
        since="5.0.0",
        group="server",
        in_session=True,
    ),
)
