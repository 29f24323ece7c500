"""Trims streams and removes idle consumers by the settings, from the periodic work of the server.

A pass over all streams begins every second. It gets a millisecond at a time. While it finds something to
remove, the next millisecond follows soon, otherwise at the next run of the periodic work.
"""

from __future__ import annotations

from penstock.engine.retention.sweep import Sweep
from penstock.server.config.settings import Config
from penstock.server.server import Server

STEP_US_MAX = 1000
PASS_EVERY_MS = 1000


class Retention:
    """The settings in force, and the pass that runs."""

    def __init__(self, server: Server, config: Config) -> None:
        self._server = server
        self._config = config
        self._sweep = Sweep(server.engine)
        self._begun_ms = -PASS_EVERY_MS

    def work(self, now_ms: int) -> bool:
        """Work for a millisecond; True if there is more to remove."""
        sweep = self._sweep
        sweep.policies = self._config.value("stream-retention")
        sweep.consumer_idle_ms = self._config.value("consumer-idle-timeout")
        if not sweep.policies and not sweep.consumer_idle_ms:
            return False
        if sweep.is_over:
            if now_ms - self._begun_ms < PASS_EVERY_MS:
                return False
            self._begun_ms = now_ms
            sweep.begin()
        instant = self._server.engine.context.instant
        until_us = instant.steady_us() + STEP_US_MAX
        removed = False
        while not sweep.is_over and instant.steady_us() < until_us:
            removed = sweep.step() or removed
        return removed and not sweep.is_over
