"""The periodic work of a server, `hz` times a second: expiry, retention, memory, clients, rates, durability.

Deleted data is freed from here as well (core/garbage.py): for a millisecond at a time, with a pause of a
millisecond in which clients are served.
"""

from __future__ import annotations

from penstock.metrics.histogram import Histogram
from penstock.server.config.settings import Config
from penstock.server.retention import Retention
from penstock.server.server import Server, Timer
from penstock.server.session.states import (
    BLOCKED,
    CLOSING,
    MONITOR,
    NO_REPLICAS,
    OUT_OF_MEMORY,
    PAUSED_ALL,
    PAUSED_WRITES,
    REPLICA,
    SUBSCRIBED,
)
from penstock.server.stats.memory_guard import check_memory, give_memory_back

EXPIRE_AT_ONCE = 200  # keys per database and run; deleting them takes about a millisecond
MORE_SECONDS = 0.001  # between two runs while more keys are due, or more memory is to be freed
FREE_US_MAX = 1000  # for one run
_CLIENTS_EVERY_MS = 1000
_GIVE_BACK_EVERY_MS = 10_000
# Clients that wait are not idle.
_WAITS = BLOCKED | SUBSCRIBED | MONITOR | REPLICA | CLOSING
# The primary removes the expired keys of a replica, and no change may be made that replicas do not get.
_NO_EXPIRY = PAUSED_WRITES | PAUSED_ALL | NO_REPLICAS


class Cron:
    """Runs on timers of the server's loop: start, stop. `delays`: how late the loop was, for metrics."""

    def __init__(self, server: Server, config: Config) -> None:
        self._server = server
        self._config = config
        self._timer: Timer | None = None
        self._freeing: Timer | None = None
        self._retention = Retention(server, config)
        self._due_us: int | None = None
        self.delays = Histogram()
        self._clients_ms = 0
        self._given_back_ms = 0

    def start(self) -> None:
        """Run now and periodically."""
        self._server.engine.context.garbage.wake = self._free_soon
        self._tick()

    def stop(self) -> None:
        """Stop the timers, and free what was deleted."""
        garbage = self._server.engine.context.garbage
        garbage.wake = None
        if self._freeing is not None:
            self._freeing.cancel()
            self._freeing = None
        garbage.free_all()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _free_soon(self) -> None:
        self._freeing = self._server.loop.call_later(MORE_SECONDS, self._free)

    def _free(self) -> None:
        """Free deleted data for a millisecond."""
        instant = self._server.engine.context.instant
        until_us = instant.steady_us() + FREE_US_MAX
        while self._server.engine.context.garbage.free_some():
            if instant.steady_us() >= until_us:
                self._free_soon()
                return
        self._freeing = None

    def _tick(self) -> None:
        more = False
        instant = self._server.engine.context.instant
        if self._due_us is not None:
            self.delays.note((instant.steady_us() - self._due_us) / 1_000_000)
        try:
            more = self.work()
        except Exception:
            if self._server.engine.unfinished and self._server.lifecycle is not None:
                self._server.lifecycle.report_broken("the periodic work")
            raise
        finally:  # after an error, the next run may succeed
            delay = MORE_SECONDS if more else 1 / self._server.hz
            self._due_us = instant.steady_us() + int(delay * 1_000_000)
            self._timer = self._server.loop.call_later(delay, self._tick)

    def work(self) -> bool:
        """Run once; True if there is more to remove than one run may."""
        server = self._server
        context = server.engine.context
        context.instant.advance()
        more = False
        may_expire = server.active_expire and server.replication.is_primary
        if may_expire and not server.state & _NO_EXPIRY:
            # Clients are served between two runs, and do not wait for all expired keys.
            more = server.engine.expire_due(EXPIRE_AT_ONCE) >= EXPIRE_AT_ONCE
        now_ms = server.steady_ms()
        if server.replication.is_primary and not server.state & _NO_EXPIRY:
            more = self._retention.work(now_ms) or more
        self._watch_memory(now_ms)
        server.client_memory.look()
        server.rates.sample()
        if server.durability is not None:
            server.durability.tick()
            server.replication.tick()
        if now_ms - self._clients_ms >= _CLIENTS_EVERY_MS:
            self._clients_ms = now_ms
            self._look_at_clients(now_ms)
            if server.tls is not None:
                server.tls.look(context.now_ms() // 1000)
        return more

    def _watch_memory(self, now_ms: int) -> None:
        server = self._server
        if not server.max_memory and not server.state & OUT_OF_MEMORY:
            return
        check_memory(server)
        if server.state & OUT_OF_MEMORY and now_ms - self._given_back_ms >= _GIVE_BACK_EVERY_MS:
            self._given_back_ms = now_ms
            give_memory_back()
            check_memory(server)

    def _look_at_clients(self, now_ms: int) -> None:
        """Disconnect clients that are over their soft output limit for too long, or idle for too long."""
        idle_ms_max = self._config.value("timeout") * 1000
        for session in list(self._server.sessions.values()):
            if session.slow:
                session.check_output_limit()
            if (
                idle_ms_max
                and not session.state & _WAITS
                and now_ms - session.active_ms > idle_ms_max
            ):
                session.close()
