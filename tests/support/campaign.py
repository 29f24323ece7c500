"""The number of cases in a campaign of random tests: all in `make soak`, a tenth in `make test`."""

from __future__ import annotations

import os
import random

SOAK = os.environ.get("PENSTOCK_SOAK") == "1"


def cases(full: int) -> int:
    """The number of cases for this run, given the full number; at least one."""
    return full if SOAK else max(1, full // 10)


def seed() -> int:
    """The seed of a random test: PENSTOCK_SEED, to repeat a failure, or a random number."""
    return int(os.environ.get("PENSTOCK_SEED", random.randrange(2**32)))
