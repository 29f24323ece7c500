"""Who is logged in, and what they may do.

A viewer sees everything and changes nothing. An operator may change data too, if the dashboard was started
with --allow-writes. Without a password everyone is an operator.

A session begins with a login and ends with a logout, or when the dashboard stops. Its token is only in the
cookie of the browser; here is only the hash of it, so the time of a search tells nothing about a token.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

SESSIONS_MAX = 1000
SCOPE_KEY = "penstock.session"  # in the scope of a request, and of a websocket


class Role(Enum):
    """What a user may do."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(slots=True)
class Session:
    """A user in one browser. `is_open` is False after the logout, also for pages that are still shown."""

    role: Role
    is_open: bool = True

    @property
    def may_change(self) -> bool:
        return self.is_open and self.role is Role.OPERATOR


class Sessions:
    """The open sessions. Beyond SESSIONS_MAX the oldest ones end."""

    def __init__(self) -> None:
        self._sessions: dict[bytes, Session] = {}

    def begin(self, role: Role) -> str:
        """A new session; returns its token."""
        while len(self._sessions) >= SESSIONS_MAX:
            self._end(next(iter(self._sessions)))
        token = secrets.token_urlsafe(32)
        self._sessions[_hashed(token)] = Session(role)
        return token

    def find(self, token: str) -> Session | None:
        return self._sessions.get(_hashed(token))

    def end(self, token: str) -> None:
        """End a session, if there is one."""
        self._end(_hashed(token))

    def _end(self, key: bytes) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            session.is_open = False


def session_of(scope: Mapping[str, Any]) -> Session:
    """The session of a request that passed the gate. Without one, nothing may be changed."""
    found = scope.get(SCOPE_KEY)
    return found if isinstance(found, Session) else Session(Role.VIEWER)


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
