"""The embedded database: the engine in this process, with redis-py's names, arguments and results.

    db = penstock.open("data")
    db.xadd("orders", {"sku": "A1", "qty": 2})        ->  b"1700000000000-0"

A program written for `redis.Redis` runs on this class unchanged as far as streams go: the same method
builds the same words, the engine answers them, and the answer gets the shape that the pinned redis-py gives
it by default. Errors carry the same texts: DataError for what redis-py refuses itself, CommandError for
what a server would refuse.

With a directory every call returns when what it did, or saw, is on disk. Threads may share a Database.

`runner.py` runs commands. `arguments.py` makes the words of a command out of redis-py's arguments,
`results.py` its results out of replies.
"""

from __future__ import annotations

from typing import Any

from penstock.embedded import arguments, results, runner
from penstock.embedded.runner import Runner
from penstock.engine.execute import TABLE
from penstock.errors import DataError

_XADD = TABLE["XADD"]


class Database(Runner):
    """Streams in this process. The methods are those of redis.Redis; see there for their arguments."""

    __slots__ = ()

    # --- Adding and removing -----------------------------------------------------------------------

    def xadd(
        self,
        name: Any,
        fields: dict[Any, Any],
        id: Any = "*",
        maxlen: int | None = None,
        approximate: bool = True,
        nomkstream: bool = False,
        minid: Any = None,
        limit: int | None = None,
        ref_policy: str | None = None,
        idmpauto: str | None = None,
        idmp: tuple[Any, Any] | None = None,
    ) -> Any:
        """Add an entry and return its id; None if the stream was not to be made."""
        if maxlen is not None and minid is not None:
            raise DataError("Only one of ```maxlen``` or ```minid``` may be specified")
        if ref_policy is not None or idmpauto is not None or idmp is not None:
            arguments.check_newer_options(id, ref_policy, idmpauto, idmp)
        if maxlen is not None and (not isinstance(maxlen, int) or maxlen < 0):
            raise DataError("XADD maxlen must be non-negative integer")
        if not isinstance(fields, dict) or not fields:
            raise DataError("XADD fields must be a non-empty dict")
        frame = self._new_frame()
        frame.add(b"XADD")
        runner.put(frame, name)
        if nomkstream:
            frame.add(b"NOMKSTREAM")
        if ref_policy is not None or idmpauto is not None or idmp is not None:
            for word in arguments.newer_options(ref_policy, idmpauto, idmp):
                runner.put(frame, word)
        if maxlen is not None or minid is not None or limit is not None:
            threshold = None if maxlen is None else str(maxlen)
            for word in arguments.trim(threshold, approximate, minid, limit):
                runner.put(frame, word)
        runner.put(frame, id)
        for field, value in fields.items():
            if type(field) is str:  # as put, without the call
                frame.add_text(field)
            else:
                runner.put(frame, field)
            if type(value) is str:
                frame.add_text(value)
            else:
                runner.put(frame, value)
        reply = self._perform(_XADD, frame, None)
        return reply.decode() if self._decode and reply is not None else reply

    def xtrim(
        self,
        name: Any,
        maxlen: int | None = None,
        approximate: bool = True,
        minid: Any = None,
        limit: int | None = None,
        ref_policy: str | None = None,
    ) -> int:
        """Drop the oldest entries; return how many."""
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

    def xdel(self, name: Any, *ids: Any) -> int:
        """Remove entries; return how many were there."""
        removed: int = self._run("XDEL", [name, *ids])
        return removed

    def xlen(self, name: Any) -> int:
        """Count the entries."""
        length: int = self._run("XLEN", [name])
        return length

    # --- Reading -----------------------------------------------------------------------------------

    def xrange(self, name: Any, min: Any = "-", max: Any = "+", count: int | None = None) -> Any:
        """Entries from `min` to `max`: a list of (id, fields)."""
        return self._run(
            "XRANGE", [name, min, max, *arguments.count("XRANGE", count)], results.entries
        )

    def xrevrange(self, name: Any, max: Any = "+", min: Any = "-", count: int | None = None) -> Any:
        """Entries from `max` down to `min`: a list of (id, fields)."""
        return self._run(
            "XREVRANGE", [name, max, min, *arguments.count("XREVRANGE", count)], results.entries
        )

    def xread(
        self,
        streams: dict[Any, Any],
        count: int | None = None,
        block: int | None = None,
        max_count: int | None = None,
        max_size: int | None = None,
    ) -> Any:
        """What follows an id, of several streams: a list of [stream, entries]."""
        pieces = arguments.block("XREAD", block) + arguments.limits(
            "XREAD", count, max_count, max_size
        )
        return self._run("XREAD", pieces + arguments.streams("XREAD", streams), results.served)

    def xreadgroup(
        self,
        groupname: Any,
        consumername: Any,
        streams: dict[Any, Any],
        count: int | None = None,
        block: int | None = None,
        noack: bool = False,
        claim_min_idle_time: int | None = None,
        max_count: int | None = None,
        max_size: int | None = None,
    ) -> Any:
        """Read as a consumer of a group: a list of [stream, entries]."""
        pieces = [b"GROUP", groupname, consumername]
        pieces += arguments.limits("XREADGROUP", count, max_count, max_size) + arguments.block(
            "XREADGROUP", block
        )
        if noack:
            pieces.append(b"NOACK")
        if claim_min_idle_time is not None:
            if not isinstance(claim_min_idle_time, int) or claim_min_idle_time < 0:
                raise DataError("XREADGROUP claim_min_idle_time must be a non-negative integer")
            pieces += [b"CLAIM", claim_min_idle_time]
        return self._run(
            "XREADGROUP", pieces + arguments.streams("XREADGROUP", streams), results.served
        )

    def xack(self, name: Any, groupname: Any, *ids: Any) -> int:
        """Acknowledge deliveries; return how many were pending."""
        acknowledged: int = self._run("XACK", [name, groupname, *ids])
        return acknowledged

    # --- Groups ------------------------------------------------------------------------------------

    def xgroup_create(
        self,
        name: Any,
        groupname: Any,
        id: Any = "$",
        mkstream: bool = False,
        entries_read: int | None = None,
    ) -> bool:
        """Make a group."""
        pieces = [name, groupname, id]
        if mkstream:
            pieces.append(b"MKSTREAM")
        if entries_read is not None:
            pieces += [b"ENTRIESREAD", entries_read]
        self._run("XGROUP CREATE", pieces)
        return True

    def xgroup_setid(
        self, name: Any, groupname: Any, id: Any, entries_read: int | None = None
    ) -> bool:
        """Move a group."""
        pieces = [name, groupname, id]
        if entries_read is not None:
            pieces += [b"ENTRIESREAD", entries_read]
        self._run("XGROUP SETID", pieces)
        return True

    def xgroup_destroy(self, name: Any, groupname: Any) -> bool:
        """Remove a group; False if there is none."""
        return bool(self._run("XGROUP DESTROY", [name, groupname]))

    def xgroup_createconsumer(self, name: Any, groupname: Any, consumername: Any) -> int:
        """Make a consumer; 0 if it is there already."""
        made: int = self._run("XGROUP CREATECONSUMER", [name, groupname, consumername])
        return made

    def xgroup_delconsumer(self, name: Any, groupname: Any, consumername: Any) -> int:
        """Remove a consumer; return how many entries it had pending."""
        forgotten: int = self._run("XGROUP DELCONSUMER", [name, groupname, consumername])
        return forgotten

    # --- Pending entries ---------------------------------------------------------------------------

    def xpending(self, name: Any, groupname: Any) -> Any:
        """A summary of what a group has pending."""
        return self._run("XPENDING", [name, groupname], results.pending_summary)

    def xpending_range(
        self,
        name: Any,
        groupname: Any,
        min: Any,
        max: Any,
        count: int,
        consumername: Any = None,
        idle: int | None = None,
    ) -> Any:
        """The pending entries of a range of ids, one dictionary each."""
        if {min, max, count} == {None}:
            if idle is not None or consumername is not None:
                raise DataError(
                    "if XPENDING is provided with idle time or consumername,"
                    " it must be provided with min, max and count parameters"
                )
            return self.xpending(name, groupname)
        if min is None or max is None or count is None:
            raise DataError(
                "XPENDING must be provided with min, max and count parameters, or none of them."
            )
        pieces = [name, groupname]
        if arguments.is_counted("XPENDING idle must be a integer >= 0", idle):
            pieces += [b"IDLE", idle]
        arguments.is_counted("XPENDING count must be a integer >= 0", count)
        pieces += [min, max, count]
        if consumername:
            pieces.append(consumername)
        return self._run("XPENDING", pieces, results.pending_rows)

    def xclaim(
        self,
        name: Any,
        groupname: Any,
        consumername: Any,
        min_idle_time: int,
        message_ids: list[Any] | tuple[Any, ...],
        idle: int | None = None,
        time: int | None = None,
        retrycount: int | None = None,
        force: bool = False,
        justid: bool = False,
    ) -> Any:
        """Give pending entries to a consumer: a list of (id, fields), or of ids."""
        if not isinstance(min_idle_time, int) or min_idle_time < 0:
            raise DataError("XCLAIM min_idle_time must be a non negative integer")
        if not isinstance(message_ids, (list, tuple)) or not message_ids:
            raise DataError(
                "XCLAIM message_ids must be a non empty list or tuple of message IDs to claim"
            )
        pieces = [name, groupname, consumername, str(min_idle_time), *message_ids]
        options = {"idle": idle, "time": time, "retrycount": retrycount}
        for option, value in options.items():
            if value is not None:
                if not isinstance(value, int):
                    raise DataError(f"XCLAIM {option} must be an integer")
                pieces += [option.upper(), str(value)]
        for option, wanted in {"force": force, "justid": justid}.items():
            if wanted:
                if not isinstance(wanted, bool):
                    raise DataError(f"XCLAIM {option} must be a boolean")
                pieces.append(option.upper())
        return self._run("XCLAIM", pieces, results.as_it_is if justid else results.entries)

    def xautoclaim(
        self,
        name: Any,
        groupname: Any,
        consumername: Any,
        min_idle_time: int,
        start_id: Any = "0-0",
        count: int | None = None,
        justid: bool = False,
    ) -> Any:
        """Give idle entries to a consumer: [next id, entries, deleted ids], or a list of ids."""
        arguments.is_counted(
            "XAUTOCLAIM min_idle_time must be a nonnegative integer", min_idle_time
        )
        pieces = [name, groupname, consumername, min_idle_time, start_id]
        if arguments.is_counted("XPENDING count must be a integer >= 0", count):
            pieces += [b"COUNT", count]
        if justid:
            pieces.append(b"JUSTID")
            return self._run("XAUTOCLAIM", pieces, results.autoclaimed_ids)
        return self._run("XAUTOCLAIM", pieces, results.autoclaimed)

    # --- Looking -----------------------------------------------------------------------------------

    def xinfo_stream(self, name: Any, full: bool = False) -> Any:
        """What a stream is made of."""
        if full:
            return self._run("XINFO STREAM", [name, b"FULL"], results.full_stream_info)
        return self._run("XINFO STREAM", [name], results.stream_info)

    def xinfo_groups(self, name: Any) -> Any:
        """The groups of a stream."""
        return self._run("XINFO GROUPS", [name], results.list_of_pairs)

    def xinfo_consumers(self, name: Any, groupname: Any) -> Any:
        """The consumers of a group."""
        return self._run("XINFO CONSUMERS", [name, groupname], results.list_of_pairs)
