"""What a writer was asked for: the options of `write` and `writeStream`, checked once.

url, username, password, cluster    as for reading, but one server or one cluster
stream               the stream that is written to; without it a column `stream`, or `_stream`, names it
maxlen, minid        trim the stream behind every batch: to so many entries, or below an id
approximate          true: whole nodes only, which is far cheaper and leaves a few entries more
writeId              a batch only: a name under which the same write is done once, however often it runs
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.core.stream_id import parse
from penstock.errors import CommandError
from penstock.spark.option_words import OptionError, Words, missing_option
from penstock.spark.place import CONNECTION, Place, parse_place

NAMES = (
    *CONNECTION,
    *("stream", "maxlen", "minid", "approximate", "writeId"),
)
STREAM_COLUMNS = ("stream", "_stream")
# Spark hands its own options of a streaming query to the sink, too.
_SPARKS_OWN = ("checkpointlocation", "queryname")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Every option of a writer."""

    place: Place
    stream: str
    trim: tuple[str, ...]
    write_id: str


def parse_sink_options(
    given: Mapping[str, str], columns: Iterable[str], is_streaming: bool
) -> SinkOptions:
    """Check everything that was given, and that there is a stream to write to. Raises: OptionError."""
    own = {
        name: value
        for name, value in given.items()
        if not (is_streaming and name.lower() in _SPARKS_OWN)
    }
    words = Words(own, NAMES)
    place = parse_place(words)
    if len(place.servers) > 1 and not place.cluster:
        raise OptionError("url", "", "one server to write to, or the nodes of a cluster")
    stream = words.text("stream")
    if "stream" in words and not stream:
        raise OptionError("stream", stream, "the name of a stream")
    if not stream and not set(STREAM_COLUMNS) & set(columns):
        raise missing_option("stream", "the name of a stream, or a column `stream` with it")
    write_id = words.text("writeId")
    if "writeId" in words and (is_streaming or not write_id):
        allowed = "a name for a batch write; a streaming query has its checkpoint instead"
        raise OptionError("writeId", write_id, allowed)
    return SinkOptions(place, stream, _trim(words), write_id)


def _trim(words: Words) -> tuple[str, ...]:
    """The options of XTRIM; none if nothing is to go."""
    if "maxlen" in words and "minid" in words:
        raise OptionError("minid", words.text("minid"), "either maxlen or minid, and not both")
    if "maxlen" in words:
        by, threshold = "MAXLEN", str(words.whole("maxlen", 0, 0))
    elif "minid" in words:
        by, threshold = "MINID", words.text("minid")
        try:
            parse(threshold.encode())
        except CommandError:
            raise OptionError(
                "minid", threshold, "an id: 1700000000000 or 1700000000000-0"
            ) from None
    elif "approximate" in words:
        raise OptionError("approximate", words.text("approximate"), "maxlen or minid beside it")
    else:
        return ()
    if words.truth("approximate", True):
        return by, "~", threshold, "LIMIT", "0"
    return by, "=", threshold
