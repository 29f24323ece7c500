"""Writes all data as commands that recreate it: a base without a snapshot (aof-use-rdb-preamble no).

    string    SET key value
    list      RPUSH key element ...                       in runs of RUN_MAX
    stream    XADD key id field value ...                 for each entry
              XSETID key last ENTRIESADDED n MAXDELETEDID id
              XGROUP CREATE key group id ENTRIESREAD n    for each group
              XGROUP CREATECONSUMER, XCLAIM               for each consumer and each of its pending entries
              XNACK key group FAIL IDS n id ...           for the entries that were returned, from 8.8 on
                RETRYCOUNT n FORCE
              XCFGSET key IDMP-DURATION n IDMP-MAXSIZE n  for producers, from 8.6 on
              XIDMPRECORD key producer name id            for each name, from 8.6 on
    expiry    PEXPIREAT key ms

Below level 8.8, returned entries are claimed by a consumer with an empty name. Below 8.6, names of producers
are left out. How many names were ever added, and how many were known already, has no command and is left out.

On replay, XCLAIM, XNACK and XIDMPRECORD would refuse an entry that was deleted from the stream. So such
entries are written first: they are added with a dummy field, used, and trimmed away, and the existing entries
follow. No pending entry and no name is lost (Redis loses these). An empty stream is written as an entry that
is trimmed at once.

Returned entries and the names of a producer have an order. If one of them was deleted from the stream, all
returned entries and all names are written first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from penstock.core import stream_id
from penstock.core.groups.group import Group
from penstock.core.groups.records import Pending
from penstock.core.idempotency import DURATION_S_DEFAULT, SIZE_DEFAULT, IdempotencySettings
from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID
from penstock.engine.commands.streams.claims import returned_words
from penstock.engine.compat import Compat
from penstock.engine.keyspace import Keyspace
from penstock.persist.aof.journal import Journal

RUN_MAX = 64
FLUSH_BYTES = 256 << 10
_STAND_IN = [b"x", b"y"]
_NOBODYS_NAME = b""


def write_commands(
    write: Callable[[bytes], object], databases: Iterable[Keyspace], compat: Compat
) -> None:
    """Write the commands that recreate all keys of all databases, at this level."""
    journal = Journal()
    for keyspace in databases:
        out = _Out(write, journal, keyspace.index)
        for key, value in keyspace.values.items():
            if isinstance(value, Stream):
                _StreamOut(out, key, value, compat).write()
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


class _StreamOut:
    """Writes the commands of one stream."""

    def __init__(self, out: _Out, key: bytes, stream: Stream, compat: Compat) -> None:
        self._out = out
        self._key = key
        self._stream = stream
        self._keeps_returned = compat.shows_nacked
        self._keeps_names = compat.idempotent_adds
        self._groups: list[tuple[bytes, Group]] = (
            [] if stream.groups is None else list(stream.groups.pairs())
        )

    def write(self) -> None:
        stream, key = self._stream, self._key
        first = self._written_first()
        if first:
            self._write_first(first)
        cursor = stream.cursor()
        while cursor.advance():
            self._out([b"XADD", key, cursor.id.text, *cursor.entry.fields()])
        if not stream.length and not first:
            self._out([b"XADD", key, b"MAXLEN", b"0", b"0-1", *_STAND_IN])
        counts = [b"ENTRIESADDED", b"%d" % stream.entries_added]
        counts += [b"MAXDELETEDID", stream.max_deleted_id.text]
        self._out([b"XSETID", key, stream.last_id.text, *counts])
        for name, group in self._groups:
            if not first:
                self._write_group(name, group)
            self._write_pending(name, group, lambda entry_key: entry_key not in first)
        if not first:
            self._write_producers()

    def _written_first(self) -> set[bytes]:
        """The keys of entries that are needed only to be pending or to have a name."""
        found = {
            entry_key
            for entry_key in self._keys_needed()
            if not self._stream.contains(stream_id.from_key(entry_key))
        }
        if found:
            for _, group in self._groups:
                found.update(group.returned)
            found.update(entry_id.key for _, _, entry_id in self._names())
        return found

    def _keys_needed(self) -> Iterator[bytes]:
        """The keys of entries that are pending or have a name."""
        for _, group in self._groups:
            for record in group.pending:
                yield record.key()
        for _, _, entry_id in self._names():
            yield entry_id.key

    def _write_first(self, first: set[bytes]) -> None:
        """Write groups, producers and some pending entries; leave the stream empty, with last id 0-0."""
        key = self._key
        for entry_key in sorted(first):
            self._out([b"XADD", key, stream_id.from_key(entry_key).text, *_STAND_IN])
        entries_read = max((group.entries_read for _, group in self._groups), default=0)
        if entries_read > len(first):
            # From 8.2 on, Redis lowers ENTRIESREAD to the number of entries that were ever added.
            top = stream_id.from_key(max(first)).text
            self._out([b"XSETID", key, top, b"ENTRIESADDED", b"%d" % entries_read])
        for name, group in self._groups:
            self._write_group(name, group)
            self._write_pending(name, group, first.__contains__)
        self._write_producers()
        # Not XDEL: it would raise the largest deleted id, and XSETID refuses a last id below that.
        self._out([b"XTRIM", key, b"MAXLEN", b"0"])
        self._out([b"XSETID", key, b"0-0"])

    # --- Groups --------------------------------------------------------------------------------------

    def _write_group(self, name: bytes, group: Group) -> None:
        place = [group.last_id.text, b"ENTRIESREAD", b"%d" % group.entries_read]
        self._out([b"XGROUP", b"CREATE", self._key, name, *place])
        for consumer_name, _ in group.consumers.pairs():
            self._out([b"XGROUP", b"CREATECONSUMER", self._key, name, consumer_name])

    def _write_pending(self, name: bytes, group: Group, is_wanted: Callable[[bytes], bool]) -> None:
        """Write the pending entries of a group for which `is_wanted`."""
        for consumer_name, consumer in group.consumers.pairs():
            for record in consumer.pending:
                if is_wanted(record.key()):
                    self._write_claim(name, consumer_name, record)
        returned = [record for key, record in group.returned.items() if is_wanted(key)]
        if self._keeps_returned:
            self._write_returned(name, returned)
        else:
            for record in returned:
                self._write_claim(name, _NOBODYS_NAME, record)

    def _write_claim(self, name: bytes, consumer_name: bytes, record: Pending) -> None:
        words = [b"XCLAIM", self._key, name, consumer_name, b"0"]
        words += [record.entry_id().text, b"TIME", b"%d" % record.delivery_ms]
        words += [b"RETRYCOUNT", b"%d" % record.delivery_count]
        self._out([*words, b"FORCE", b"JUSTID"])

    def _write_returned(self, name: bytes, returned: list[Pending]) -> None:
        """Write returned entries in their order. Those with the same count share a command."""
        rows = [(record.entry_id(), record.delivery_count) for record in returned]
        for start in range(0, len(rows), RUN_MAX):
            for words in returned_words(self._key, name, rows[start : start + RUN_MAX]):
                self._out(words)

    # --- Producers -----------------------------------------------------------------------------------

    def _names(self) -> Iterator[tuple[bytes, bytes, StreamID]]:
        """Every producer, name and entry that is written, in the order of their records."""
        known = self._stream.idempotency
        if known is None or not self._keeps_names:
            return
        for producer, names in known.producers.items():
            for name, entry_id in names.items():
                yield producer, name, entry_id

    def _write_producers(self) -> None:
        names = list(self._names())
        settings = self._stream.idempotency_settings
        follows_defaults = _is_default(settings) and _is_default(self._stream.limits.idempotency)
        if self._keeps_names and (names or not follows_defaults):
            words = [b"XCFGSET", self._key, b"IDMP-DURATION", b"%d" % settings.duration_s]
            self._out([*words, b"IDMP-MAXSIZE", b"%d" % settings.size_max])
        for producer, name, entry_id in names:
            self._out([b"XIDMPRECORD", self._key, producer, name, entry_id.text])


def _is_default(settings: IdempotencySettings) -> bool:
    return settings.duration_s == DURATION_S_DEFAULT and settings.size_max == SIZE_DEFAULT
