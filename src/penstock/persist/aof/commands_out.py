"""Writes all data as commands that recreate it: a base without a snapshot (aof-use-rdb-preamble no).

    string    SET key value
    list      RPUSH key element ...                       in runs of RUN_MAX
    stream    XADD key id field value ...                 for each entry
              XSETID key last ENTRIESADDED n MAXDELETEDID id
              XGROUP CREATE key group id ENTRIESREAD n    for each group
              XGROUP CREATECONSUMER, XCLAIM               for each consumer and each of its pending entries
    expiry    PEXPIREAT key ms

On replay, XCLAIM would refuse a pending entry that was deleted from the stream. So such entries are written
first: they are added with a dummy field, claimed, and trimmed away, and the existing entries follow. No
pending entry is lost (Redis loses these). An empty stream is written as an entry that is trimmed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.core import stream_id
from penstock.core.groups.group import Group, Pending
from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.engine.keyspace import Keyspace
from penstock.persist.aof.journal import Journal

RUN_MAX = 64
FLUSH_BYTES = 256 << 10
_STAND_IN = [b"x", b"y"]


def write_commands(write: Callable[[bytes], object], databases: Iterable[Keyspace]) -> None:
    """Write the commands that recreate all keys of all databases."""
    journal = Journal()
    for keyspace in databases:
        out = _Out(write, journal, keyspace.index)
        for key, value in keyspace.values.items():
            if isinstance(value, Stream):
                _write_stream(out, key, value)
            elif isinstance(value, ListValue):
                _write_list(out, key, value)
            elif isinstance(value, bytes):
                out([b"SET", key, value])
            expiry_ms = keyspace.expiry_or_none(key)
            if expiry_ms is not None:
                out([b"PEXPIREAT", key, b"%d" % expiry_ms])
    write(journal.take())


class _Out:
    """Writes commands of one database."""

    def __init__(self, write: Callable[[bytes], object], journal: Journal, database: int) -> None:
        self._write = write
        self._journal = journal
        self._database = database

    def __call__(self, words: list[bytes]) -> None:
        self._journal.words(self._database, words)
        if self._journal.size > FLUSH_BYTES:
            self._write(self._journal.take())


def _write_list(out: _Out, key: bytes, value: ListValue) -> None:
    for start in range(0, value.length, RUN_MAX):
        out([b"RPUSH", key, *value.range(start, min(start + RUN_MAX, value.length) - 1)])


def _write_stream(out: _Out, key: bytes, stream: Stream) -> None:
    gone = _gone_but_pending(stream)
    if gone:
        _write_gone(out, key, stream, gone)
    cursor = stream.cursor()
    while cursor.advance():
        out([b"XADD", key, cursor.id.text, *cursor.entry.fields()])
    if not stream.length and not gone:
        out([b"XADD", key, b"MAXLEN", b"0", b"0-1", *_STAND_IN])
    counts = [b"ENTRIESADDED", b"%d" % stream.entries_added]
    counts += [b"MAXDELETEDID", stream.max_deleted_id.text]
    out([b"XSETID", key, stream.last_id.text, *counts])
    for name, group in _groups(stream):
        if not gone:
            _write_group(out, key, name, group)
        _write_claims(out, key, name, group, lambda entry_key: entry_key not in gone)


def _gone_but_pending(stream: Stream) -> set[bytes]:
    """The keys of pending entries that are no longer in the stream."""
    return {
        entry_key
        for _, group in _groups(stream)
        for entry_key, _ in group.pending.pairs()
        if not stream.contains(stream_id.from_key(entry_key))
    }


def _write_gone(out: _Out, key: bytes, stream: Stream, gone: set[bytes]) -> None:
    """Write all groups and their deleted pending entries; leave the stream empty, with last id 0-0."""
    for entry_key in sorted(gone):
        out([b"XADD", key, stream_id.from_key(entry_key).text, *_STAND_IN])
    for name, group in _groups(stream):
        _write_group(out, key, name, group)
        _write_claims(out, key, name, group, gone.__contains__)
    # Not XDEL: it would raise the largest deleted id, and XSETID refuses a last id below that.
    out([b"XTRIM", key, b"MAXLEN", b"0"])
    out([b"XSETID", key, b"0-0"])


def _write_group(out: _Out, key: bytes, name: bytes, group: Group) -> None:
    place = [group.last_id.text, b"ENTRIESREAD", b"%d" % group.entries_read]
    out([b"XGROUP", b"CREATE", key, name, *place])
    for consumer_name, _ in group.consumers.pairs():
        out([b"XGROUP", b"CREATECONSUMER", key, name, consumer_name])


def _write_claims(
    out: _Out, key: bytes, name: bytes, group: Group, is_wanted: Callable[[bytes], bool]
) -> None:
    """Write the pending entries of a group's consumers for which `is_wanted`."""
    for consumer_name, consumer in group.consumers.pairs():
        for entry_key, record in consumer.pending.pairs():
            if is_wanted(entry_key):
                _write_claim(out, [key, name, consumer_name], entry_key, record)


def _write_claim(out: _Out, place: list[bytes], entry_key: bytes, record: Pending) -> None:
    words = [b"XCLAIM", *place, b"0", stream_id.from_key(entry_key).text]
    words += [b"TIME", b"%d" % record.delivery_ms]
    words += [b"RETRYCOUNT", b"%d" % record.delivery_count]
    out([*words, b"FORCE", b"JUSTID"])


def _groups(stream: Stream) -> Iterable[tuple[bytes, Group]]:
    return () if stream.groups is None else stream.groups.pairs()
