"""The state that all sessions of one server share: engine, clients, counters, settings in force."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from penstock.engine.execute import Engine
from penstock.engine.table import Command
from penstock.server.acl.users import Users
from penstock.server.disk_failure import DiskFailure
from penstock.server.net.backlog import Backlog
from penstock.server.net.client_memory import ClientMemory
from penstock.server.net.output_limits import OutputLimits
from penstock.server.net.receiver import Inbox
from penstock.server.net.strangers import Strangers
from penstock.server.replication.replication import Replication
from penstock.server.session.pause import Pause
from penstock.server.stats.monitors import Monitors
from penstock.server.stats.rates import Rates
from penstock.server.stats.slow_log import SlowLog
from penstock.server.stats.startup import Startup
from penstock.server.stats.tally import Tallies
from penstock.server.turn import Turn
from penstock.wire.parser import WireLimits

if TYPE_CHECKING:
    from penstock.persist.recovery import Progress
    from penstock.server.config.settings import Config
    from penstock.server.durability import Durability
    from penstock.server.lifecycle import Lifecycle
    from penstock.server.net.listener import Door
    from penstock.server.net.tls import Tls
    from penstock.server.session.session import Session

NEVER_SLOW = 2**62
QUERY_BYTES_MAX = 1 << 30
MAX_CLIENTS = 10_000
HZ = 10


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Do not make the call."""


class Loop(Protocol):
    """The part of an event loop that a server uses."""

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Call at the end of this iteration."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call after this many seconds."""


class Server:
    """The shared half of every session. Each attribute has one owner, which sets it.

    Fixed parts      engine, tallies, turn, backlog, inbox, loop, slow_log, monitors, pause, rates, startup,
                     disk_failure, replication
    Set by App       config, door, lifecycle, durability, tls; None where a test or an embedded server has
                     none, and without tls-port
    Set by loading   loading: its progress, None when it is done
    Clients          sessions, next_id, strangers, client_memory, users
    In force         slow_us, wire_limits, output_limits, query_bytes_max, hz, max_clients,
                     max_memory, debug_allowed ("no", "yes" or "local"); set by config/apply.py
    active_expire    set by DEBUG SET-ACTIVE-EXPIRE
    awaits_replicas  replies to commands on keys wait for replicas (min-replicas-ack)
    state            the bits of session/states.py
    Counters         errors, bytes_in, bytes_out
    """

    __slots__ = (
        "active_expire",
        "awaits_replicas",
        "backlog",
        "bytes_in",
        "bytes_out",
        "client_memory",
        "config",
        "debug_allowed",
        "disk_failure",
        "door",
        "durability",
        "engine",
        "errors",
        "hz",
        "inbox",
        "lifecycle",
        "loading",
        "loop",
        "max_clients",
        "max_memory",
        "monitors",
        "next_id",
        "output_limits",
        "pause",
        "query_bytes_max",
        "rates",
        "replication",
        "sessions",
        "slow_log",
        "slow_us",
        "startup",
        "state",
        "strangers",
        "tallies",
        "tls",
        "turn",
        "users",
        "wire_limits",
    )

    def __init__(self, engine: Engine, rows: Iterable[Command], loop: Loop) -> None:
        self.engine = engine
        self.loop = loop
        self.turn = Turn(loop.call_soon)
        self.backlog = Backlog(loop.call_soon)
        self.inbox = Inbox()
        self.tallies = Tallies(rows, engine.context.compat)
        self.slow_log = SlowLog()
        engine.context.instant.advance()
        self.startup = Startup(engine.context.instant.us, self.steady_ms())
        self.config: Config | None = None
        self.door: Door | None = None
        self.lifecycle: Lifecycle | None = None
        self.durability: Durability | None = None
        self.tls: Tls | None = None
        self.loading: Progress | None = None
        self.monitors = Monitors()
        self.pause = Pause(self)
        self.rates = Rates(self)
        self.disk_failure = DiskFailure(self)
        self.replication = Replication(self)
        self.wire_limits = WireLimits()
        self.output_limits = OutputLimits()
        self.sessions: dict[int, Session] = {}
        self.strangers = Strangers(self)
        self.client_memory = ClientMemory(self)
        self.users = Users(self, (tally.command for tally in self.tallies.by_name.values()))
        self.next_id = 1
        self.state = 0
        self.slow_us = NEVER_SLOW
        self.query_bytes_max = QUERY_BYTES_MAX
        self.hz = HZ
        self.max_clients = MAX_CLIENTS
        self.max_memory = 0
        self.debug_allowed = "no"
        self.active_expire = True
        self.awaits_replicas = False
        self.errors: dict[str, int] = {}  # error replies by code
        self.bytes_in = 0
        self.bytes_out = 0

    def steady_ms(self) -> int:
        """The monotonic time that all intervals are measured by."""
        return self.engine.context.instant.steady_us() // 1000

    def count_error(self, wire_text: str) -> None:
        """Count an error reply under its code."""
        code = wire_text.split(" ", 1)[0]
        self.errors[code] = self.errors.get(code, 0) + 1
