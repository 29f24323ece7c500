"""What the dashboard may send, and what it says where something is refused."""

from __future__ import annotations

from typing import TypeAlias

from penstock.errors import PenstockError

Word: TypeAlias = str | bytes | int


class Refused(PenstockError):
    """The server, or the dashboard itself, will not do it; the text is for the user."""
