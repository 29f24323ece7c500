"""The socket's side of a session, as the session sees it."""

from __future__ import annotations

from typing import Protocol


class Link(Protocol):
    """What a session asks of its connection."""

    def write(self, data: bytes) -> None:
        """Send, sooner or later."""

    def close(self) -> None:
        """Close once everything is sent."""

    def abort(self) -> None:
        """Close at once."""

    def go_on(self) -> None:
        """Feed the session what it had to leave unread."""

    def take_turn(self) -> None:
        """Go on after the others had their turn."""

    def unsent_bytes(self) -> int:
        """How much the client has not taken yet."""

    def kept_bytes(self) -> tuple[int, int]:
        """How much input is kept that makes no command yet, and the room that it takes."""
