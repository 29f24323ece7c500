"""What all sessions of one server share: the engine, the counters, the clients, the settings in force."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from penstock.engine.execute import Engine
from penstock.engine.table import Command
from penstock.server.net.backlog import Backlog
from penstock.server.net.client_memory import ClientMemory
from penstock.server.net.output_limits import OutputLimits
from penstock.server.net.strangers import Strangers
from penstock.server.session.pause import Pause
from penstock.server.stats.facts import Facts
from penstock.server.stats.monitors import Monitors
from penstock.server.stats.slow_log import SlowLog
from penstock.server.stats.tally import Tallies
from penstock.server.turn import Turn
from penstock.wire.parser import WireLimits

if TYPE_CHECKING:
    from penstock.server.config.settings import Config
    from penstock.server.net.listener import Door
    from penstock.server.session.session import Session

NEVER_SLOW = 2**62
QUERY_BYTES_MAX = 1 << 30  # a client may keep us waiting for the rest of a command as long as this


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

    Parts: engine, tallies, turn, backlog, loop, slow_log, monitors, pause, facts, config, door. Clients:
    sessions, next_id, strangers, client_memory. In force: state, slow_us, password, wire_limits,
    output_limits, query_bytes_max. Counted: errors, bytes_in, bytes_out. `on_broken` is called with the name
    of a command that failed while it may have changed data.
    """

    __slots__ = (
        "backlog",
        "bytes_in",
        "bytes_out",
        "client_memory",
        "config",
        "door",
        "engine",
        "errors",
        "facts",
        "loop",
        "monitors",
        "next_id",
        "on_broken",
        "output_limits",
        "password",
        "pause",
        "query_bytes_max",
        "sessions",
        "slow_log",
        "slow_us",
        "state",
        "strangers",
        "tallies",
        "turn",
        "wire_limits",
    )

    def __init__(self, engine: Engine, rows: Iterable[Command], loop: Loop) -> None:
        self.engine = engine
        self.loop = loop
        self.turn = Turn(loop.call_soon)
        self.backlog = Backlog(loop.call_soon)
        knows = engine.context.compat.knows
        self.tallies = Tallies(row for row in rows if knows(row.since))
        self.slow_log = SlowLog()
        engine.context.instant.advance()
        self.facts = Facts(engine.context.instant.us, self.steady_ms())
        self.config: Config | None = None
        self.door: Door | None = None
        self.monitors = Monitors()
        self.pause = Pause(self)
        self.wire_limits = WireLimits()
        self.output_limits = OutputLimits()
        self.sessions: dict[int, Session] = {}
        self.strangers = Strangers(self)
        self.client_memory = ClientMemory(self)
        self.next_id = 1
        self.state = 0
        self.slow_us = NEVER_SLOW
        self.password: bytes | None = None
        self.query_bytes_max = QUERY_BYTES_MAX
        self.on_broken: Callable[[str], None] | None = None
        self.errors: dict[str, int] = {}  # refusals by code
        self.bytes_in = 0
        self.bytes_out = 0

    def steady_ms(self) -> int:
        """The time that every interval is measured by: it never steps back."""
        return self.engine.context.instant.steady_us() // 1000

    def count_error(self, wire_text: str) -> None:
        """Count a refusal under its code."""
        code = wire_text.split(" ", 1)[0]
        self.errors[code] = self.errors.get(code, 0) + 1
