"""Refused, the error that is shown to the user, and the type of a command's words."""

from __future__ import annotations

from typing import TypeAlias

from penstock.errors import PenstockError

Word: TypeAlias = str | bytes | int


class Refused(PenstockError):
    """The server or the dashboard refuses a command. The text is for the user."""
