"""The users of a server, and the clients that they log in.

A new client is the user `default`. If that user has a password, or is off, the client must log in first
(net/strangers.py). Rules that change apply to connected clients at once:

    the user is deleted              its clients are disconnected
    a channel is lost                clients that subscribe to it are disconnected
    a blocked command is lost        it ends with NOPERM. Redis 7.2 says so when the command is served
    anything else                    the next command is checked by the new rules
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.core.frame import Frame
from penstock.engine.table import Command
from penstock.errors import CommandError, wrong_password
from penstock.server.acl.denial_log import DenialLog, Event
from penstock.server.acl.denials import REASONS, refusal, refusal_in_exec
from penstock.server.acl.permissions import COMMAND, Denial
from penstock.server.acl.user import User
from penstock.server.command_catalogue import Catalogue, shown_name
from penstock.server.session.client_line import client_line

if TYPE_CHECKING:
    from penstock.server.server import Server
    from penstock.server.session.session import Session

DEFAULT = b"default"
_EVERYTHING = (b"on", b"nopass", b"~*", b"&*", b"+@all")


class Users:
    """All users by name.

    default        the user of clients that have not logged in
    all_channels   acl-pubsub-default is allchannels
    file           aclfile, or empty
    """

    def __init__(self, server: Server, rows: Iterable[Command]) -> None:
        self._server = server
        self.catalogue = Catalogue(rows)
        self.log = DenialLog()
        self.all_channels = False
        self.file = ""
        self._password = b""  # requirepass
        self.default = self._initial_default()
        self.by_name = {DEFAULT: self.default}

    def fresh(self, name: bytes, rules: Iterable[bytes] = ()) -> User:
        """A user that is not registered yet. Raises: RuleError."""
        made = User(name, self.all_channels)
        for rule in rules:
            made.apply(rule, self.catalogue, self.all_channels)
        made.compile(self.catalogue)
        return made

    def _initial_default(self) -> User:
        """The user `default` as the settings alone make it."""
        made = self.fresh(DEFAULT, _EVERYTHING)
        if self._password:
            made.apply(b">" + self._password, self.catalogue)
        return made

    def needs_login(self) -> bool:
        """Tell whether new clients must log in."""
        return not (self.default.enabled and self.default.nopass)

    def lines(self) -> list[bytes]:
        """All users as lines of a file, by name."""
        shows = self._server.engine.context.compat.shows_sanitizing
        return [self.by_name[name].line(shows) for name in sorted(self.by_name)]

    def are_default(self) -> bool:
        """Tell whether there is only the user `default`, as the settings make it: no file need mention it."""
        return len(self.by_name) == 1 and self.default.line(True) == self._initial_default().line(
            True
        )

    # --- Changes: they return the clients that the caller disconnects -------------------------------

    def put(self, user: User) -> list[Session]:
        """Create a user, or replace the rules of the one with its name."""
        user.compile(self.catalogue)
        known = self.by_name.setdefault(user.name, user)
        known.take(user)
        return self._apply_to_clients(known)

    def set_password(self, password: bytes) -> None:
        """Give the user `default` one password, or none: requirepass."""
        self._password = password
        changed = self.default.copy()
        for rule in (b"resetpass", b">" + password) if password else (b"nopass",):
            changed.apply(rule, self.catalogue)
        self.put(changed)

    def delete(self, name: bytes) -> list[Session]:
        """Delete a user. Raises: KeyError."""
        return self._clients_of(self.by_name.pop(name))

    def replace_all(self, users: dict[bytes, User]) -> list[Session]:
        """Replace all users: ACL LOAD. Without a line for `default`, that user is what requirepass says."""
        users = {DEFAULT: self._initial_default(), **users}
        gone = [name for name in self.by_name if name not in users]
        lost = [session for name in gone for session in self.delete(name)]
        for user in users.values():
            lost += self.put(user)
        return lost

    def _clients_of(self, user: User) -> list[Session]:
        return [one for one in self._server.sessions.values() if one.user is user]

    def _apply_to_clients(self, user: User) -> list[Session]:
        strangers = self._server.strangers
        clients = self._clients_of(user)
        for session in clients:
            session.permissions = user.permissions
            self._end_lost_wait(session)
        if user is self.default and not self.needs_login():
            for session in list(strangers.since):
                strangers.let_in(session)
        return [session for session in clients if _has_lost_channel(session)]

    def _end_lost_wait(self, session: Session) -> None:
        waiter = session.waiter
        if waiter is None or waiter.done or session.permissions is None:
            return
        denial = session.permissions.denial_or_none(waiter.command, waiter.frame)
        if denial is not None:
            waiter.fail(self.refuse(session, waiter.command, waiter.frame, denial))

    # --- Clients -----------------------------------------------------------------------------------

    def become(self, session: Session, user: User) -> None:
        """A client is now this user."""
        session.user = user
        session.permissions = user.permissions

    def log_in(self, session: Session, name: bytes, password: bytes, command: bytes) -> None:
        """Log a client in. Raises: CommandError for a wrong name or password, which is logged."""
        user = self.by_name.get(name)
        if user is None or not user.is_right(password):
            self._note(session, Event("auth", _context(session), command, name))
            raise wrong_password()
        self.become(session, user)
        self._server.strangers.let_in(session)

    def refuse(
        self, session: Session, command: Command, frame: Frame, denial: Denial
    ) -> CommandError:
        """Log a refused command; return the error for the client."""
        self._note_denial(session, command, frame, denial, _context(session))
        compat = self._server.engine.context.compat
        return refusal(session.user, command, denial, compat)

    def refuse_in_exec(
        self, session: Session, command: Command, frame: Frame, denial: Denial
    ) -> CommandError:
        """As refuse, for a queued command."""
        self._note_denial(session, command, frame, denial, "multi")
        return refusal_in_exec(denial)

    def _note_denial(
        self, session: Session, command: Command, frame: Frame, denial: Denial, context: str
    ) -> None:
        is_command = denial.reason == COMMAND
        blamed = shown_name(command).encode() if is_command else frame.piece(denial.at)
        self._note(session, Event(REASONS[denial.reason], context, blamed, session.user.name))

    def _note(self, session: Session, event: Event) -> None:
        line = client_line(session).encode("utf-8", "surrogateescape")
        self.log.note(event, self._server.engine.context.now_ms(), line)


def _context(session: Session) -> str:
    return "toplevel" if session.transaction is None else "multi"


def _has_lost_channel(session: Session) -> bool:
    """Tell whether a client subscribes to a channel or pattern that it may not use any more."""
    permissions = session.permissions
    if permissions is None:
        return False
    names = [*session.channels, *session.shard_channels]
    return not (
        all(permissions.allows_channel(name) for name in names)
        and all(permissions.allows_pattern(pattern) for pattern in session.patterns)
    )
