"""Connections that have used up their time slice and continue in the next turn.

    turn 1   A reads, runs a slice, stops     B reads, runs a slice, stops     C sends PING
             end of the turn: replies to A, B and C
    turn 2   A runs a slice    B runs a slice    C sends PING    ...

Without this, one client with a deep pipeline would block all others until it is done. A client's commands and
replies keep their order. The changes and replies of a slice belong to the turn that it runs in (turn.py).

The first session with a reply schedules the end of the turn. It therefore runs before the slices that were
postponed here, and no reply waits for the next slice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.server.net.link import Link


class Backlog:
    """The connections that wait for their next turn, in the order in which they stopped: add, run."""

    __slots__ = ("_call_soon", "_links")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._links: list[Link] = []

    def add(self, link: Link) -> None:
        """Let a connection continue in the next turn. A connection must not be added twice."""
        if not self._links:
            self._call_soon(self.run)
        self._links.append(link)

    def run(self) -> None:
        """Give each connection one slice."""
        links, self._links = self._links, []
        for link in links:
            link.take_turn()
