"""Waits for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS_MAX = 60.0


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)
