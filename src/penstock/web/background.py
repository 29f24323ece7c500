"""Background work that must not stop: an unexpected error is logged, and the work starts again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

RESTART_SECONDS = 5.0
Work = Callable[[], Awaitable[None]]

_LOG = logging.getLogger("penstock.web")


async def keep_running(what: str, run: Work) -> None:
    """Run some work, again and again if it fails, until it ends or is cancelled."""
    while True:
        try:
            await run()
        except Exception:  # noqa: BLE001 - the dashboard goes on without it
            _LOG.exception("%s failed and starts again in %g s", what, RESTART_SECONDS)
            await asyncio.sleep(RESTART_SECONDS)
        else:
            return
