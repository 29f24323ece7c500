"""Who is logged in, and what they may do.

A viewer sees everything and changes nothing. An operator may change data too, if the dashboard was started
with --allow-writes. Without a password everyone is an operator.

A session begins with a login. It ends with a logout or another login in the same browser, after a week, or
when the dashboard stops. Its token is only in the cookie of the browser; here is only the hash of it, so the
time of a search tells nothing about a token.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any

SESSIONS_MAX = 1000  # of each role, so that viewers cannot push out operators
SECONDS_MAX = 7 * 86_400
SCOPE_KEY = "penstock.session"  # in the scope of a request, and of a websocket


class Role(Enum):
    """What a user may do."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(slots=True)
class Session:
    """A user in one browser, until a time of the steady clock. Pages that are still shown keep it."""

    role: Role
    ends_at: float = inf

    @property
    def is_open(self) -> bool:
        return time.monotonic() < self.ends_at

    @property
    def may_change(self) -> bool:
        return self.is_open and self.role is Role.OPERATOR


class Sessions:
    """The sessions. Beyond SESSIONS_MAX of one role the oldest ones end."""

    def __init__(self) -> None:
        self._sessions: dict[bytes, Session] = {}

    def begin(self, role: Role) -> str:
        """A new session; returns its token."""
        same = [key for key, session in self._sessions.items() if session.role is role]
        for key in same[: len(same) + 1 - SESSIONS_MAX]:
            self._end(key)
        token = secrets.token_urlsafe(32)
        self._sessions[_hashed(token)] = Session(role, time.monotonic() + SECONDS_MAX)
        return token

    def find(self, token: str) -> Session | None:
        """The open session of a token."""
        found = self._sessions.get(_hashed(token))
        return found if found is not None and found.is_open else None

    def end(self, token: str) -> None:
        """End a session, if there is one."""
        self._end(_hashed(token))

    def _end(self, key: bytes) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            session.ends_at = -inf


def session_of(scope: Mapping[str, Any]) -> Session:
    """The session of a request that passed the gate. Without one, nothing may be changed."""
    found = scope.get(SCOPE_KEY)
    return found if isinstance(found, Session) else Session(Role.VIEWER)


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
