"""ACL: users and what they may do.

    users        LIST USERS GETUSER SETUSER DELUSER
    this one     WHOAMI
    rules        CAT DRYRUN
    file         LOAD SAVE
    others       LOG GENPASS HELP

The rules themselves are in server/acl.
"""

from __future__ import annotations

import secrets
from typing import Any

from penstock.core.frame import Frame
from penstock.engine.arguments import int_at
from penstock.engine.commands.help import help_of
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, shown, unknown_subcommand, wrong_arity
from penstock.reply import OK, Members, Pairs, Status
from penstock.server.acl.denial_log import Entry
from penstock.server.acl.denials import dry_run_text
from penstock.server.acl.selector import RuleError, Selector
from penstock.server.acl.user import is_valid_name, joined_selectors
from penstock.server.acl.user_file import read_users, save_users
from penstock.server.acl.users import DEFAULT
from penstock.server.command_catalogue import CATEGORIES
from penstock.server.log import LOG
from penstock.server.session.session import Session
from penstock.server.session.states import CLOSING

_PASSWORD_BITS = 256
_PASSWORD_BITS_MAX = 4096
_SHOWN_ENTRIES = 10
_NO_FILE = (
    "This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL"
    " SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in"
    " order to store users in the Redis configuration."
)


def acl_list(session: Session, frame: Frame) -> list[bytes]:
    """All users, as lines of a file."""
    return session.server.users.lines()


def acl_users(session: Session, frame: Frame) -> list[bytes]:
    """The names of all users."""
    return sorted(session.server.users.by_name)


def acl_whoami(session: Session, frame: Frame) -> bytes:
    """The name of the client's user."""
    return session.user.name


def acl_getuser(session: Session, frame: Frame) -> Pairs | None:
    """The rules of a user; None if there is no such user."""
    user = session.server.users.by_name.get(frame.piece(2))
    if user is None:
        return None
    own, *others = user.selectors
    flags = user.flags(session.server.engine.context.compat.shows_sanitizing)
    items: list[tuple[bytes, Any]] = [
        (b"flags", Members(list(flags))),
        (b"passwords", list(user.passwords)),
        *_rules(own),
        (b"selectors", [Pairs(_rules(selector)) for selector in others]),
    ]
    return Pairs(items)


def _rules(selector: Selector) -> list[tuple[bytes, Any]]:
    """The rules of a selector. Groups, which Redis does not have, are shown only if they are limited."""
    items: list[tuple[bytes, Any]] = [
        (b"commands", selector.commands_text()),
        (b"keys", selector.keys_text()),
        (b"channels", selector.channels_text()),
    ]
    if selector.groups is not None:
        items.append((b"groups", selector.groups_text()))
    return items


def acl_setuser(session: Session, frame: Frame) -> Status:
    """Create or change a user; all rules or none."""
    name = frame.piece(2)
    if not is_valid_name(name):
        raise CommandError("Usernames can't contain spaces or null characters")
    users = session.server.users
    try:
        rules = joined_selectors([frame.piece(at) for at in range(3, frame.count)])
    except RuleError as error:
        raise CommandError(str(error)) from None
    trial = users.by_name[name].copy() if name in users.by_name else users.fresh(name)
    for rule in rules:
        try:
            trial.apply(rule, users.catalogue, users.all_channels)
        except RuleError as error:
            raise CommandError(f"Error in ACL SETUSER modifier '{shown(rule)}': {error}") from None
    _disconnect(session, users.put(trial))
    return OK


def acl_deluser(session: Session, frame: Frame) -> int:
    """Delete users and disconnect their clients; reply with the number of users deleted."""
    users = session.server.users
    names = [frame.piece(at) for at in range(2, frame.count)]
    if DEFAULT in names:
        raise CommandError("The 'default' user cannot be removed")
    found = [name for name in dict.fromkeys(names) if name in users.by_name]
    for name in found:
        _disconnect(session, users.delete(name))
    return len(found)


def _disconnect(session: Session, lost: list[Session]) -> None:
    """Disconnect clients; this one gets its reply first."""
    for other in lost:
        if other is session:
            session.state |= CLOSING
        else:
            other.kill()


def acl_cat(session: Session, frame: Frame) -> list[bytes]:
    """All categories, or the commands of one."""
    if frame.count > 3:
        raise unknown_subcommand("ACL", frame.piece(1))
    if frame.count == 2:
        return [name.encode() for name in CATEGORIES]
    category = frame.piece(2).decode("latin-1").lower()
    if category not in CATEGORIES:
        raise CommandError(f"Unknown category '{shown(frame.piece(2))}'")
    names = session.server.users.catalogue.in_category(category)
    return [name.encode() for name in names]


def acl_dryrun(session: Session, frame: Frame) -> Status | bytes:
    """Tell whether a user may run a command, without running it."""
    users = session.server.users
    user = users.by_name.get(frame.piece(2))
    if user is None:
        raise CommandError(f"User '{shown(frame.piece(2))}' not found")
    asked = frame.copy(3)
    try:
        command = session.server.tallies.lookup.find(asked)
    except CommandError:
        raise CommandError(f"Command '{shown(frame.piece(3))}' not found") from None
    if not command.takes(asked.count):
        raise wrong_arity(command.name)
    if user.permissions is None:
        return OK
    denial = user.permissions.denial_or_none(command, asked)
    if denial is None:
        return OK
    return dry_run_text(user, command, asked, denial, session.server.engine.context.compat)


def acl_log(session: Session, frame: Frame) -> Status | list[Pairs]:
    """The last refused commands and failed logins; RESET removes them."""
    log = session.server.users.log
    if frame.count > 3:
        raise unknown_subcommand("ACL", frame.piece(1))
    if frame.count == 3 and frame.is_word(2, b"RESET"):
        log.clear()
        return OK
    count = int_at(frame, 2) if frame.count == 3 else _SHOWN_ENTRIES
    context = session.server.engine.context
    has_times = context.compat.counts_denials
    entries = list(log.entries)[: max(0, count)]
    return [_about(entry, context.now_ms(), has_times) for entry in entries]


def _about(entry: Entry, now_ms: int, has_times: bool) -> Pairs:
    event = entry.event
    age_s = max(0, now_ms - entry.updated_ms) / 1000
    items: list[tuple[bytes, Any]] = [
        (b"count", entry.count),
        (b"reason", event.reason.encode()),
        (b"context", event.context.encode()),
        (b"object", event.object),
        (b"username", event.user),
        (b"age-seconds", f"{age_s:g}".encode()),
        (b"client-info", entry.client_line),
    ]
    if has_times:
        items += [
            (b"entry-id", entry.id),
            (b"timestamp-created", entry.created_ms),
            (b"timestamp-last-updated", entry.updated_ms),
        ]
    return Pairs(items)


def acl_genpass(session: Session, frame: Frame) -> bytes:
    """A random password in hexadecimal digits, four bits each."""
    if frame.count > 3:
        raise unknown_subcommand("ACL", frame.piece(1))
    bits = int_at(frame, 2) if frame.count == 3 else _PASSWORD_BITS
    if not 0 < bits <= _PASSWORD_BITS_MAX:
        raise CommandError(
            "ACL GENPASS argument must be the number of bits for the output password, a positive number up"
            f" to {_PASSWORD_BITS_MAX}"
        )
    digits = (bits + 3) // 4
    return secrets.token_hex(digits)[:digits].encode()


def acl_load(session: Session, frame: Frame) -> Status:
    """Replace all users by those of the aclfile; if one of its lines is wrong, none changes."""
    users = session.server.users
    if not users.file:
        raise CommandError(_NO_FILE)
    try:
        found = read_users(users, users.file)
    except RuleError as error:
        raise CommandError(str(error)) from None
    _disconnect(session, users.replace_all(found))
    return OK


def acl_save(session: Session, frame: Frame) -> Status:
    """Write all users to the aclfile."""
    users = session.server.users
    if not users.file:
        raise CommandError(_NO_FILE)
    try:
        save_users(users)
    except OSError as error:
        LOG.warning("ACL SAVE: %s: %s", users.file, error.strerror)
        raise CommandError(
            "There was an error trying to save the ACLs. Please check the server logs for more information"
        ) from None
    return OK


def acl_help(session: Session, frame: Frame) -> list[Status]:
    """The subcommands of ACL."""
    return help_of("ACL", _HELP)


_HELP = [
    "CAT [<category>]",
    "    List the categories of commands,",
    "    or the commands of one.",
    "DELUSER <username> [<username> ...]",
    "    Delete users and disconnect their clients.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Tell whether a user may run a command, without running it.",
    "GETUSER <username>",
    "    Return the rules of a user.",
    "GENPASS [<bits>]",
    "    Return a random password of 256 bits,",
    "    or of another size.",
    "LIST",
    "    List all users as lines of a file.",
    "LOAD",
    "    Replace all users by those of the aclfile.",
    "LOG [<count> | RESET]",
    "    Show refused commands and failed logins.",
    "SAVE",
    "    Write all users to the aclfile.",
    "SETUSER <username> <attribute> [<attribute> ...]",
    "    Create or change a user.",
    "USERS",
    "    List the names of all users.",
    "WHOAMI",
    "    Return the name of this connection's user.",
]

_ASKS = Flags.NO_SCRIPT | Flags.LOADING | Flags.STALE
_ADMIN = _ASKS | Flags.ADMIN

COMMANDS = (
    Command(
        "ACL CAT",
        acl_cat,
        -2,
        _ASKS,
        NO_KEYS,
        "List the categories of commands, or the commands of one.",
        syntax="[category]",
        since="6.0.0",
        complexity="O(commands)",
        group="server",
        in_session=True,
    ),
    Command(
        "ACL DELUSER",
        acl_deluser,
        -3,
        _ADMIN,
        NO_KEYS,
        "Delete users, and disconnect their clients.",
        syntax="username [username ...]",
        since="6.0.0",
        complexity="O(users + connections)",
        group="server",
        in_session=True,
    ),
    Command(
        "ACL DRYRUN",
        acl_dryrun,
        -4,
        _ADMIN,
        NO_KEYS,
        "Tell whether a user may run a command, without running it.",
        syntax="username command [arg [arg ...]]",
        since="7.0.0",
        group="server",
        in_session=True,
    ),
    Command(
        "ACL GENPASS",
        acl_genpass,
        -2,
        _ASKS,
        NO_KEYS,
        "Generate a random password.",
        syntax="[bits]",
        since="6.0.0",
        group="server",
        in_session=True,
    ),
    Command(
        "ACL GETUSER",
        acl_getuser,
        3,
        _ADMIN,
        NO_KEYS,
        "Return the rules of a user.",
        syntax="username",
        since="6.0.0",
        complexity="O(rules)",
        group="server",
        in_session=True,
    ),
    Command(
        "ACL LIST",
        acl_list,
        2,
        _ADMIN,
        NO_KEYS,
        "List all users with their rules.",
        since="6.0.0",
        complexity="O(users)",
        group="server",
        in_session=True,
    ),
    Command(
        "ACL LOAD",
        acl_load,
        2,
        _ADMIN,
        NO_KEYS,
        "Replace all users by those of the aclfile.",
        since="6.0.0",
        complexity="O(users + connections)",
        group="server",
        in_session=True,
    ),
    Command(
        "ACL LOG",
        acl_log,
        -2,
        _ADMIN,
        NO_KEYS,
        "Show refused commands and failed logins.",
        syntax="[count | RESET]",
        since="6.0.0",
        complexity="O(entries)",
        group="server",
        in_session=True,
    ),
    Command(
        "ACL SAVE",
        acl_save,
        2,
        _ADMIN,
        NO_KEYS,
        "Write all users to the aclfile.",
        since="6.0.0",
        complexity="O(users)",
        group="server",
        in_session=True,
    ),
    Command(
        "ACL SETUSER",
        acl_setuser,
        -3,
        _ADMIN,
        NO_KEYS,
        "Create or change a user.",
        syntax="username [rule [rule ...]]",
        since="6.0.0",
        complexity="O(rules + connections)",
        group="server",
        in_session=True,
    ),
    Command(
        "ACL USERS",
        acl_users,
        2,
        _ADMIN,
        NO_KEYS,
        "List the names of all users.",
        since="6.0.0",
        complexity="O(users)",
        group="server",
        in_session=True,
    ),
    Command(
        "ACL WHOAMI",
        acl_whoami,
        2,
        _ASKS,
        NO_KEYS,
        "Return the name of the client's user.",
        since="6.0.0",
        group="server",
        in_session=True,
    ),
    Command(
        "ACL HELP",
        acl_help,
        2,
        Flags.LOADING | Flags.STALE,
        NO_KEYS,
        "Show the subcommands of ACL.",
        since="6.0.0",
        group="server",
        in_session=True,
    ),
)
