"""The end of a stream as it grows, at a cost that does not depend on how fast it grows.

Each step asks for the newest entries behind the last one seen, newest first and no more than can be
shown. What lies between is never fetched: it is counted, by the server's own counter, and reported as
skipped. So a stream that takes fifty thousand entries a second costs what one takes that gets a hundred.
"""

from __future__ import annotations

from collections import deque

from penstock.core.stream_id import StreamID
from penstock.web.asking import Server
from penstock.web.replies import Entry, entries, identifier, mapping, number_or_none
from penstock.web.stream_page import count_for

SHOWN_MAX = 100


class Tail:
    """What a page shows of a stream's end, newest first."""

    def __init__(self, server: Server, name: bytes, mean_bytes: float = 0) -> None:
        self._server = server
        self._name = name
        self._mean_bytes = mean_bytes
        self._last: StreamID | None = None
        self._added: int | None = None
        self.shown: deque[Entry] = deque(maxlen=SHOWN_MAX)
        self.skipped = 0
        self.paused = False

    async def step(self) -> int:
        """Take in what came since the last step; how many entries of it are shown."""
        about = mapping(await self._server.ask("XINFO", "STREAM", self._name))
        newest = identifier(about["last-generated-id"])
        added = number_or_none(about.get("entries-added"))
        if self._last is not None and newest < self._last:
            self._last = None  # the stream was made anew
            self.shown.clear()
        if self._last is None:
            self._last, self._added = newest, added
            await self._fill(newest)
            return len(self.shown)
        if newest == self._last:
            return 0
        came = await self._between(self._last, newest)
        if added is not None and self._added is not None:
            self.skipped += max(0, added - self._added - len(came))
        self._last, self._added = newest, added
        self.shown.extendleft(reversed(came))
        return len(came)

    async def _fill(self, newest: StreamID) -> None:
        count = count_for(self._mean_bytes, SHOWN_MAX)
        reply = await self._server.ask("XREVRANGE", self._name, newest.text, "-", "COUNT", count)
        self.shown.extend(entries(reply))

    async def _between(self, after: StreamID, end: StreamID) -> list[Entry]:
        """The newest entries above `after` and up to `end`, newest first."""
        count = count_for(self._mean_bytes, SHOWN_MAX)
        start = after.next()
        reply = await self._server.ask(
            "XREVRANGE", self._name, end.text, start.text, "COUNT", count
        )
        return entries(reply)
