"""Writes RDB files that Redis and penstock can read.

    writer = RdbWriter(file.write, compat.rdb_version)
    writer.begin(aux_fields(...))
    writer.database(0, keys=2, expiring=1)
    writer.key(b"s", stream, None)
    writer.key(b"n", b"17", 1700000000000)
    writer.end()

    52 45 44 49 53 30 30 31 30 | fa .. | fe 00 | fb 02 01 | 13 01 73 .. | fc <ms> 00 01 6e c0 11 | ff <crc64>
    REDIS0010                    aux     db 0    sizes      stream s      n = 17                   end

The version selects the form of a stream:

    10, Redis 7.0        type 19, without the time of a consumer's last successful read
    11, 12, to 8.4       type 21, without the names of producers
    13, 8.6              type 26, without the list of returned entries
    14, 15, from 8.8     type 27, with everything

What a form has no place for is left out, except for returned entries: below type 27 they belong to a consumer
with an empty name, so none is lost. Lists are written as listpacks in every version.

Nodes are copied as bytes. Nothing here takes a lock, logs, starts a thread or changes data, so a forked child
can write a snapshot while its parent continues.

Cost: 0.9 to 1.1 times the time of Redis (benchmarks/_rdb.py, on a noisy machine), mostly for the checksum and
the compression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from penstock.core import listpack
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import Group
from penstock.core.groups.pending_list import PendingList
from penstock.core.groups.records import NEVER_MS
from penstock.core.idempotency import DURATION_S_DEFAULT, SIZE_DEFAULT, Idempotency
from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID
from penstock.engine.keyspace import Keyspace
from penstock.persist.rdb import format as form
from penstock.persist.rdb.output import RdbOutput
from penstock.persist.rdb.value import Value

VERSION_MIN = 10  # what Redis 7.0 writes

_STREAM_3_SINCE = 11
_STREAM_4_SINCE = 13
_STREAM_5_SINCE = 14
_STREAM_3 = form.STREAM_3
_STREAM_4 = form.STREAM_4
_STREAM_5 = form.STREAM_5
_NOBODYS_NAME = b""
_PLAIN_BYTES_MIN = 1 << 30  # Redis keeps an element of this size outside of listpacks
_REDIS_BITS = 64


def aux_fields(
    redis_version: str, now_ms: int, used_memory: int, aof_base: bool = False
) -> dict[bytes, bytes]:
    """The aux fields that Redis writes at the start of a file."""
    return {
        b"redis-ver": redis_version.encode(),
        b"redis-bits": b"%d" % _REDIS_BITS,
        b"ctime": b"%d" % (now_ms // 1000),
        b"used-mem": b"%d" % used_memory,
        b"aof-base": b"%d" % aof_base,
    }


class RdbWriter:
    """One file: begin, then database and key for each database and key, then end."""

    __slots__ = ("_output", "_version")

    def __init__(
        self,
        write: Callable[[bytes], object],
        version: int,
        compress: bool = True,
        checksum: bool = True,
    ) -> None:
        if not VERSION_MIN <= version <= form.VERSION_MAX:
            raise ValueError(f"RDB version {version} cannot be written")
        self._output = RdbOutput(write, compress, checksum)
        self._version = version

    def begin(self, aux: Mapping[bytes, bytes]) -> None:
        self._output.raw(form.MAGIC + b"%04d" % self._version)
        for name, value in aux.items():
            self._output.byte(form.AUX)
            self._output.string(name)
            self._output.string(value)

    def database(self, index: int, keys: int, expiring: int) -> None:
        """Select the database of the next keys and state their number."""
        output = self._output
        output.byte(form.SELECT)
        output.number(index)
        output.byte(form.RESIZE)
        output.number(keys)
        output.number(expiring)

    def key(self, key: bytes, value: Value, expiry_ms: int | None) -> None:
        output = self._output
        if expiry_ms is not None:
            output.byte(form.EXPIRY_MS)
            output.milliseconds(expiry_ms)
        output.byte(type_of(value, self._version))
        output.string(key)
        write_value(output, value, self._version)

    def end(self) -> None:
        self._output.byte(form.END)
        crc = self._output.crc_now()
        self._output.raw(crc.to_bytes(form.CHECKSUM_BYTES, "little"))
        self._output.flush()


def write_databases(writer: RdbWriter, databases: Iterable[Keyspace]) -> int:
    """Write all keys of all databases, between begin and end; return their number."""
    count = 0
    for keyspace in databases:
        if not keyspace.values:
            continue
        writer.database(keyspace.index, len(keyspace.values), len(keyspace.expires))
        expiry_of = keyspace.expires.get
        for key, value in keyspace.values.items():
            writer.key(key, value, expiry_of(key))
            count += 1
    return count


def version_needed(databases: Iterable[Keyspace]) -> int:
    """The oldest version that loses no names of producers and no returned entries."""
    needed = VERSION_MIN
    for keyspace in databases:
        for value in keyspace.values.values():
            if isinstance(value, Stream):
                needed = max(needed, _stream_version_needed(value))
    return needed


def _stream_version_needed(stream: Stream) -> int:
    if stream.groups is not None and any(group.returned for _, group in stream.groups.pairs()):
        return _STREAM_5_SINCE
    settings = stream.idempotency_settings
    is_default = settings.duration_s == DURATION_S_DEFAULT and settings.size_max == SIZE_DEFAULT
    return VERSION_MIN if is_default and stream.idempotency is None else _STREAM_4_SINCE


def type_of(value: Value, version: int) -> int:
    """The RDB type of a value."""
    if isinstance(value, Stream):
        if version >= _STREAM_5_SINCE:
            return form.STREAM_5
        if version >= _STREAM_4_SINCE:
            return form.STREAM_4
        return form.STREAM_3 if version >= _STREAM_3_SINCE else form.STREAM_2
    return form.LIST_NODES if isinstance(value, ListValue) else form.STRING


def write_value(output: RdbOutput, value: Value, version: int) -> None:
    """Write a value without its type."""
    if isinstance(value, Stream):
        _write_stream(output, value, type_of(value, version))
    elif isinstance(value, ListValue):
        _write_list(output, value)
    else:
        output.string(value)


def _write_list(output: RdbOutput, value: ListValue) -> None:
    nodes, first = value.inside()
    output.number(len(nodes) - first)
    for node in nodes[first:]:
        assert node is not None
        total = listpack.total_bytes(node)
        if total > _PLAIN_BYTES_MIN and listpack.length(node) == 1:
            at = listpack.first(node)
            output.number(form.NODE_PLAIN)
            output.piece(node, listpack.string_at(node, at), listpack.string_size(node, at))
        else:
            output.number(form.NODE_PACKED)
            output.piece(node, 0, total)


def _write_stream(output: RdbOutput, stream: Stream, kind: int) -> None:
    output.number(stream.nodes.count)
    nodes = stream.nodes.iterator()
    nodes.seek("^")
    while nodes.next():
        node: bytearray = nodes.value
        output.string(nodes.key)
        output.piece(node, 0, listpack.total_bytes(node))
    output.number(stream.length)
    _write_id(output, stream.last_id)
    _write_id(output, stream.first_id())
    _write_id(output, stream.max_deleted_id)
    output.number(stream.entries_added)
    output.number(0 if stream.groups is None else stream.groups.count)
    if stream.groups is not None:
        groups = stream.groups.iterator()
        groups.seek("^")
        while groups.next():
            output.string(groups.key)
            _write_group(output, groups.value, kind)
    if kind >= _STREAM_4:
        _write_producers(output, stream)


def _write_group(output: RdbOutput, group: Group, kind: int) -> None:
    _write_id(output, group.last_id)
    output.signed(group.entries_read)
    _write_pending(output, group.pending)
    if kind >= _STREAM_5 or not group.returned:
        output.number(group.consumers.count)
    else:
        _begin_consumers_with_nobody(output, group, kind)
    consumers = group.consumers.iterator()
    consumers.seek("^")
    while consumers.next():
        consumer: Consumer = consumers.value
        _write_consumer(output, consumer, kind)
        if kind < _STREAM_5 and group.returned and consumer.name == _NOBODYS_NAME:
            owned = [record.key() for record in consumer.pending]
            _write_keys(output, sorted([*group.returned, *owned]))
        else:
            _write_owned(output, consumer.pending)
    if kind >= _STREAM_5:
        _write_keys(output, list(group.returned))


def _begin_consumers_with_nobody(output: RdbOutput, group: Group, kind: int) -> None:
    """Write the number of consumers and, if there is none with an empty name, one for returned entries."""
    if group.consumer_or_none(_NOBODYS_NAME) is not None:
        output.number(group.consumers.count)
        return
    output.number(group.consumers.count + 1)
    nobody = Consumer(_NOBODYS_NAME, 0, 0)
    nobody.active_ms = NEVER_MS
    _write_consumer(output, nobody, kind)
    _write_keys(output, sorted(group.returned))


def _write_consumer(output: RdbOutput, consumer: Consumer, kind: int) -> None:
    """Write a consumer without its pending entries."""
    output.string(consumer.name)
    output.milliseconds(consumer.seen_ms)
    if kind >= _STREAM_3:
        output.milliseconds(consumer.active_ms)


def _write_keys(output: RdbOutput, keys: list[bytes]) -> None:
    output.number(len(keys))
    for key in keys:
        output.raw(key)


def _write_producers(output: RdbOutput, stream: Stream) -> None:
    """Write the settings, names and counters of producers, by producer as in Redis."""
    output.number(stream.idempotency_settings.duration_s)
    output.number(stream.idempotency_settings.size_max)
    known = Idempotency() if stream.idempotency is None else stream.idempotency
    output.number(len(known.producers))
    for producer in sorted(known.producers):
        names = known.producers[producer]
        output.string(producer)
        output.number(len(names))
        for name, entry_id in names.items():
            output.string(name)
            _write_id(output, entry_id)
    output.number(known.added)
    output.number(known.duplicates)


def _write_pending(output: RdbOutput, pending: PendingList) -> None:
    output.number(pending.count)
    records = pending.walk()
    while records.next():
        record = records.record
        output.raw(record.key())
        output.milliseconds(record.delivery_ms)
        output.number(record.delivery_count)


def _write_owned(output: RdbOutput, pending: PendingList) -> None:
    output.number(pending.count)
    records = pending.walk()
    while records.next():
        output.raw(records.record.key())


def _write_id(output: RdbOutput, entry_id: StreamID) -> None:
    output.number(entry_id.ms)
    output.number(entry_id.seq)
