"""How long a campaign of random cases is: all of it in `make soak`, a tenth in `make test`."""

from __future__ import annotations

import os
import random

SOAK = os.environ.get("PENSTOCK_SOAK") == "1"


def cases(full: int) -> int:
    """Scale a campaign's full number of cases to this run; never below one."""
    return full if SOAK else max(1, full // 10)


def seed() -> int:
    """What the dice of a random test begin with: PENSTOCK_SEED, to play a failure again, or anything."""
    return int(os.environ.get("PENSTOCK_SEED", random.randrange(2**32)))
