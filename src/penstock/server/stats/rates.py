"""Rates: how many commands and bytes went by in a second, lately.

Sixteen samples a tenth of a second apart, as in Redis; the rate is the mean over them. Counters are kept
where they are counted (tallies, server.bytes_in, server.bytes_out); here is what must be sampled.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.server.server import Server

SAMPLES = 16
SAMPLE_US_MIN = 100_000


class Rates:
    """Samples the counters of a server and keeps its facts up to date."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._samples: deque[tuple[int, int, int, int]] = deque(maxlen=SAMPLES)

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
            self._samples.clear()  # CONFIG RESETSTAT
        self._samples.append(last)
        first = self._samples[0]
        seconds = max(last[0] - first[0], 1) / 1_000_000
        facts = server.facts
        facts.ops_per_sec = round((last[1] - first[1]) / seconds)
        facts.in_kbps = (last[2] - first[2]) / 1024 / seconds
        facts.out_kbps = (last[3] - first[3]) / 1024 / seconds


def commands_run(server: Server) -> int:
    """How many commands have run, of all kinds."""
    return sum(tally.calls for tally in server.tallies.by_name.values())
