"""The command table: one row says all there is to say of a command.

A row is made next to its function, at the end of the module in engine/commands; `TABLE` gathers them.
Containers (XGROUP, XINFO) have a row for each subcommand, named with a space: `XGROUP CREATE`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Flag, auto
from typing import Any

from penstock.core.frame import Frame
from penstock.engine.context import Context


class Flags(Flag):
    """What a command does to the data and to the server."""

    WRITE = auto()
    READ = auto()
    FAST = auto()
    BLOCKING = auto()
    DENY_OOM = auto()


class Command:
    """One row: the name, the function, and what callers must know before they call it.

    `arity` counts the command's own words too; a negative one means "at least". The first key is at
    `key_at`; 0 where the keys' places depend on the arguments.
    """

    __slots__ = ("arity", "flags", "key_at", "name", "run", "summary")

    def __init__(
        self,
        name: str,
        run: Callable[[Context, Frame], Any],
        arity: int,
        flags: Flags,
        key_at: int,
        summary: str,
    ) -> None:
        self.name = name
        self.run = run
        self.arity = arity
        self.flags = flags
        self.key_at = key_at
        self.summary = summary

    def takes(self, words: int) -> bool:
        """Tell whether the command may have so many words."""
        return words == self.arity if self.arity >= 0 else words >= -self.arity
