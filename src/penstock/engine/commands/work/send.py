"""Adds entries later, or once: PENSTOCK SEND.

A delayed entry waits in the stream `delayed`, as a pending row of the group DELAYED_GROUP. It is due when the
row has been idle for DELAY_WINDOW_MS. TAKE moves it to its stream in one step.

A mark is a string key. If it exists, nothing is added: an entry with the same name was sent before.
"""

from __future__ import annotations

from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.core.stream import ENTRY_BYTES_MAX
from penstock.engine.commands.streams.groups import group_or_none
from penstock.engine.commands.work.arguments import WorkArguments, work_keys
from penstock.engine.commands.work.calls import call
from penstock.engine.commands.work.owners import owner_or_none
from penstock.engine.commands.work.rows import DELAYING, LOOK_MS, SEEN_MAX
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, elements_too_large, ids_exhausted

DELAY_WINDOW_MS = 315_360_000_000  # ten years: the longest delay
DELAYED_GROUP = b"penstock"
MOVED_MAX = 100  # entries that one call moves


class Sending:
    """One entry to add: where, when, and under which mark."""

    __slots__ = ("_delay_ms", "_delayed", "_fields", "_mark", "_mark_ms", "_stream")

    def __init__(self, arguments: WorkArguments) -> None:
        """Read `stream delayed mark delay-ms mark-ms count field value ...`. Raises: CommandError."""
        stream, delayed, mark = arguments.key(), arguments.key(), arguments.key()
        self._delay_ms = arguments.number(0, DELAY_WINDOW_MS)
        self._mark_ms = arguments.number(1)
        self._fields = arguments.fields(arguments.number(2))
        if stream is None or (self._delay_ms and delayed is None):
            raise CommandError("an entry needs a stream, and a delayed one a stream to wait in")
        self._stream, self._delayed, self._mark = stream, delayed, mark

    def check(self, context: Context) -> None:
        """Make sure that nothing can fail later. Raises: CommandError."""
        for key in (self._stream, self._delayed):
            stream = None if key is None else context.keyspace.stream_or_none(key)
            if stream is not None and stream.last_ms == stream_id.MAX64:
                raise ids_exhausted()
        if sum(map(len, self._fields)) > ENTRY_BYTES_MAX // 2:
            raise elements_too_large()
        if self._mark is not None:
            owner_or_none(context, self._mark)

    def run(self, context: Context) -> bytes | None:
        """Add the entry; return its id, or None if its mark exists."""
        if self._mark is not None and context.keyspace.find(self._mark) is not None:
            return None
        if self._delay_ms and self._delayed is not None:
            added = _add_delayed(context, self._delayed, self._delay_ms, self._fields)
        else:
            added = call(context, "XADD", self._stream, b"*", *self._fields)
        if self._mark is not None:
            call(context, "SET", self._mark, added, b"PX", b"%d" % self._mark_ms)
        return added


def _add_delayed(context: Context, key: bytes, delay_ms: int, fields: list[bytes]) -> bytes:
    """Add an entry to the delayed ones, as a row that is due after a time."""
    if group_or_none(context.keyspace.stream_or_none(key), DELAYED_GROUP) is None:
        call(context, "XGROUP CREATE", key, DELAYED_GROUP, b"0", b"MKSTREAM")
    added: bytes = call(context, "XADD", key, b"*", *fields)
    idle = (b"IDLE", b"%d" % (DELAY_WINDOW_MS - delay_ms), b"FORCE", b"JUSTID")
    call(context, "XCLAIM", key, DELAYED_GROUP, DELAYING, b"0", added, *idle)
    return added


def move_due(context: Context, stream: bytes, delayed: bytes) -> None:
    """Move delayed entries that are due to their stream. Both keys are streams or missing."""
    waiting = context.keyspace.stream_or_none(delayed)
    group = group_or_none(waiting, DELAYED_GROUP)
    if waiting is None or group is None:
        return
    since_ms = context.now_ms() - DELAY_WINDOW_MS
    rows = group.pending_rows(stream_id.SMALLEST, stream_id.LARGEST, MOVED_MAX, None, since_ms)
    for row in rows:
        entries = waiting.range(row.id, row.id, 1).entries()
        if entries:
            call(context, "XADD", stream, b"*", *entries[0][1])
        call(context, "XACK", delayed, DELAYED_GROUP, row.id.text)
        call(context, "XDEL", delayed, row.id.text)


def delayed_waits(context: Context, delayed: bytes) -> list[int]:
    """How long until delayed entries may be due."""
    group = group_or_none(context.keyspace.stream_or_none(delayed), DELAYED_GROUP)
    if group is None:
        return []
    rows = group.pending_rows(stream_id.SMALLEST, stream_id.LARGEST, SEEN_MAX)
    now_ms = context.now_ms()
    waits = [max(0, DELAY_WINDOW_MS - max(0, now_ms - row.delivery_ms)) for row in rows]
    return [*waits, LOOK_MS] if len(waits) >= SEEN_MAX else waits


def penstock_send(context: Context, frame: Frame) -> bytes | None:
    """Add an entry, perhaps later, perhaps only if its mark is new. The id, or null."""
    arguments = WorkArguments(frame, 1, 3)
    sending = Sending(arguments)
    arguments.end()
    sending.check(context)
    context.recorded = True
    return sending.run(context)


COMMANDS = (
    Command(
        "PENSTOCK SEND",
        penstock_send,
        -12,
        Flags.WRITE | Flags.DENY_OOM,
        NO_KEYS,
        "Add an entry later, or once under a name.",
        syntax="numkeys key [key ...] stream-number delayed-number mark-number delay-ms mark-ms"
        " count field value [field value ...]",
        since="0.2.0",
        complexity="O(1)",
        group="penstock",
        find_keys=work_keys,
    ),
)
