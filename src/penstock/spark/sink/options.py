"""The options of `write` and `writeStream`.

url, username, password, cluster    as for reading, but one server or one cluster
stream               the target; without it a column `stream`, or `_stream`, names the target of each row
maxlen, minid        trim the stream after each batch: to a length, or below an id
approximate          true: trim whole nodes only, which is much cheaper and keeps a few more entries
writeId              batch only: a name for the write; a second write under the same name is skipped
writeNumber          with writeId: the write is skipped only if one with this number was the last of the name
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.core.stream_id import parse
from penstock.errors import InvalidID
from penstock.spark.option_reader import OptionError, OptionReader, missing_option
from penstock.spark.place import CONNECTION, Place, parse_place

NAMES = (
    *CONNECTION,
    *("stream", "maxlen", "minid", "approximate", "writeId", "writeNumber"),
)
STREAM_COLUMNS = ("stream", "_stream")
# Spark also passes its own options of a streaming query to the sink.
_SPARKS_OWN = ("checkpointlocation", "queryname")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Every option of a writer."""

    place: Place
    stream: str
    trim: tuple[str, ...]
    write_id: str
    write_number: int = 1


def parse_sink_options(
    given: Mapping[str, str], columns: Iterable[str], is_streaming: bool
) -> SinkOptions:
    """Read and check all options, and that there is a target. Raises: OptionError."""
    own = {
        name: value
        for name, value in given.items()
        if not (is_streaming and name.lower() in _SPARKS_OWN)
    }
    reader = OptionReader(own, NAMES)
    place = parse_place(reader)
    if len(place.servers) > 1 and not place.cluster:
        raise OptionError("url", "", "one server to write to, or the nodes of a cluster")
    stream = reader.text("stream")
    if "stream" in reader and not stream:
        raise OptionError("stream", stream, "the name of a stream")
    if not stream and not set(STREAM_COLUMNS) & set(columns):
        raise missing_option("stream", "the name of a stream, or a column `stream` with it")
    write_id = reader.text("writeId")
    if "writeId" in reader and (is_streaming or not write_id):
        allowed = "a name for a batch write; a streaming query has its checkpoint instead"
        raise OptionError("writeId", write_id, allowed)
    if "writeNumber" in reader and not write_id:
        raise OptionError("writeNumber", reader.text("writeNumber"), "writeId with it")
    number = reader.integer("writeNumber", 1, 0)
    return SinkOptions(place, stream, _trim(reader), write_id, number)


def _trim(reader: OptionReader) -> tuple[str, ...]:
    """The arguments of XTRIM, or none."""
    if "maxlen" in reader and "minid" in reader:
        raise OptionError("minid", reader.text("minid"), "either maxlen or minid, not both")
    if "maxlen" in reader:
        by, threshold = "MAXLEN", str(reader.integer("maxlen", 0, 0))
    elif "minid" in reader:
        by, threshold = "MINID", reader.text("minid")
        try:
            parse(threshold.encode())
        except InvalidID:
            raise OptionError(
                "minid", threshold, "an id: 1700000000000 or 1700000000000-0"
            ) from None
    elif "approximate" in reader:
        raise OptionError("approximate", reader.text("approximate"), "maxlen or minid with it")
    else:
        return ()
    if reader.boolean("approximate", True):
        return by, "~", threshold, "LIMIT", "0"
    return by, "=", threshold
