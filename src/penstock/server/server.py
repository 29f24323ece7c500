"""What all sessions of one server share: the engine, the counters, the clients, the settings in force."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from penstock.engine.execute import Engine
from penstock.engine.table import Command
from penstock.server.tally import Tallies
from penstock.server.turn import Turn
from penstock.wire.parser import WireLimits

if TYPE_CHECKING:
    from penstock.server.session import Session

# Why no command may take the short way, see Session.run.
MONITORED = 1
PAUSED_WRITES = 2
PAUSED_ALL = 4
OUT_OF_MEMORY = 8

NEVER_SLOW = 2**62


class Timer(Protocol):
    """A call that was put off."""

    def cancel(self) -> None:
        """Let it not happen."""


class Loop(Protocol):
    """What a server needs of an event loop."""

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Call at the end of this round."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call in so many seconds."""


class Server:
    """The shared half of every session.

    Parts: engine, tallies, turn, loop, wire_limits. Clients: sessions, next_id. In force: state, slow_us,
    password.
    """

    __slots__ = (
        "engine",
        "errors",
        "loop",
        "next_id",
        "output_bytes_max",
        "password",
        "sessions",
        "slow_us",
        "state",
        "tallies",
        "turn",
        "wire_limits",
    )

    def __init__(self, engine: Engine, rows: Iterable[Command], loop: Loop) -> None:
        self.engine = engine
        self.loop = loop
        self.turn = Turn(loop.call_soon)
        self.tallies = Tallies(rows)
        self.wire_limits = WireLimits()
        self.sessions: dict[int, Session] = {}
        self.next_id = 1
        self.state = 0
        self.slow_us = NEVER_SLOW
        self.password: bytes | None = None
        self.output_bytes_max = 1 << 30
        self.errors: dict[str, int] = {}  # refusals by code

    def count_error(self, wire_text: str) -> None:
        """Count a refusal under its code."""
        code = wire_text.split(" ", 1)[0]
        self.errors[code] = self.errors.get(code, 0) + 1
