"""Notifications to systemd (`supervised systemd`, Type=notify), in its own protocol.

    READY=1       the data is loaded, clients are served
    STOPPING=1    the server stops, and saves
    WATCHDOG=1    the event loop runs; sent twice in the time that WatchdogSec allows

Each is a datagram to the Unix socket that NOTIFY_SOCKET names. The watchdog's messages come from a timer of
the event loop: if the loop hangs, they stop, and systemd restarts the server.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.server.log import LOG

if TYPE_CHECKING:
    from penstock.server.config.settings import Config
    from penstock.server.server import Loop, Timer

SYSTEMD, AUTO, NO = "systemd", "auto", "no"


def supervisor_name(config: Config | None, environment: Mapping[str, str] = os.environ) -> str:
    """`systemd` if the settings ask for it and systemd has started this process, otherwise `no`."""
    wanted = NO if config is None else config.value("supervised")
    return SYSTEMD if wanted in (SYSTEMD, AUTO) and environment.get("NOTIFY_SOCKET") else NO


class Notifier:
    """Tells systemd about this server: ready, stopping. Without systemd it does nothing."""

    def __init__(self, config: Config, environment: Mapping[str, str] = os.environ) -> None:
        self._address = ""
        self._timer: Timer | None = None
        self._watchdog_s = 0.0
        if supervisor_name(config, environment) == SYSTEMD:
            self._address = environment["NOTIFY_SOCKET"]
            self._watchdog_s = _watchdog_seconds(environment)
        elif config.value("supervised") == SYSTEMD:
            LOG.warning("supervised systemd: NOTIFY_SOCKET is not set, so nobody is notified")

    def watch(self, loop: Loop) -> None:
        """Send signs of life from now on, also while the data is loaded."""
        if not self._watchdog_s or not self._address:
            return
        self._notify("WATCHDOG=1")
        self._timer = loop.call_later(self._watchdog_s / 2, lambda: self.watch(loop))

    def ready(self, status: str) -> None:
        """Clients are served."""
        self._notify(f"READY=1\nSTATUS={status}")

    def stopping(self) -> None:
        """The server stops. systemd no longer expects signs of life."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._notify("STOPPING=1")

    def _notify(self, text: str) -> None:
        if not self._address:
            return
        name = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
            sending.setblocking(False)  # the event loop must not wait for systemd
            try:
                sending.sendto(text.encode(), name)
            except OSError as error:
                LOG.warning("cannot notify systemd: %s", error.strerror or error)


def _watchdog_seconds(environment: Mapping[str, str]) -> float:
    """The time without a sign of life after which systemd acts; 0 for never."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    us = environment.get("WATCHDOG_USEC", "")
    return int(us) / 1_000_000 if us.isascii() and us.isdigit() else 0.0
