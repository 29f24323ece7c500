"""The promises under kills: workers, children and servers die and stall while thousands of entries run.

In `make test`, 10,000 entries on one backend that the seed chooses; in `make soak`, 200,000 on all four.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.campaign import SOAK, seed
from tests.support.work.backends import NAMES, PROGRAMS
from tests.support.work.campaign import Campaign

START = seed()
CHOSEN = NAMES if SOAK else (NAMES[START % len(NAMES)],)
ENTRIES = 200_000 if SOAK else 10_000


@pytest.mark.parametrize("name", CHOSEN)
def test_no_promise_is_broken_by_kills(name: str, tmp_path: Path) -> None:
    if name in PROGRAMS:
        PROGRAMS[name].need()
    campaign = Campaign(name, tmp_path, ENTRIES, random.Random(START))
    campaign.run()
    try:
        print(campaign.check())  # noqa: T201 - shown with the seed if the test fails
    finally:
        campaign.close()
