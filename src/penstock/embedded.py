"""The embedded database: the engine in this process, with redis-py's names, arguments and results.

    db = penstock.open()
    db.xadd("orders", {"sku": "A1", "qty": 2})        ->  b"1700000000000-0"

A program written for `redis.Redis` runs on this class unchanged as far as streams go: the same method
builds the same words, the engine answers them, and the answer gets the shape that the pinned redis-py gives
it by default. Errors carry the same texts: DataError for what redis-py refuses itself, CommandError for
what a server would refuse.

Threads may share a Database. One lock is held while a command runs; a blocking read waits outside of it, and
whoever adds the entry runs the waiting read and hands over its result.

`words.py` makes the words of a command out of redis-py's arguments, `shapes.py` its results out of replies.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from penstock import shapes, words
from penstock.core.frame import Frame
from penstock.core.stream import NODE_BYTES_MAX, NODE_ENTRIES_MAX
from penstock.engine.clock import Clock
from penstock.engine.execute import TABLE, Engine
from penstock.engine.waiters import Blocked
from penstock.errors import ConfigError, DatabaseClosed, DataError
from penstock.reply import NULL_ARRAY
from penstock.thread_waiter import ThreadWaiter
from penstock.turn_lock import TurnLock

if TYPE_CHECKING:
    from penstock.server.shared import Serving

_LIMIT_MAX = 2**40  # beyond any machine, and a hundred times it still fits 64 bits
_WAIT_SECONDS_MAX = threading.TIMEOUT_MAX  # about 292 years
_XADD = TABLE["XADD"]
_WORDS = {name: [word.encode() for word in name.split(" ")] for name in TABLE}


def open(
    *,
    decode_responses: bool = False,
    compat_version: str | None = None,
    clock: Clock | None = None,
    node_bytes_max: int = NODE_BYTES_MAX,
    node_entries_max: int = NODE_ENTRIES_MAX,
) -> Database:
    """A new database in memory.

    decode_responses: give text instead of bytes. compat_version: behave as this Redis ("7.0", "7.2",
    "7.4"; the newest by default). clock: where ids get their time from; the system's clock by default.
    node_bytes_max, node_entries_max: how large a node of a stream may become, 0 for no limit.
    """
    for name, value in (("node_bytes_max", node_bytes_max), ("node_entries_max", node_entries_max)):
        if type(value) is not int or not 0 <= value <= _LIMIT_MAX:
            raise ConfigError(f"{name} is a number from 0 to {_LIMIT_MAX}, not {value!r}")
    engine = Engine(clock, compat_version)
    engine.limits.bytes_max = node_bytes_max
    engine.limits.entries_max = node_entries_max
    return Database(engine, decode_responses)


class Database:
    """Streams in this process. The methods are those of redis.Redis; see there for their arguments."""

    __slots__ = ("_closed", "_decode", "_engine", "_frame", "_serving", "_turn")

    def __init__(self, engine: Engine, decode_responses: bool) -> None:
        self._turn = TurnLock()
        self._engine = engine
        self._frame = Frame()
        self._decode = decode_responses
        self._closed = False
        self._serving: list[Serving] = []

    def serve(
        self,
        port: int = 6379,
        host: str = "127.0.0.1",
        unixsocket: str | None = None,
        password: str | None = None,
    ) -> Serving:
        """Put the database on a socket, for any client of Redis, while this program goes on using it.

        port: 0 for any that is free; the result's `port` is it. The result's close(), or the end of its
        `with`, ends the serving; so does close() of the database. Raises: ConfigError.
        """
        # Here, for most programs that embed a database need no event loop.
        from penstock.server import directives, shared  # noqa: PLC0415

        if self._closed:
            raise DatabaseClosed("the database is closed")
        config = directives.default_config()
        config.set_at_start("port", str(port))
        config.set_at_start("bind", host)
        config.set_at_start("unixsocket", unixsocket or "")
        config.set_at_start("requirepass", password or "")
        serving = shared.serve(self._engine, self._turn, config)
        self._serving.append(serving)
        return serving

    def close(self) -> None:
        """End the use of the database; who still waits in a blocking read gets DatabaseClosed."""
        while self._serving:
            self._serving.pop().close()
        self._turn.acquire()
        try:
            self._closed = True
            for waiter in self._engine.waiters.all():
                waiter.error = DatabaseClosed("the database was closed while this call waited")
                self._engine.give_up(waiter)
                waiter.wake()
        finally:
            self._turn.release()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a penstock.Database cannot be copied or pickled: open another one")

    # --- Running a command -------------------------------------------------------------------------

    def _run(
        self, name: str, pieces: list[Any], shape: Callable[[Any], Any] = shapes.as_it_is
    ) -> Any:
        """Run a command given by its words and bring the reply into shape."""
        command = TABLE[name]
        self._turn.acquire()
        try:
            self._begin(_WORDS[name])
            for piece in pieces:
                self._put(piece)
            reply = self._engine.execute(command, self._frame)
            if isinstance(reply, Blocked):
                waiter = ThreadWaiter(command, reply, self._engine.context.keyspace, shape)
                reply = self._wait(waiter, reply.timeout_ms)
            else:
                reply = shape(reply)
        finally:
            self._turn.release()
        return shapes.decoded(reply) if self._decode else reply

    def _begin(self, words: list[bytes]) -> None:
        if self._closed:
            raise DatabaseClosed("the database is closed")
        self._frame.clear()
        for word in words:
            self._frame.add(word)

    def _put(self, value: Any) -> None:
        """Add one argument as redis-py would encode it. Raises: DataError for what it would refuse."""
        kind = type(value)
        if kind is str:
            self._frame.add_text(value)
        elif kind is bytes:
            self._frame.add(value)
        elif isinstance(value, bool) or not isinstance(
            value, (str, bytes, bytearray, memoryview, int, float)
        ):
            raise DataError(
                f"Invalid input of type: '{kind.__name__}'. "
                "Convert to a bytes, string, int or float first."
            )
        elif isinstance(value, (int, float)):
            self._frame.add_text(repr(value))
        elif isinstance(value, str):
            self._frame.add(value.encode())
        else:
            self._frame.add(bytes(value))

    def _wait(self, waiter: ThreadWaiter, timeout_ms: int) -> Any:
        """Sleep until the read is served or its time is over. The lock is open meanwhile."""
        self._engine.park(waiter)
        self._turn.release()
        try:
            waiter.served.wait(min(timeout_ms / 1000, _WAIT_SECONDS_MAX) if timeout_ms else None)
        finally:
            interrupt = self._take_turn_back()
            self._engine.give_up(waiter)
        if interrupt is not None:
            raise interrupt
        if waiter.error is not None:
            raise waiter.error
        return waiter.reply if waiter.served.is_set() else shapes.served(NULL_ARRAY)

    def _take_turn_back(self) -> BaseException | None:
        """Have the turn again, come what may: the caller will release it. Returns what came."""
        interrupt: BaseException | None = None
        while True:
            try:
                self._turn.acquire()
            except BaseException as error:  # noqa: BLE001 - raised by the caller, once it has the turn
                interrupt = error
            else:
                return interrupt

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
            words.check_newer_options(id, ref_policy, idmpauto, idmp)
        if maxlen is not None and (not isinstance(maxlen, int) or maxlen < 0):
            raise DataError("XADD maxlen must be non-negative integer")
        if not isinstance(fields, dict) or not fields:
            raise DataError("XADD fields must be a non-empty dict")
        self._turn.acquire()
        try:
            if self._closed:
                raise DatabaseClosed("the database is closed")
            frame = self._frame
            frame.clear()
            frame.add(b"XADD")
            self._put(name)
            if nomkstream:
                frame.add(b"NOMKSTREAM")
            if ref_policy is not None or idmpauto is not None or idmp is not None:
                for word in words.newer_options(ref_policy, idmpauto, idmp):
                    self._put(word)
            if maxlen is not None or minid is not None or limit is not None:
                threshold = None if maxlen is None else str(maxlen)
                for word in words.trim(threshold, approximate, minid, limit):
                    self._put(word)
            self._put(id)
            for field, value in fields.items():
                if type(field) is str:  # as _put, without the call
                    frame.add_text(field)
                else:
                    self._put(field)
                if type(value) is str:
                    frame.add_text(value)
                else:
                    self._put(value)
            reply = self._engine.execute(_XADD, frame)
        finally:
            self._turn.release()
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
        if ref_policy is not None and ref_policy not in words.REF_POLICIES:
            raise DataError("XTRIM ref_policy must be one of: KEEPREF, DELREF, ACKED")
        pieces = [name, *words.trim(maxlen, approximate, minid, limit)]
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
        return self._run("XRANGE", [name, min, max, *words.count("XRANGE", count)], shapes.entries)

    def xrevrange(self, name: Any, max: Any = "+", min: Any = "-", count: int | None = None) -> Any:
        """Entries from `max` down to `min`: a list of (id, fields)."""
        return self._run(
            "XREVRANGE", [name, max, min, *words.count("XREVRANGE", count)], shapes.entries
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
        pieces = words.block("XREAD", block) + words.limits("XREAD", count, max_count, max_size)
        return self._run("XREAD", pieces + words.streams("XREAD", streams), shapes.served)

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
        pieces += words.limits("XREADGROUP", count, max_count, max_size) + words.block(
            "XREADGROUP", block
        )
        if noack:
            pieces.append(b"NOACK")
        if claim_min_idle_time is not None:
            if not isinstance(claim_min_idle_time, int) or claim_min_idle_time < 0:
                raise DataError("XREADGROUP claim_min_idle_time must be a non-negative integer")
            pieces += [b"CLAIM", claim_min_idle_time]
        return self._run("XREADGROUP", pieces + words.streams("XREADGROUP", streams), shapes.served)

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
        return self._run("XPENDING", [name, groupname], shapes.pending_summary)

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
        if words.is_counted("XPENDING idle must be a integer >= 0", idle):
            pieces += [b"IDLE", idle]
        words.is_counted("XPENDING count must be a integer >= 0", count)
        pieces += [min, max, count]
        if consumername:
            pieces.append(consumername)
        return self._run("XPENDING", pieces, shapes.pending_rows)

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
        return self._run("XCLAIM", pieces, shapes.as_it_is if justid else shapes.entries)

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
        words.is_counted("XAUTOCLAIM min_idle_time must be a nonnegative integer", min_idle_time)
        pieces = [name, groupname, consumername, min_idle_time, start_id]
        if words.is_counted("XPENDING count must be a integer >= 0", count):
            pieces += [b"COUNT", count]
        if justid:
            pieces.append(b"JUSTID")
            return self._run("XAUTOCLAIM", pieces, shapes.autoclaimed_ids)
        return self._run("XAUTOCLAIM", pieces, shapes.autoclaimed)

    # --- Looking -----------------------------------------------------------------------------------

    def xinfo_stream(self, name: Any, full: bool = False) -> Any:
        """What a stream is made of."""
        if full:
            return self._run("XINFO STREAM", [name, b"FULL"], shapes.full_stream_info)
        return self._run("XINFO STREAM", [name], shapes.stream_info)

    def xinfo_groups(self, name: Any) -> Any:
        """The groups of a stream."""
        return self._run("XINFO GROUPS", [name], shapes.list_of_pairs)

    def xinfo_consumers(self, name: Any, groupname: Any) -> Any:
        """The consumers of a group."""
        return self._run("XINFO CONSUMERS", [name, groupname], shapes.list_of_pairs)
