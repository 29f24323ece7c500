"""Removes entries of a stream by id: XDEL."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine import events
from penstock.engine.arguments import ids_from
from penstock.engine.context import Context
from penstock.engine.table import ONE_KEY, Command, Flags


def xdel(context: Context, frame: Frame) -> int:
    """Remove entries by id; all ids are parsed before the first is removed."""
    stream = context.keyspace.stream_at(frame, 1)
    if stream is None:
        return 0
    ids = ids_from(frame, 2)
    removed = 0
    for entry_id in ids:
        if stream.delete(entry_id):
            removed += 1
    if removed:
        context.changed(frame.piece(1), events.STREAM, b"xdel")
        context.dirty += removed - 1  # every entry is a change
    return removed


COMMANDS = (
    Command(
        "XDEL",
        xdel,
        -3,
        Flags.WRITE | Flags.FAST,
        ONE_KEY,
        "Remove entries from a stream by id.",
        syntax="key id [id ...]",
        since="5.0.0",
        complexity="O(1) for each id",
        group="stream",
    ),
)
