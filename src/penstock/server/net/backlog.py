"""Connections that have used up their slice, and go on in the next turn.

    turn 1   A reads, runs a slice, stops     B reads, runs a slice, stops     C says PING
             the end of the turn: replies to A, B and C
    turn 2   A runs a slice    B runs a slice    C says PING    ...

Without this, one client with a deep pipeline would keep all others waiting until it is done. The order of a
client's commands and replies stays. The end of a turn stays as well (turn.py): a slice is work of its turn,
and its effects and replies go with that turn's.

The end of a turn is scheduled by the first session that has something to say, so it runs before the slices
that were put off here: nobody's replies wait for the next slice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.server.net.link import Link


class Backlog:
    """The connections that wait for their next turn, in the order in which they stopped."""

    __slots__ = ("_call_soon", "_links")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._links: list[Link] = []

    def add(self, link: Link) -> None:
        """Let a connection go on in the next turn; each is here once at most."""
        if not self._links:
            self._call_soon(self.run)
        self._links.append(link)

    def run(self) -> None:
        """Give each of them one slice."""
        links, self._links = self._links, []
        for link in links:
            link.take_turn()
