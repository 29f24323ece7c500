"""Runs ordinary commands inside another command: each changes data and records its effect as usual."""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.engine.commands import keys, strings
from penstock.engine.commands.streams import append, claims, groups, read, removal
from penstock.engine.context import Context
from penstock.engine.table import Command, Flags

_ROWS: dict[str, Command] = {
    row.name: row
    for module in (append, claims, groups, read, removal, strings, keys)
    for row in module.COMMANDS
}


def call(context: Context, name: str, *words: bytes) -> Any:
    """Run a command by its name and arguments; return its reply. Raises: CommandError, CoreError."""
    frame = Frame()
    for part in name.split(" "):
        frame.add(part.encode())
    for word in words:
        frame.add(word)
    row = _ROWS[name]
    changes = context.dirty
    context.recorded = False
    reply = row.run(context, frame)
    if (
        context.effects is not None
        and row.flags & Flags.WRITE
        and not context.recorded
        and context.dirty != changes
    ):
        context.record([frame.piece(at) for at in range(frame.count)])
    context.recorded = True  # the outer command is not recorded
    return reply
