"""Trims entries from the server once they are archived.

Pass an offset that Spark has committed: the `endOffset` of a progress report, or the end of the previous
batch. A batch that is not committed may be repeated, and would miss trimmed entries.

The trim is exact: it removes all entries up to the offset and no others, so the source detects no loss
(planning.lost_or_none).
"""

from __future__ import annotations

from typing import Literal

from penstock.core.stream_id import LARGEST, SMALLEST, StreamID, parse
from penstock.spark.connection import Servers, StreamName, stream_of
from penstock.spark.option_reader import OptionError
from penstock.spark.place import Place
from penstock.spark.source.offsets import Offset
from penstock.spark.source.stream_state import groups_of

Mode = Literal["archived", "acked"]
MODES = ("archived", "acked")


def trim_archived(place: Place, offset: Offset, mode: Mode) -> dict[str, int]:
    """Trim each stream of an offset up to and including its id. Returns the entries removed, by stream.

    With mode `acked` the trim stops at the first entry that a group of the stream has not acknowledged. A
    group that mirrors a query counts too, with its position.
    """
    if mode not in MODES:
        raise OptionError("trim", str(mode), " or ".join(MODES))
    trimmed = {}
    with Servers(place) as servers:
        for name, at in offset.streams.items():
            stream = stream_of(place, name)
            last = at.id if mode == "archived" else _acknowledged(servers, stream, at.id)
            trimmed[name] = _trim(servers, stream, last)
    return trimmed


def _acknowledged(servers: Servers, stream: StreamName, archived: StreamID) -> StreamID:
    """The last archived id that every group has acknowledged."""
    last = archived
    for group in groups_of(servers, stream):
        # A group that was set back will read from its position again, which may be below its pending entries.
        last = min(last, group.last_id)
        if group.pending:
            words = ("XPENDING", stream.key, group.name)
            smallest = servers.ask(stream, *words)[1]
            if smallest is not None:
                last = min(last, parse(smallest).previous())
    return last


def _trim(servers: Servers, stream: StreamName, last: StreamID) -> int:
    if last == SMALLEST:
        return 0
    # There is no id after the largest one: trim everything.
    bound = ("MAXLEN", "=", 0) if last == LARGEST else ("MINID", "=", str(last.next()))
    return int(servers.ask(stream, "XTRIM", stream.key, *bound))
