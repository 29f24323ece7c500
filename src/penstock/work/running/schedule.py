"""Sends the entries of `@app.every`: the next one waits on the server as a delayed entry.

Every worker sends it under a dedup name that contains its time, so it exists once. It survives the workers:
if none runs at that time, the next one that starts runs it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from penstock.errors import ConfigError, PenstockError
from penstock.work.feed import log
from penstock.work.handler import Handler

LOOK_SECONDS_MAX = 30.0  # the date may be changed at any time
FAILED_SECONDS = 1.0


class Schedule:
    """A cron expression in a time zone."""

    def __init__(self, cron: str, tz: str) -> None:
        """Raises: ConfigError."""
        try:
            self._zone = ZoneInfo(tz)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ConfigError(f"tz: the name of a time zone, not {tz!r} ({error})") from None
        self._cron = cron
        try:
            next(self._times(datetime.now(UTC)))
        except (CronSimError, StopIteration) as error:
            raise ConfigError(f"{cron!r} is not a cron expression: {error}") from None

    def _times(self, after: datetime) -> Iterator[datetime]:
        return CronSim(self._cron, after.astimezone(self._zone))

    def next_after(self, seconds: float) -> float:
        """The next time after a time, both in seconds since 1970."""
        return next(self._times(datetime.fromtimestamp(seconds, UTC))).timestamp()


def send_next(handler: Handler[Any], schedule: Schedule, now: float) -> float:
    """Send the next entry of a schedule, unless it was sent; return its time. Raises: PenstockError."""
    due = schedule.next_after(now)
    name = datetime.fromtimestamp(due, UTC).isoformat()
    handler.send(name, delay=max(0.001, due - now), dedup=name)
    return due


def keep_sending(
    handler: Handler[Any], schedule: Schedule, clock: Callable[[], float], stop: threading.Event
) -> None:
    """Send entries until the worker stops; the body of a thread."""
    while not stop.is_set():
        try:
            due = send_next(handler, schedule, clock())
        except PenstockError as error:
            log.error("stream=%s cannot send: %s", handler.stream, error)
            stop.wait(FAILED_SECONDS)
            continue
        while clock() < due and not stop.is_set():
            stop.wait(min(LOOK_SECONDS_MAX, max(0.001, due - clock())))
