"""All data as the commands that make them: a base without a snapshot (aof-use-rdb-preamble no).

    string    SET key value
    list      RPUSH key element ...                       in runs of RUN_MAX
    stream    XADD key id field value ...                 for each entry
              XSETID key last ENTRIESADDED n MAXDELETEDID id
              XGROUP CREATE key group id ENTRIESREAD n    for each group
              XGROUP CREATECONSUMER, XCLAIM               for each consumer and what it has pending
    expiry    PEXPIREAT key ms

A claim of an entry that is gone from the stream would be refused when it is read again. So such entries are
added with a field of no meaning, claimed, and deleted at the end: nothing that is pending is lost. (Redis
loses it here.) An empty stream is one whose only entry was trimmed away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.core import stream_id
from penstock.core.group import Group
from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.engine.keyspace import Keyspace
from penstock.persist.journal import Journal

RUN_MAX = 64
FLUSH_BYTES = 256 << 10
_STAND_IN = [b"x", b"y"]


def write_commands(write: Callable[[bytes], object], databases: Iterable[Keyspace]) -> None:
    """Write the commands that make all keys of all databases."""
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
    """Writes words of one database."""

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
    gone = _write_entries(out, key, stream)
    counts = [b"ENTRIESADDED", b"%d" % stream.entries_added]
    counts += [b"MAXDELETEDID", stream.max_deleted_id.text]
    set_id = [b"XSETID", key, stream.last_id.text, *counts]
    if not gone:
        out(set_id)
    for name, group in _groups(stream):
        _write_group(out, key, name, group)
    if gone:
        out([b"XDEL", key, *gone])
        out(set_id)


def _write_entries(out: _Out, key: bytes, stream: Stream) -> list[bytes]:
    """Write the entries, and stand-ins for those that are pending though they are gone: their ids."""
    missing = sorted(
        {
            entry_key
            for _, group in _groups(stream)
            for entry_key, _ in group.pending.pairs()
            if not stream.contains(stream_id.from_key(entry_key))
        },
        reverse=True,
    )
    gone: list[bytes] = []

    def stand_in(until: bytes | None) -> None:
        while missing and (until is None or missing[-1] < until):
            text = stream_id.from_key(missing.pop()).text
            gone.append(text)
            out([b"XADD", key, text, *_STAND_IN])

    cursor = stream.cursor()
    written = 0
    while cursor.advance():
        stand_in(cursor.id.key)
        out([b"XADD", key, cursor.id.text, *cursor.entry.fields()])
        written += 1
    stand_in(None)
    if not written and not gone:
        out([b"XADD", key, b"MAXLEN", b"0", b"0-1", *_STAND_IN])
    return gone


def _write_group(out: _Out, key: bytes, name: bytes, group: Group) -> None:
    place = [group.last_id.text, b"ENTRIESREAD", b"%d" % group.entries_read]
    out([b"XGROUP", b"CREATE", key, name, *place])
    for consumer_name, consumer in group.consumers.pairs():
        out([b"XGROUP", b"CREATECONSUMER", key, name, consumer_name])
        for entry_key, record in consumer.pending.pairs():
            words = [b"XCLAIM", key, name, consumer_name, b"0", stream_id.from_key(entry_key).text]
            words += [b"TIME", b"%d" % record.delivery_ms]
            words += [b"RETRYCOUNT", b"%d" % record.delivery_count]
            out([*words, b"FORCE", b"JUSTID"])


def _groups(stream: Stream) -> Iterable[tuple[bytes, Group]]:
    return () if stream.groups is None else stream.groups.pairs()
