"""Lets the event loop serve clients while a long page is collected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PART_US_MAX = 1000


class Pace:
    """`await pace.rest()` between two small steps: clients are served once a part took a millisecond."""

    __slots__ = ("_began_us", "_steady_us", "parts")

    def __init__(self, steady_us: Callable[[], int]) -> None:
        self._steady_us = steady_us
        self._began_us = steady_us()
        self.parts = 1

    async def rest(self) -> None:
        """Serve clients if this part has taken long enough."""
        if self._steady_us() - self._began_us >= PART_US_MAX:
            await asyncio.sleep(0)
            self._began_us = self._steady_us()
            self.parts += 1
