"""The filter of CLIENT KILL: a client must meet all given conditions."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.frame import Frame
from penstock.engine.arguments import int_between
from penstock.errors import CommandError, shown, syntax_error
from penstock.server.acl.user import User
from penstock.server.server import Server
from penstock.server.session.client_line import client_type
from penstock.server.session.session import Session

_INT64_MAX = 2**63 - 1
_TYPES = {
    "normal": "normal",
    "pubsub": "pubsub",
    "master": "master",
    "replica": "replica",
    "slave": "replica",
}


@dataclass(slots=True)
class KillFilter:
    """The conditions; None matches every client."""

    address: str | None = None
    local_address: str | None = None
    id: int | None = None
    type: str | None = None
    user: User | None = None
    age_s_min: int | None = None
    skip_self: bool = True

    def matches(self, session: Session, now_ms: int) -> bool:
        """Tell whether a client meets all conditions; `skip_self` is not one of them."""
        info = session.info
        age_s = (now_ms - info.created_ms) // 1000
        return (
            self.address in (None, info.address)
            and self.local_address in (None, info.local_address)
            and self.id in (None, session.id)
            and self.type in (None, client_type(session))
            and self.user in (None, session.user)
            and (self.age_s_min is None or age_s >= self.age_s_min)
        )


def parse_kill_filter(frame: Frame, server: Server) -> KillFilter:
    """Parse the arguments of CLIENT KILL. Raises: CommandError."""
    found = KillFilter()
    for index in range(2, frame.count, 2):
        if index + 1 >= frame.count:
            raise syntax_error()
        _add(found, frame, index, server)
    return found


def _add(found: KillFilter, frame: Frame, index: int, server: Server) -> None:
    option = frame.piece(index).upper()
    value = shown(frame.piece(index + 1))
    if option == b"ID":
        found.id = _positive_at(frame, index + 1, "client-id")
    elif option == b"TYPE":
        found.type = type_at(frame, index + 1)
    elif option == b"ADDR":
        found.address = value
    elif option == b"LADDR":
        found.local_address = value
    elif option == b"USER":
        found.user = server.users.by_name.get(frame.piece(index + 1))
        if found.user is None:
            raise CommandError(f"No such user '{value}'")
    elif option == b"SKIPME" and value.lower() in ("yes", "no"):
        found.skip_self = value.lower() == "yes"
    elif option == b"MAXAGE" and server.engine.context.compat.kill_by_age:
        found.age_s_min = _positive_at(frame, index + 1, "maxage")
    else:
        raise syntax_error()


def _positive_at(frame: Frame, index: int, name: str) -> int:
    refusal = CommandError(f"{name} should be greater than 0")
    return int_between(frame, index, 1, _INT64_MAX, refusal)


def type_at(frame: Frame, index: int) -> str:
    """Parse a client type. Raises: CommandError."""
    word = shown(frame.piece(index))
    found = _TYPES.get(word.lower())
    if found is None:
        raise CommandError(f"Unknown client type '{word}'")
    return found
