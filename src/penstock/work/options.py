"""The options of a handler, checked when the handler is defined; rate limits."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from typing import TypedDict

from penstock.engine.commands.work.rows import COUNT_MAX, WINDOW_MS
from penstock.errors import ConfigError

SECONDS_MAX = WINDOW_MS / 1000
_JITTER = 0.25


@dataclass(frozen=True, slots=True)
class Rate:
    """At most this many entries per second in one worker process."""

    entries: float

    def __post_init__(self) -> None:
        if not self.entries > 0:
            raise ConfigError(f"rate: a number above 0, not {self.entries!r}")


def per_second(entries: float) -> Rate:
    """A rate limit for `rate=`."""
    return Rate(entries)


class Limiter:
    """Counts entries against a rate: a bucket that holds one second's worth. Lanes share it."""

    def __init__(self, rate: Rate, now: float) -> None:
        self._rate = rate.entries
        self._size = max(1.0, rate.entries)
        self._left = self._size
        self._at = now
        self._lock = threading.Lock()

    def reserve(self, wanted: int, now: float) -> int:
        """How many entries, up to `wanted`, may be taken now. They are counted."""
        with self._lock:
            self._left = min(self._size, self._left + max(0.0, now - self._at) * self._rate)
            self._at = now
            allowed = min(wanted, int(self._left))
            self._left -= allowed
            return allowed

    def give_back(self, entries: int) -> None:
        """These were reserved and not taken."""
        with self._lock:
            self._left = min(self._size, self._left + entries)

    def seconds_until_one(self) -> float:
        """How long until an entry may be taken."""
        with self._lock:
            return max(0.0, 1 - self._left) / self._rate


class GivenOptions(TypedDict, total=False):
    """The keywords of `@app.on`; Options has their defaults."""

    key: str | None
    partitions: int | None
    attempts: int
    backoff: tuple[float, float]
    lease: float
    concurrency: int | None
    processes: bool
    timeout: float | None
    batch: int | None
    wait: float
    rate: Rate | None


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one handler."""

    key: str | None = None
    partitions: int | None = None
    attempts: int = 8
    backoff: tuple[float, float] = (1, 300)
    lease: float = 30
    concurrency: int | None = None
    processes: bool = False
    timeout: float | None = None
    batch: int | None = None
    wait: float = 0
    rate: Rate | None = None

    def check(self, is_async: bool) -> None:
        """Raises: ConfigError."""
        first, longest = self.backoff
        _need(self.attempts >= 1, "attempts", "a number from 1", self.attempts)
        good = 0 <= first <= longest <= SECONDS_MAX
        _need(good, "backoff", f"(first, longest), both from 0 to {SECONDS_MAX:.0f}", self.backoff)
        good = 0.05 <= self.lease <= SECONDS_MAX
        _need(good, "lease", f"seconds from 0.05 to {SECONDS_MAX:.0f}", self.lease)
        good = self.concurrency is None or 1 <= self.concurrency <= COUNT_MAX
        _need(good, "concurrency", f"a number from 1 to {COUNT_MAX}", self.concurrency)
        good = self.batch is None or 1 <= self.batch <= COUNT_MAX
        _need(good, "batch", f"a number from 1 to {COUNT_MAX}", self.batch)
        _need(self.wait >= 0, "wait", "seconds from 0", self.wait)
        good = self.timeout is None or self.timeout > 0
        _need(good, "timeout", "seconds above 0", self.timeout)
        good = self.partitions is None or (self.key is not None and 1 <= self.partitions <= 1024)
        _need(good, "partitions", "a number from 1 to 1024, together with key=", self.partitions)
        if self.key is not None and self.batch is not None:
            raise ConfigError("key and batch cannot be combined")
        if self.processes and is_async:
            raise ConfigError("processes=True is for plain functions, not for async ones")
        if self.timeout is not None and not is_async and not self.processes:
            raise ConfigError(
                "timeout needs an async function or processes=True: a thread cannot be stopped"
            )

    def lease_ms(self) -> int:
        return round(self.lease * 1000)

    def backoff_seconds(self, attempt: int) -> float:
        """The pause after an attempt: it doubles, has a limit, and varies so that retries spread."""
        first, longest = self.backoff
        full: float = min(longest, first * 2 ** min(attempt - 1, 40))
        return full * (1 - _JITTER * random.random())


def _need(good: bool, name: str, allowed: str, found: object) -> None:
    if not good:
        raise ConfigError(f"{name}: {allowed}, not {found!r}")
