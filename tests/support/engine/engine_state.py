"""All data of an engine that must survive a restart, as readable lines of text.

    0 'k' goes 1700000010000
      string 'v'
    0 's'
      stream length=2 last=3-0 added=3 max_deleted=1-0
      node 1-0 1f0000000c00...
      group 'g' last=3-0 read=3
        consumer 'a'
        pending 3-0 to 'a' at 1700000000000 x1

Not included, because it need not survive: when consumers were last seen and active, waiters, watches. Every
stream and list is checked at the same time.
"""

from __future__ import annotations

from penstock.core.check import check_list, check_stream
from penstock.core.groups.group import Group
from penstock.core.idempotency import DURATION_S_DEFAULT, SIZE_DEFAULT
from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.core.stream_id import from_key
from penstock.engine.execute import Engine
from penstock.engine.keyspace import Keyspace
from tests.support.engine.streams import keys_of, nodes_of, pending_of


def engine_state(engine: Engine) -> list[str]:
    """Every key of every database with its value and expiry time, sorted."""
    lines: list[str] = []
    for keyspace in engine.context.databases:
        lines += keyspace_state(keyspace)
    return lines


def forget_expired_names(engine: Engine, now_ms: int) -> None:
    """Forget the names of producers that have expired: a replay, which has no clock, keeps them."""
    for keyspace in engine.context.databases:
        for value in keyspace.values.values():
            if isinstance(value, Stream) and value.idempotency is not None:
                value.idempotency.forget_expired(value.idempotency_settings, now_ms)


def keyspace_state(keyspace: Keyspace) -> list[str]:
    """The keys of one database, including expired keys that have not been removed yet."""
    lines: list[str] = []
    for key, value in sorted(keyspace.values.items()):
        when_ms = keyspace.expires.get(key)
        goes = "" if when_ms is None else f" goes {when_ms}"
        lines.append(f"{keyspace.index} {shown(key)}{goes}")
        lines += [f"  {line}" for line in value_state(value)]
    return lines


def value_state(value: object) -> list[str]:
    """A value, byte for byte."""
    if isinstance(value, Stream):
        return stream_state(value)
    if isinstance(value, ListValue):
        check_list(value)
        nodes = [f"node {bytes(node).hex()}" for node in value.nodes()]
        return [f"list length={value.length}", *nodes]
    assert isinstance(value, bytes), value
    return [f"string {shown(value)}"]


def stream_state(stream: Stream) -> list[str]:
    """A stream with its nodes, counters and groups."""
    check_stream(stream)
    counted = f"length={stream.length} last={stream.last_id} added={stream.entries_added}"
    lines = [f"stream {counted} max_deleted={stream.max_deleted_id}"]
    lines += [f"node {key} {data.hex()}" for key, data in nodes_of(stream)]
    lines += producers_state(stream)
    if stream.groups is not None:
        for name in keys_of(stream.groups):
            lines += group_state(name, stream.groups.find(name))
    return lines


def producers_state(stream: Stream) -> list[str]:
    """What a stream remembers of its producers; nothing if it has never heard of one."""
    settings, known = stream.idempotency_settings, stream.idempotency
    lines = []
    if settings.duration_s != DURATION_S_DEFAULT or settings.size_max != SIZE_DEFAULT:
        lines.append(f"remembers {settings.duration_s} s, {settings.size_max} messages")
    if known is not None:
        lines.append(f"producers added={known.added} duplicates={known.duplicates}")
        for producer, names in sorted(known.producers.items()):
            for name, entry_id in names.items():
                lines.append(f"  {shown(producer)} {shown(name)} is {entry_id}")
    return lines


def group_state(name: bytes, group: Group) -> list[str]:
    """A group with its position, its consumers by name and its pending entries."""
    lines = [f"group {shown(name)} last={group.last_id} read={group.entries_read}"]
    lines += [f"  consumer {shown(consumer)}" for consumer in keys_of(group.consumers)]
    for entry_id, consumer, when_ms, count in pending_of(group):
        lines.append(f"  pending {entry_id} to {shown(consumer)} at {when_ms} x{count}")
    if group.returned:
        lines.append("  returned " + " ".join(str(from_key(key)) for key in group.returned))
    return lines


def shown(text: bytes) -> str:
    """Bytes as readable text, without loss."""
    return repr(text)[1:]
