"""The options of a read with `format("penstock")`.

    url                    redis://[user:password@]host:port/db, rediss://, unix://path; several, by commas
    username, password     for every url that names none; Spark hides an option of this name in its plans
    cluster                true: the urls are nodes of one Redis Cluster
    stream, streamPattern  keys, by commas or as a JSON array; or a glob, matched again for every batch
    startingOffsets        earliest, latest, or {"stream": "id"}: the first entry to read
    endingOffsets          the same for a batch: the last entry to read
    startingTimestamp, endingTimestamp    the same in ms since the epoch; both inclusive, as in XRANGE
    maxEntriesPerTrigger, minPartitions, fetchSize, failOnDataLoss
    mode, group, consumer, claimIdleMs    exclusive, or shared with the other consumers of a group
    fieldsType             string, binary, entries: the type of the column `fields` without a schema
    onParseError           null, fail: what to do with a value that does not fit its column

By default a batch reads from earliest to latest, and a stream starts at latest, like Spark's Kafka source. A
JSON object may leave out streams: they are read from their beginning, or to their end. With several servers,
"host:port/db stream" is the stream of one server, and "stream" is that stream on every server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID, parse
from penstock.spark.option_reader import OptionError, OptionReader, missing_option
from penstock.spark.place import CONNECTION, Place, parse_place

NAMES = (
    *CONNECTION,
    *("stream", "streamPattern"),
    *("startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp"),
    *("maxEntriesPerTrigger", "minPartitions", "fetchSize", "failOnDataLoss"),
    *("mode", "group", "consumer", "claimIdleMs"),
    *("fieldsType", "onParseError"),
)

POSITION_FORMS = (
    'earliest, latest, or a JSON object of ids by stream: {"orders": "1700000000000-0"}'
)
FETCH_SIZE = 5_000
SHARED_ENTRIES = 10_000
CLAIM_IDLE_MS = 300_000


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a read starts or ends: one word for all streams, or an id for each. Ids are inclusive."""

    word: str
    ids: dict[str, StreamID] = field(default_factory=dict)
    moment_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Every option of a reader."""

    place: Place
    streams: tuple[str, ...]
    pattern: str
    starting: Bound | None
    ending: Bound | None
    entries_max: int | None
    partitions_min: int | None
    fetch_size: int
    fail_on_data_loss: bool
    shared: bool
    group: str
    consumer: str
    claim_idle_ms: int
    fields_type: str
    fail_on_parse_error: bool


def parse_options(given: Mapping[str, str]) -> SourceOptions:
    """Read and check all options. Raises: OptionError."""
    reader = OptionReader(given, NAMES)
    streams, pattern = reader.names("stream"), reader.text("streamPattern")
    if not streams and not pattern:
        raise missing_option("stream", "the name of a stream, or the option streamPattern")
    if streams and pattern:
        both = f"{','.join(streams)} and {pattern}"
        raise OptionError("stream", both, "either stream or streamPattern, not both")
    shared = reader.one_of("mode", ("exclusive", "shared"), "exclusive") == "shared"
    group = reader.text("group")
    if shared and not group:
        raise missing_option("group", "the name of the consumer group to join in mode shared")
    for name in ("consumer", "claimIdleMs"):
        if name in reader and not shared:
            raise OptionError(name, reader.text(name), "no such option without mode=shared")
    bounds = [_bound_or_none(reader, which) for which in ("starting", "ending")]
    place = parse_place(reader)
    several = () if place.cluster or len(place.servers) == 1 else place.servers
    known = [*streams, *(f"{server.label} {one}" for server in several for one in streams)]
    for which, bound in zip(("starting", "ending"), bounds, strict=True):
        for name in bound.ids if bound is not None and streams else ():
            if name not in known:
                raise OptionError(
                    f"{which}Offsets", name, f"a stream of this read: {', '.join(known)}"
                )
    return SourceOptions(
        place=place,
        streams=streams,
        pattern=pattern,
        starting=bounds[0],
        ending=bounds[1],
        entries_max=reader.integer("maxEntriesPerTrigger", SHARED_ENTRIES if shared else None, 1),
        partitions_min=reader.integer("minPartitions", None, 1, 65_536),
        fetch_size=reader.integer("fetchSize", FETCH_SIZE, 1, 1_000_000),
        fail_on_data_loss=reader.boolean("failOnDataLoss", True),
        shared=shared,
        group=group,
        consumer=reader.text("consumer"),
        claim_idle_ms=reader.integer("claimIdleMs", CLAIM_IDLE_MS, 0),
        fields_type=reader.one_of("fieldsType", ("string", "binary", "entries"), "string"),
        fail_on_parse_error=reader.one_of("onParseError", ("null", "fail"), "null") == "fail",
    )


def _bound_or_none(reader: OptionReader, which: str) -> Bound | None:
    by_offset, by_time = f"{which}Offsets", f"{which}Timestamp"
    if by_offset in reader and by_time in reader:
        raise OptionError(by_time, reader.text(by_time), f"either {by_offset} or {by_time}")
    if by_time in reader:
        moment = reader.integer(by_time, 0, 0, MAX64)
        return Bound("moment", moment_ms=moment)
    if by_offset not in reader:
        return None
    if reader.text(by_offset).startswith("{"):
        seq = 0 if which == "starting" else MAX64
        ids = reader.by_stream(by_offset, lambda text: _parse_id(text, seq), POSITION_FORMS)
        return Bound("ids", ids)
    word = reader.text(by_offset).lower()
    if word not in ("earliest", "latest"):
        raise OptionError(by_offset, reader.text(by_offset), POSITION_FORMS)
    return Bound(word)


def _parse_id(text: str, missing_seq: int) -> StreamID:
    if text == "earliest":
        return SMALLEST
    if text == "latest":
        return LARGEST
    return parse(text.encode(), missing_seq)
