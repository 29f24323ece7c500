"""The embedded database: the engine in this process, with redis-py's names, arguments and results.

    db = penstock.open("data")
    db.xadd("orders", {"sku": "A1", "qty": 2})        ->  b"1700000000000-0"

The stream and key part of a program written for `redis.Redis` runs on this class unchanged. A method builds
the same words as redis-py's, the engine runs them, and the reply gets the shape that redis-py gives it by
default. Errors have the same texts: DataError for arguments that redis-py refuses itself, CommandError for
commands that a server refuses.

With a directory, a call returns when its changes and everything it read are on disk. Threads may share a
Database.

`group_methods.py` has the methods for groups and pending entries, `key_methods.py` those for keys of any
type, `pipeline.py` the pipelines. `runner.py` runs commands, `arguments.py` builds their words, `results.py`
shapes their replies, `signatures.py` has the types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from penstock.embedded import arguments, results
from penstock.embedded.group_methods import GroupMethods
from penstock.embedded.key_methods import KeyMethods
from penstock.embedded.runner import Runner
from penstock.embedded.signatures import (
    ClaimedStreamEntries,
    ConsumerInfo,
    Encodable,
    Entry,
    EntryId,
    Fields,
    FullStreamInfo,
    GroupInfo,
    Key,
    RefPolicy,
    StreamEntries,
    StreamInfo,
    Streams,
    Text,
)
from penstock.engine.execute import TABLE
from penstock.errors import DataError

if TYPE_CHECKING:
    from penstock.embedded.pipeline import Pipeline

_XADD = TABLE["XADD"]
_XREADGROUP = TABLE["XREADGROUP"]
_XACK = TABLE["XACK"]
_SERVED = results.served


class Database(Runner, GroupMethods[Text], KeyMethods[Text]):
    """Streams in this process. The methods are those of redis.Redis; see there for their arguments."""

    __slots__ = ()

    def pipeline(self, transaction: bool = True) -> Pipeline[Text]:
        """Queue commands and run them together: `pipe.xack(...).xadd(...).execute()`.

        transaction: all or nothing, in memory and on disk. See `Pipeline`.
        """
        from penstock.embedded.pipeline import Pipeline  # noqa: PLC0415 - it imports this module

        return Pipeline(self, transaction)

    # --- Adding and removing -----------------------------------------------------------------------

    @overload
    def xadd(
        self,
        name: Key,
        fields: Fields,
        id: EntryId = "*",
        maxlen: int | None = None,
        approximate: bool = True,
        nomkstream: Literal[False] = False,
        minid: EntryId | None = None,
        limit: int | None = None,
        ref_policy: RefPolicy | None = None,
        idmpauto: str | None = None,
        idmp: tuple[Encodable, Encodable] | None = None,
    ) -> Text: ...

    @overload
    def xadd(
        self,
        name: Key,
        fields: Fields,
        id: EntryId = "*",
        maxlen: int | None = None,
        approximate: bool = True,
        nomkstream: bool = False,
        minid: EntryId | None = None,
        limit: int | None = None,
        ref_policy: RefPolicy | None = None,
        idmpauto: str | None = None,
        idmp: tuple[Encodable, Encodable] | None = None,
    ) -> Text | None: ...

    def xadd(
        self,
        name: Key,
        fields: Fields,
        id: EntryId = "*",
        maxlen: int | None = None,
        approximate: bool = True,
        nomkstream: bool = False,
        minid: EntryId | None = None,
        limit: int | None = None,
        ref_policy: RefPolicy | None = None,
        idmpauto: str | None = None,
        idmp: tuple[Encodable, Encodable] | None = None,
    ) -> Text | None:
        """Add an entry and return its id; None with `nomkstream` if there is no such stream.

        ref_policy: what trimming does to entries that are pending; see xdelex. idmpauto, idmp: add nothing if
        the producer has added the same message before, and return the id of that entry. `idmpauto` is the
        name of the producer; `idmp` is (producer, message), both names.
        """
        if maxlen is not None and minid is not None:
            raise DataError("Only one of ```maxlen``` or ```minid``` may be specified")
        if ref_policy is not None or idmpauto is not None or idmp is not None:
            arguments.check_newer_options(id, ref_policy, idmpauto, idmp)
        if maxlen is not None and (not isinstance(maxlen, int) or maxlen < 0):
            raise DataError("XADD maxlen must be non-negative integer")
        if not isinstance(fields, dict) or not fields:
            raise DataError("XADD fields must be a non-empty dict")
        call = self._new_call(_XADD, None)
        call.use_quick_form()
        frame = call.frame
        frame.add(b"XADD")
        arguments.put(frame, name)
        if nomkstream:
            frame.add(b"NOMKSTREAM")
        if ref_policy is not None or idmpauto is not None or idmp is not None:
            for word in arguments.newer_options(ref_policy, idmpauto, idmp):
                arguments.put(frame, word)
        if maxlen is not None or minid is not None or limit is not None:
            threshold = None if maxlen is None else str(maxlen)
            for word in arguments.trim(threshold, approximate, minid, limit):
                arguments.put(frame, word)
        arguments.put(frame, id)
        for field, value in fields.items():
            if type(field) is str:  # as put, without the call
                frame.add_text(field)
            else:
                arguments.put(frame, field)
            if type(value) is str:
                frame.add_text(value)
            else:
                arguments.put(frame, value)
        reply: Any = self._perform(call)
        if self._decode and reply is not None:
            reply = reply.decode()
        return reply  # type: ignore[no-any-return]

    def xtrim(
        self,
        name: Key,
        maxlen: int | None = None,
        approximate: bool = True,
        minid: EntryId | None = None,
        limit: int | None = None,
        ref_policy: RefPolicy | None = None,
    ) -> int:
        """Remove the oldest entries; return how many. `ref_policy` is as in xdelex."""
        if maxlen is not None and minid is not None:
            raise DataError("Only one of ``maxlen`` or ``minid`` may be specified")
        if maxlen is None and minid is None:
            raise DataError("One of ``maxlen`` or ``minid`` must be specified")
        if ref_policy is not None and ref_policy not in arguments.REF_POLICIES:
            raise DataError("XTRIM ref_policy must be one of: KEEPREF, DELREF, ACKED")
        pieces = [name, *arguments.trim(maxlen, approximate, minid, limit)]
        if ref_policy is not None:
            pieces.append(ref_policy)
        removed: int = self._run("XTRIM", pieces)
        return removed

    def xdel(self, name: Key, *ids: EntryId) -> int:
        """Remove entries; return how many existed."""
        removed: int = self._run("XDEL", [name, *ids])
        return removed

    def xdelex(self, name: Key, *ids: EntryId, ref_policy: RefPolicy = "KEEPREF") -> list[int]:
        """Remove entries; return for each id 1 if it was removed, -1 if there is no such entry.

        ref_policy: what happens to groups where the entry is pending. "KEEPREF": it stays pending there.
        "DELREF": it is no longer pending. "ACKED": an entry that a group has yet to read or acknowledge is
        kept, and its number is 2.
        """
        arguments.check_removal("XDELEX", ids, ref_policy)
        done: list[int] = self._run("XDELEX", [name, ref_policy, b"IDS", len(ids), *ids])
        return done

    def xcfgset(
        self, name: Key, idmp_duration: int | None = None, idmp_maxsize: int | None = None
    ) -> Text:
        """Set how long a stream remembers the messages of its producers (xadd, `idmp`). Returns b"OK".

        idmp_duration: seconds, at most 86,400 as in Redis; redis-py allows 300. idmp_maxsize: messages of
        each producer, at most 10,000. A change forgets all messages.
        """
        pieces = [name, *arguments.idempotency(idmp_duration, idmp_maxsize)]
        done: Text = self._run("XCFGSET", pieces, results.status)
        return done

    def xlen(self, name: Key) -> int:
        """Count the entries."""
        length: int = self._run("XLEN", [name])
        return length

    # --- Reading -----------------------------------------------------------------------------------

    def xrange(
        self, name: Key, min: EntryId = "-", max: EntryId = "+", count: int | None = None
    ) -> list[Entry[Text]]:
        """Return the entries from `min` to `max` as a list of (id, fields)."""
        pieces = [name, min, max, *arguments.count("XRANGE", count)]
        found: list[Entry[Text]] = self._run("XRANGE", pieces, results.entries)
        return found

    def xrevrange(
        self, name: Key, max: EntryId = "+", min: EntryId = "-", count: int | None = None
    ) -> list[Entry[Text]]:
        """Return the entries from `max` down to `min` as a list of (id, fields)."""
        pieces = [name, max, min, *arguments.count("XREVRANGE", count)]
        found: list[Entry[Text]] = self._run("XREVRANGE", pieces, results.entries)
        return found

    def xread(
        self,
        streams: Streams,
        count: int | None = None,
        block: int | None = None,
        max_count: int | None = None,
        max_size: int | None = None,
    ) -> list[StreamEntries[Text]]:
        """Return the entries after an id of each stream as a list of [stream, entries].

        block: if there are none, wait this many milliseconds for one; 0 waits without a limit. count: at most
        this many entries of each stream. max_count: of all streams together. max_size: about this many bytes.
        """
        pieces = arguments.block("XREAD", block)
        pieces += arguments.limits("XREAD", count, max_count, max_size)
        pieces += arguments.streams("XREAD", streams)
        found: list[StreamEntries[Text]] = self._run("XREAD", pieces, results.served)
        return found

    @overload
    def xreadgroup(
        self,
        groupname: Key,
        consumername: Key,
        streams: Streams,
        count: int | None = None,
        block: int | None = None,
        noack: bool = False,
        claim_min_idle_time: None = None,
        max_count: int | None = None,
        max_size: int | None = None,
    ) -> list[StreamEntries[Text]]: ...

    @overload
    def xreadgroup(
        self,
        groupname: Key,
        consumername: Key,
        streams: Streams,
        count: int | None = None,
        block: int | None = None,
        noack: bool = False,
        *,
        claim_min_idle_time: int,
        max_count: int | None = None,
        max_size: int | None = None,
    ) -> list[ClaimedStreamEntries[Text]]: ...

    def xreadgroup(
        self,
        groupname: Key,
        consumername: Key,
        streams: Streams,
        count: int | None = None,
        block: int | None = None,
        noack: bool = False,
        claim_min_idle_time: int | None = None,
        max_count: int | None = None,
        max_size: int | None = None,
    ) -> list[StreamEntries[Text]] | list[ClaimedStreamEntries[Text]]:
        """Read as a consumer of a group; return a list of [stream, entries]. `block` is as in xread.

        claim_min_idle_time: with the id ">", first claim entries that were delivered this many milliseconds
        ago and not acknowledged, then read new ones. An entry is then (id, fields, idle time, deliveries
        before this one); both numbers are 0 for a new entry. A blocked read also waits for entries to become
        idle. With other ids it has no effect, and an entry is (id, fields).
        """
        options = arguments.limits("XREADGROUP", count, max_count, max_size)
        if block is not None:
            options += arguments.block("XREADGROUP", block)
        if noack:
            options.append(b"NOACK")
        if claim_min_idle_time is not None:
            if not isinstance(claim_min_idle_time, int) or claim_min_idle_time < 0:
                raise DataError("XREADGROUP claim_min_idle_time must be a non-negative integer")
            options += [b"CLAIM", claim_min_idle_time]
        ids_by_key = arguments.checked_streams("XREADGROUP", streams)
        shape = _SERVED if claim_min_idle_time is None else results.served_with_claims
        call = self._new_call(_XREADGROUP, shape)
        call.use_quick_form()
        frame = call.frame
        frame.add(b"XREADGROUP")
        frame.add(b"GROUP")
        arguments.put(frame, groupname)
        arguments.put(frame, consumername)
        for word in options:
            arguments.put(frame, word)
        frame.add(b"STREAMS")
        for key in ids_by_key:
            arguments.put(frame, key)
        for after in ids_by_key.values():
            arguments.put(frame, after)
        found: list[StreamEntries[Text]] = self._finished(self._perform(call))
        return found

    def xack(self, name: Key, groupname: Key, *ids: EntryId) -> int:
        """Acknowledge deliveries; return how many were pending."""
        call = self._new_call(_XACK, None)
        call.use_quick_form()
        frame = call.frame
        frame.add(b"XACK")
        arguments.put(frame, name)
        arguments.put(frame, groupname)
        for entry_id in ids:
            arguments.put(frame, entry_id)
        acknowledged: int = self._perform(call)
        return acknowledged

    def xackdel(
        self, name: Key, groupname: Key, *ids: EntryId, ref_policy: RefPolicy = "KEEPREF"
    ) -> list[int]:
        """Acknowledge deliveries and remove their entries; return a number for each id.

        1: done. -1: not pending in this group. 2, with "ACKED": acknowledged, and kept because another group
        has yet to read or acknowledge it. `ref_policy` is as in xdelex.
        """
        arguments.check_removal("XACKDEL", ids, ref_policy)
        pieces = [name, groupname, ref_policy, b"IDS", len(ids), *ids]
        done: list[int] = self._run("XACKDEL", pieces)
        return done

    # --- Information -------------------------------------------------------------------------------

    @overload
    def xinfo_stream(self, name: Key, full: Literal[False] = False) -> StreamInfo: ...

    @overload
    def xinfo_stream(self, name: Key, full: Literal[True]) -> FullStreamInfo: ...

    def xinfo_stream(self, name: Key, full: bool = False) -> StreamInfo | FullStreamInfo:
        """Describe a stream; with `full`, its entries and groups too."""
        if full:
            everything: FullStreamInfo = self._run(
                "XINFO STREAM", [name, b"FULL"], results.full_stream_info
            )
            return everything
        info: StreamInfo = self._run("XINFO STREAM", [name], results.stream_info)
        return info

    def xinfo_groups(self, name: Key) -> list[GroupInfo]:
        """Describe the groups of a stream."""
        groups: list[GroupInfo] = self._run("XINFO GROUPS", [name], results.list_of_pairs)
        return groups

    def xinfo_consumers(self, name: Key, groupname: Key) -> list[ConsumerInfo]:
        """Describe the consumers of a group."""
        consumers: list[ConsumerInfo] = self._run(
            "XINFO CONSUMERS", [name, groupname], results.list_of_pairs
        )
        return consumers
