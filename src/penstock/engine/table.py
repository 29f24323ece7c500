"""The command table: one row says all there is to say of a command.

A row is made next to its function, at the end of the module in engine/commands (what works on data) or
server/commands (what works on a client or on the server). Containers (XGROUP, CLIENT) have a row for each
subcommand, named with a space: `XGROUP CREATE`. From the rows come arity, COMMAND and its documentation,
docs/commands.md, and what a server checks before it runs a command.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag, auto
from typing import Any

from penstock.core.frame import Frame


class Flags(IntFlag):
    """What a command does to the data and to the server, and where it may be used."""

    WRITE = auto()
    READ = auto()
    FAST = auto()
    BLOCKING = auto()
    DENY_OOM = auto()
    ADMIN = auto()
    PUBSUB = auto()
    NO_AUTH = auto()
    NO_MULTI = auto()
    NO_SCRIPT = auto()
    LOADING = auto()
    STALE = auto()
    SKIP_MONITOR = auto()
    SKIP_SLOWLOG = auto()
    DANGEROUS = auto()
    CONNECTION = auto()
    KEYSPACE = auto()
    NOT_QUEUED = auto()  # runs at once inside of MULTI
    WHILE_SUBSCRIBED = auto()  # allowed to a RESP2 client that listens to channels
    PAUSED_WITH_WRITES = auto()  # changes no data, yet CLIENT PAUSE WRITE holds it back
    PROTECTED = auto()  # only where enable-debug-command allows it
    NO_ASYNC_LOADING = auto()  # not while a replica loads; shown, and never so here


# First key, last key (-1: the last word, -2: the one before), distance between keys.
NO_KEYS = (0, 0, 0)
ONE_KEY = (1, 1, 1)
TWO_KEYS = (1, 2, 1)
ALL_KEYS = (1, -1, 1)
KEYS_WITH_VALUES = (1, -1, 2)
SUBCOMMAND_KEY = (2, 2, 1)


class Command:
    """One row: the name, the function, and what callers must know before they call it.

    `arity` counts the command's own words too; a negative one means "at least". `keys` tells where the
    keys stand; `find_keys`, where given, finds those whose places depend on the arguments. `run` takes a
    Context and a Frame, or with `in_session` a Session and a Frame. `syntax` shows the arguments the way
    Redis's manual does: [optional], one|another, repeated ...
    """

    __slots__ = (
        "arity",
        "complexity",
        "find_keys",
        "flags",
        "group",
        "in_session",
        "keys",
        "name",
        "run",
        "since",
        "summary",
        "syntax",
    )

    def __init__(
        self,
        name: str,
        run: Callable[[Any, Frame], Any],
        arity: int,
        flags: Flags,
        keys: tuple[int, int, int],
        summary: str,
        *,
        syntax: str = "",
        since: str = "1.0.0",
        complexity: str = "O(1)",
        group: str = "",
        find_keys: Callable[[Frame], list[int]] | None = None,
        in_session: bool = False,
    ) -> None:
        self.name = name
        self.run = run
        self.arity = arity
        self.flags = int(flags)
        self.keys = keys
        self.summary = summary
        self.syntax = syntax
        self.since = since
        self.complexity = complexity
        self.group = group
        self.find_keys = find_keys
        self.in_session = in_session

    def takes(self, words: int) -> bool:
        """Tell whether the command may have so many words."""
        return words == self.arity if self.arity >= 0 else words >= -self.arity

    def key_places(self, frame: Frame) -> list[int]:
        """Where in a frame the keys stand. Raises: CommandError for arguments that make no sense."""
        if self.find_keys is not None:
            return self.find_keys(frame)
        first, last, step = self.keys
        if first == 0:
            return []
        return list(range(first, (frame.count + last if last < 0 else last) + 1, step))
