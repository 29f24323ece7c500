"""Follows the end of a stream, at a cost that does not depend on its rate.

Each step reads the newest entries after the last one seen, newest first, and at most as many as can be shown.
Entries in between are not read. They are counted with the server's counter and reported as skipped. So a
stream with fifty thousand entries per second costs as much as one with a hundred.

Trimmed entries disappear. A stream that was deleted and created again starts over. It is recognized by a
counter or a last id that went down, which cannot happen otherwise. Before Redis 7.0, which has no counter,
only the last id is checked.
"""

from __future__ import annotations

from collections import deque

from penstock.client.replies import Entry, entries
from penstock.client.xinfo import stream_info
from penstock.core.stream_id import StreamID
from penstock.web.model.stream_page import count_for, mean_bytes
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient

SHOWN_MAX = 100


class Tail:
    """The newest entries of a stream, newest first."""

    def __init__(self, server: ServerClient, name: bytes) -> None:
        self._server = server
        self._name = name
        self._last: StreamID | None = None
        self._added: int | None = None
        self.shown: deque[Entry] = deque(maxlen=SHOWN_MAX)
        self.skipped = 0
        self.paused = False

    async def step(self) -> bool:
        """Update the entries. Returns whether they changed."""
        try:
            info = stream_info(await self._server.ask("XINFO", "STREAM", self._name))
        except Refused:
            self._forget()  # deleted, or not a stream any more
            raise
        newest, added = info.last_id, info.entries_added
        if self._is_another(newest, added):
            self._forget()
        if self._last is None:
            self._last, self._added = newest, added
            await self._fill(newest)
            return True
        dropped = self._drop_before(info.first)
        if newest == self._last:
            return dropped
        arrived = await self._between(self._last, newest)
        if added is not None and self._added is not None:
            self.skipped += max(0, added - self._added - len(arrived))
        self._last, self._added = newest, added
        self.shown.extendleft(reversed(arrived))
        return dropped or bool(arrived)

    def _is_another(self, newest: StreamID, added: int | None) -> bool:
        if self._last is None or newest < self._last:
            return self._last is not None
        return added is not None and self._added is not None and added < self._added

    def _forget(self) -> None:
        self._last = self._added = None
        self.shown.clear()
        self.skipped = 0

    def _drop_before(self, first: Entry | None) -> bool:
        """Forget entries before the first one of the stream. Returns whether there were any."""
        had = len(self.shown)
        while self.shown and (first is None or self.shown[-1].id < first.id):
            self.shown.pop()
        return len(self.shown) < had

    async def _fill(self, newest: StreamID) -> None:
        count = await self._count()
        reply = await self._server.ask("XREVRANGE", self._name, newest.text, "-", "COUNT", count)
        self.shown.extend(entries(reply))

    async def _between(self, after: StreamID, end: StreamID) -> list[Entry]:
        """The newest entries above `after` and up to `end`, newest first."""
        count = await self._count()
        start = after.next()
        reply = await self._server.ask(
            "XREVRANGE", self._name, end.text, start.text, "COUNT", count
        )
        return entries(reply)

    async def _count(self) -> int:
        """How many entries to read. Computed each time, because the size of entries may change."""
        return count_for(await mean_bytes(self._server, self._name), SHOWN_MAX)
