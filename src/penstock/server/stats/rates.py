"""Commands and bytes per second.

A rate is the mean over sixteen samples, a tenth of a second apart, as in Redis. The counters live where they
are counted (tallies, server.bytes_in, server.bytes_out).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.server.server import Server

SAMPLES = 16
SAMPLE_US_MIN = 100_000


class Rates:
    """The rates of a server: `ops_per_sec`, `in_kbps`, `out_kbps`. The cron calls `sample`."""

    __slots__ = ("_samples", "_server", "in_kbps", "ops_per_sec", "out_kbps")

    def __init__(self, server: Server) -> None:
        self._server = server
        self._samples: deque[tuple[int, int, int, int]] = deque(maxlen=SAMPLES)
        self.ops_per_sec = 0
        self.in_kbps = 0.0
        self.out_kbps = 0.0

    def sample(self) -> None:
        """Take a sample, if the last one is old enough."""
        server = self._server
        now_us = server.engine.context.instant.steady_us()
        if self._samples and now_us - self._samples[-1][0] < SAMPLE_US_MIN:
            return
        last = (now_us, commands_run(server), server.bytes_in, server.bytes_out)
        if self._samples and any(
            now < then for now, then in zip(last, self._samples[-1], strict=True)
        ):
            self._samples.clear()  # after CONFIG RESETSTAT
        self._samples.append(last)
        first = self._samples[0]
        seconds = max(last[0] - first[0], 1) / 1_000_000
        self.ops_per_sec = round((last[1] - first[1]) / seconds)
        self.in_kbps = (last[2] - first[2]) / 1024 / seconds
        self.out_kbps = (last[3] - first[3]) / 1024 / seconds


def commands_run(server: Server) -> int:
    """How many commands have run in all."""
    return sum(tally.calls for tally in server.tallies.by_name.values())
