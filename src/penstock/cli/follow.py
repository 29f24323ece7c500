"""Reads entries for `tail`: a range of one or more streams, or new entries of a group.

Both sources are read in pages. `read_or_none` returns an empty list if nothing has arrived yet, and None at
the end.

Entries of several streams are merged by id. A page holds up to PAGE entries of each stream. A stream whose
page is full may have more, so entries beyond the last id of a full page are not shown yet:

    a  1 2 3 |          full: there may be a 4
    b  1   3 | 7 9      7 and 9 are read again with the next page
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from penstock.cli.connect import BLOCK_MS, ServerConnection, Word
from penstock.cli.terminal.entries import StreamEntry, entries
from penstock.cli.terminal.moment import Ago, Edge, Moment
from penstock.cli.terminal.outcome import Failure, say
from penstock.client.replies import Reply, array, blob, parts
from penstock.client.xinfo import stream_info
from penstock.core import stream_id
from penstock.core.stream_id import StreamID
from penstock.human.show import harmless

PAGE = 100


class EntrySource(Protocol):
    """A source of entries."""

    def read_or_none(self, entries_max: int | None) -> list[StreamEntry] | None:
        """The next entries, after waiting for a while. A group never returns more than `entries_max`."""

    def acknowledge(self, shown: Sequence[StreamEntry]) -> None:
        """Called after the entries have been written out."""


class RangeSource:
    """Streams from an id on, with or without an end. Changes nothing on the server."""

    def __init__(
        self,
        server: ServerConnection,
        after: Mapping[bytes, StreamID],
        last: Mapping[bytes, StreamID],
    ) -> None:
        """`after`: the position in each stream. `last`: the last id to read, for streams with an end."""
        self._server = server
        self._after = dict(after)
        self._last = dict(last)
        self._waits_until_ms: int | None = None
        self._drop_finished()

    def wait_until(self, ms: int) -> None:
        """Stop when the server's clock has reached this time and all earlier entries are read."""
        self._waits_until_ms = ms

    def read_or_none(self, entries_max: int | None) -> list[StreamEntry] | None:
        if not self._after:
            return None
        block_ms = self._block_ms()
        waiting: list[Word] = ["BLOCK", block_ms] if block_ms else []
        words: list[Word] = ["XREAD", "COUNT", PAGE, *waiting, "STREAMS"]
        reply = self._server.ask(*words, *self._after, *map(str, self._after.values()))
        pages = _pages(reply)
        if not pages and not block_ms:
            return None
        return self._taken(pages)

    def acknowledge(self, shown: Sequence[StreamEntry]) -> None:
        """Nothing to do: nothing is delivered to a consumer."""

    def _block_ms(self) -> int:
        if self._waits_until_ms is not None:
            left_ms = self._waits_until_ms - self._server.now_ms()
            return max(0, min(BLOCK_MS, left_ms))
        return 0 if self._last else BLOCK_MS

    def _taken(self, pages: list[list[StreamEntry]]) -> list[StreamEntry]:
        full = [page[-1].id for page in pages if len(page) >= PAGE]
        horizon = min(full, default=stream_id.LARGEST)
        taken = [entry for page in pages for entry in page if entry.id <= horizon]
        shown = [entry for entry in taken if entry.id <= self._last_of(entry.stream)]
        for entry in taken:
            self._after[entry.stream] = entry.id
        self._drop_finished()
        return sorted(shown, key=lambda entry: entry.id)

    def _last_of(self, stream: bytes) -> StreamID:
        return self._last.get(stream, stream_id.LARGEST)

    def _drop_finished(self) -> None:
        for stream, last in self._last.items():
            if stream in self._after and self._after[stream] >= last:
                del self._after[stream]


class GroupSource:
    """Entries delivered to one consumer of a group. Entries stay pending until acknowledged."""

    def __init__(
        self, server: ServerConnection, streams: Sequence[bytes], group: bytes, consumer: bytes
    ):
        self._server = server
        self._streams = list(dict.fromkeys(streams))
        self._group = group
        self._consumer = consumer
        self.waits = True
        self.acknowledges = True

    def create(self, place: str) -> bool:
        """Create the group, and the streams, if missing. Returns False if a group existed already."""
        made = True
        for stream in self._streams:
            try:
                self._server.ask(
                    "XGROUP", "CREATE", stream, self._group, place, "MKSTREAM", about=stream
                )
            except Failure as failure:
                if "BUSYGROUP" not in failure.message:
                    raise
                made = False
        return made

    def read_or_none(self, entries_max: int | None) -> list[StreamEntry] | None:
        count = PAGE if entries_max is None else min(PAGE, entries_max)
        waiting: list[Word] = ["BLOCK", BLOCK_MS] if self.waits else []
        words: list[Word] = ["XREADGROUP", "GROUP", self._group, self._consumer, "COUNT", count]
        places = [">"] * len(self._streams)
        try:
            reply = self._server.ask(*words, *waiting, "STREAMS", *self._streams, *places)
        except Failure as failure:
            if failure.message.startswith("NOGROUP"):
                raise Failure(f"{failure.message}; --create-group creates it") from None
            raise
        found = [entry for page in _pages(reply) for entry in page]
        if not found and not self.waits:
            return None
        return sorted(found, key=lambda entry: entry.id)

    def acknowledge(self, shown: Sequence[StreamEntry]) -> None:
        if not self.acknowledges:
            return
        for stream in self._streams:
            ids = [str(entry.id) for entry in shown if entry.stream == stream]
            if ids:
                self._server.ask("XACK", stream, self._group, *ids, about=stream)


def _pages(reply: Reply) -> list[list[StreamEntry]]:
    pages = []
    for item in array(reply):
        stream, found = parts(item, 2)
        pages.append(entries(blob(stream), found))
    return [page for page in pages if page]


def top_or_none(server: ServerConnection, stream: bytes) -> StreamID | None:
    """The last generated id of a stream, or None if there is no such stream."""
    kind = blob(server.ask("TYPE", stream))
    if kind == b"none":
        return None
    if kind != b"stream":
        raise Failure(f"{harmless(stream)}: holds a {harmless(kind)}, not a stream")
    return stream_info(server.ask("XINFO", "STREAM", stream, about=stream)).last_id


def plan_range(
    server: ServerConnection,
    streams: Sequence[bytes],
    start: Moment,
    until: Moment | None,
    follow: bool,
) -> RangeSource:
    """The range that `--from`, `--until` and `--no-follow` describe.

    The end of each stream is looked up once, here. Reading with `$` would skip entries that are added to one
    stream while another is printed.
    """
    if until is Edge.END:
        until, follow = None, False
    now_ms = server.now_ms()
    until_id = _until(until, now_ms)
    after: dict[bytes, StreamID] = {}
    last: dict[bytes, StreamID] = {}
    for stream in dict.fromkeys(streams):
        top = top_or_none(server, stream)
        if top is None:
            if not follow:
                raise Failure(f"{harmless(stream)}: no such stream")
            say(f"{harmless(stream)}: does not exist yet; waiting for it")
            top = stream_id.SMALLEST
        after[stream] = _place_before(start, top, now_ms)
        if until_id is not None:
            last[stream] = until_id.previous()
        if not follow:
            last[stream] = min(top, last.get(stream, top))
    range_ = RangeSource(server, after, last)
    if follow and until_id is not None:
        range_.wait_until(until_id.ms)
    return range_


def _until(until: Moment | None, now_ms: int) -> StreamID | None:
    bound = until.at(now_ms) if isinstance(until, Ago) else until
    if bound is Edge.START or bound == stream_id.SMALLEST:
        raise Failure("there are no entries before the start: give --until a later time")
    return bound if isinstance(bound, StreamID) else None


def _place_before(start: Moment, top: StreamID, now_ms: int) -> StreamID:
    """The id before `start`: XREAD and XGROUP return entries after the id they are given."""
    if start is Edge.END:
        return top
    first = start.at(now_ms) if isinstance(start, Ago) else start
    if isinstance(first, Edge) or first == stream_id.SMALLEST:
        return stream_id.SMALLEST
    return first.previous()


def group_place(server: ServerConnection, start: Moment) -> str:
    """The start of a new group, as an argument of XGROUP CREATE."""
    if start is Edge.END:
        return "$"
    return str(_place_before(start, stream_id.SMALLEST, server.now_ms()))
