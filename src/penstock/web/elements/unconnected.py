"""Pages that were fetched without a websocket: deleted soon, so that they keep no memory.

NiceGUI keeps every page for a minute until its browser connects. Programs that only fetch pages, such as
health checks and scanners, never do, and a page takes some hundred kilobytes. A browser whose page was
deleted before it connected loads the page again.
"""

from __future__ import annotations

import asyncio
import time

from nicegui import Client

LOOK_SECONDS = 1.0
UNCONNECTED_SECONDS_MAX = 15.0  # a slow browser needs some seconds for its scripts
UNCONNECTED_MAX = 50
UNCONNECTED_SECONDS_MIN = 3.0  # also if there are more


async def delete_unconnected() -> None:
    """Look for such pages until cancelled."""
    while True:
        Client.prune_instances(client_age_threshold=allowed_age(unconnected_ages()))
        await asyncio.sleep(LOOK_SECONDS)


def unconnected_ages() -> list[float]:
    """How long each page without a websocket is there, in seconds."""
    now = time.time()
    return [now - one.created for one in Client.instances.values() if not one.has_socket_connection]


def allowed_age(ages: list[float]) -> float:
    """The age from which on a page without a websocket is deleted: lower if there are many."""
    if len(ages) <= UNCONNECTED_MAX:
        return UNCONNECTED_SECONDS_MAX
    oldest_kept = sorted(ages)[UNCONNECTED_MAX]
    return min(UNCONNECTED_SECONDS_MAX, max(UNCONNECTED_SECONDS_MIN, oldest_kept))


def open_pages() -> tuple[int, int]:
    """The number of pages with a websocket, and of those without."""
    waiting = len(unconnected_ages())
    return len(Client.instances) - waiting, waiting
