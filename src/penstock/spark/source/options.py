"""What a reader was asked for: the options of `format("penstock")`, checked once.

    url                    redis://[user:password@]host:port/db, rediss://, unix://path; several, by commas
    username, password     for every url that names none; Spark hides an option of this name in its plans
    cluster                true: the urls are nodes of one Redis Cluster
    stream, streamPattern  keys, by commas or as a JSON array; or a glob, looked at again for every batch
    startingOffsets        earliest, latest, or {"stream": "id"}: the first entry that is read
    endingOffsets          the same for a batch: the last entry that is read
    startingTimestamp, endingTimestamp    the same by ms since the epoch; both included, as XRANGE has it
    maxEntriesPerTrigger, minPartitions, fetchSize, failOnDataLoss
    mode, group, consumer, claimIdleMs    exclusive, or shared with the other consumers of a group
    fieldsType             string, binary, entries: the type of the column `fields` where no schema is given
    onParseError           null, fail: what becomes of a value that does not fit its column

A batch reads from earliest to latest unless told otherwise; a stream begins at latest, as the Kafka
source does. Streams that a JSON object does not name are read from their beginning, or to their end. Where
there are several servers, "host:port/db stream" is the stream of one, and "stream" that of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.client.address import URL_FORMS, BadUrl, ServerUrl, parse_url
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID, parse
from penstock.spark.option_words import OptionError, Words

CONNECTION = ("url", "username", "password", "cluster")
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
class Place:
    """Which servers, and how they belong together."""

    servers: tuple[ServerUrl, ...]
    cluster: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """Where reading begins or ends: a word for all streams, or an id for each; ids are included."""

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
    """Check everything that was given. Raises: OptionError."""
    words = Words(given, NAMES)
    streams, pattern = words.names("stream"), words.text("streamPattern")
    if bool(streams) == bool(pattern):
        both = f"{','.join(streams)} and {pattern}" if pattern else ""
        raise OptionError("stream", both, "either stream or streamPattern, and not both")
    shared = words.one_of("mode", ("exclusive", "shared"), "exclusive") == "shared"
    group = words.text("group")
    if shared and not group:
        raise OptionError("group", group, "the name of the consumer group to join, for mode shared")
    for name in ("consumer", "claimIdleMs"):
        if name in words and not shared:
            raise OptionError(name, words.text(name), "mode shared with it, or no such option")
    bounds = [_bound_or_none(words, which) for which in ("starting", "ending")]
    place = parse_place(words)
    several = () if place.cluster or len(place.servers) == 1 else place.servers
    known = [*streams, *(f"{server.label} {one}" for server in several for one in streams)]
    for which, bound in zip(("starting", "ending"), bounds, strict=True):
        for name in bound.ids if bound is not None and streams else ():
            if name not in known:
                raise OptionError(
                    f"{which}Offsets", name, f"streams that are read: {', '.join(known)}"
                )
    return SourceOptions(
        place=place,
        streams=streams,
        pattern=pattern,
        starting=bounds[0],
        ending=bounds[1],
        entries_max=words.whole("maxEntriesPerTrigger", SHARED_ENTRIES if shared else None, 1),
        partitions_min=words.whole("minPartitions", None, 1, 65_536),
        fetch_size=words.whole("fetchSize", FETCH_SIZE, 1, 1_000_000),
        fail_on_data_loss=words.truth("failOnDataLoss", True),
        shared=shared,
        group=group,
        consumer=words.text("consumer"),
        claim_idle_ms=words.whole("claimIdleMs", CLAIM_IDLE_MS, 0),
        fields_type=words.one_of("fieldsType", ("string", "binary", "entries"), "string"),
        fail_on_parse_error=words.one_of("onParseError", ("null", "fail"), "null") == "fail",
    )


def parse_place(words: Words) -> Place:
    """The servers that `url`, `username`, `password` and `cluster` name. Raises: OptionError."""
    text = words.required("url", URL_FORMS)
    login = (words.text("username"), words.text("password"))
    try:
        servers = tuple(parse_url(part.strip(), *login) for part in text.split(","))
    except BadUrl as error:
        raise OptionError("url", "", str(error)) from None
    cluster = words.truth("cluster", False)
    if cluster and any(server.is_unix or server.database for server in servers):
        raise OptionError("url", text, "redis:// or rediss:// and database 0 for a cluster")
    if not cluster and len({server.label for server in servers}) < len(servers):
        raise OptionError("url", text, "each server once")
    return Place(servers, cluster)


def _bound_or_none(words: Words, which: str) -> Bound | None:
    by_offset, by_time = f"{which}Offsets", f"{which}Timestamp"
    if by_offset in words and by_time in words:
        raise OptionError(by_time, words.text(by_time), f"either {by_offset} or {by_time}")
    if by_time in words:
        moment = words.whole(by_time, 0, 0, MAX64)
        return Bound("moment", moment_ms=moment)
    if by_offset not in words:
        return None
    if words.text(by_offset).startswith("{"):
        seq = 0 if which == "starting" else MAX64
        ids = words.by_stream(by_offset, lambda text: _parse_id(text, seq), POSITION_FORMS)
        return Bound("ids", ids)
    word = words.text(by_offset).lower()
    if word not in ("earliest", "latest"):
        raise OptionError(by_offset, words.text(by_offset), POSITION_FORMS)
    return Bound(word)


def _parse_id(text: str, missing_seq: int) -> StreamID:
    if text == "earliest":
        return SMALLEST
    if text == "latest":
        return LARGEST
    return parse(text.encode(), missing_seq)
