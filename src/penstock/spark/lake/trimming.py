"""Trimming what is archived: entries leave the server once they are in the lake.

Hand over an offset that Spark has committed: the `endOffset` of a progress report, or what the batch before
this one ended at. A batch that is run again reads its entries again, and trimmed ones would be missing.

An exact trim at the id behind the offset takes all that was read, and the source counts exactly these as
read: it finds nothing lost (planning.lost_or_none).
"""

from __future__ import annotations

from typing import Literal

from penstock.core.stream_id import LARGEST, SMALLEST, StreamID, parse
from penstock.spark.connection import Servers, StreamName, stream_of
from penstock.spark.option_words import OptionError
from penstock.spark.place import Place
from penstock.spark.source.offsets import Offset
from penstock.spark.source.stream_state import groups_of

Mode = Literal["archived", "acked"]
MODES = ("archived", "acked")


def trim_archived(place: Place, offset: Offset, mode: Mode) -> dict[str, int]:
    """Trim every stream of an offset up to and including its id; how many entries went, by stream.

    `acked`: no further than every group of the stream has acknowledged. A group that mirrors a query counts
    too, with the position that it was set to.
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
    """The last id, up to the archived one, that no group needs any more."""
    last = archived
    for group in groups_of(servers, stream):
        # A group that was set back has a position below what is pending, and will read from there again.
        last = min(last, parse(group[b"last-delivered-id"]))
        if group[b"pending"]:
            words = ("XPENDING", stream.key, group[b"name"])
            smallest = servers.ask(stream, *words)[1]
            if smallest is not None:
                last = min(last, parse(smallest).previous())
    return last


def _trim(servers: Servers, stream: StreamName, last: StreamID) -> int:
    if last == SMALLEST:
        return 0
    # No id lies behind the largest one, so all entries are meant.
    bound = ("MAXLEN", "=", 0) if last == LARGEST else ("MINID", "=", str(last.next()))
    return int(servers.ask(stream, "XTRIM", stream.key, *bound))
