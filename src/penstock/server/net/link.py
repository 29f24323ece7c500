"""What a session needs from its connection."""

from __future__ import annotations

from typing import Protocol


class Link(Protocol):
    """The socket's side of a session (connection.Connection)."""

    def write(self, data: bytes) -> None:
        """Send bytes; they may be buffered."""

    def close(self) -> None:
        """Close when everything is sent."""

    def abort(self) -> None:
        """Close at once."""

    def resume(self) -> None:
        """Run the commands that the session had to leave."""

    def take_turn(self) -> None:
        """Continue after the other connections have had their turn."""

    def unsent_bytes(self) -> int:
        """How many bytes the socket has not sent yet."""
