"""The command table: one row describes one command.

A row is defined next to its function, at the end of the module in engine/commands (commands on data) or
server/commands (commands on a client or the server). Containers (XGROUP, CLIENT) have a row for each
subcommand, named with a space: `XGROUP CREATE`. The rows define arity, COMMAND and its documentation,
docs/commands.md, and the checks of a server before it runs a command.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag, auto
from typing import Any

from penstock.core.frame import Frame
from penstock.engine.context import Context
from penstock.reply import ReplyWriter


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
    NOT_QUEUED = auto()  # runs immediately inside MULTI
    WHILE_SUBSCRIBED = auto()  # allowed for a RESP2 client with subscriptions
    PAUSED_WITH_WRITES = auto()  # changes no data, but CLIENT PAUSE WRITE delays it
    PROTECTED = auto()  # only if enable-debug-command allows it
    NO_ASYNC_LOADING = auto()  # not while a replica loads; shown only, never the case here


# First key, last key (-1: the last word, -2: the one before), distance between keys.
NO_KEYS = (0, 0, 0)
ONE_KEY = (1, 1, 1)
TWO_KEYS = (1, 2, 1)
ALL_KEYS = (1, -1, 1)
KEYS_WITH_VALUES = (1, -1, 2)
SUBCOMMAND_KEY = (2, 2, 1)


# What a command needs of a key, for the permissions of users.
NEEDS_READ = 1
NEEDS_WRITE = 2
_READ_WORDS = {"access"}
_WRITE_WORDS = {"update", "insert", "delete"}
_WRITES = ("RW update",)
_READS = ("RO access",)


def need_of(access: str) -> int:
    """What a command with these key flags needs: NEEDS_READ, NEEDS_WRITE, both or nothing.

    A command that neither returns nor changes the value (EXISTS) needs nothing.
    """
    words = set(access.split())
    return NEEDS_READ * bool(words & _READ_WORDS) | NEEDS_WRITE * bool(words & _WRITE_WORDS)


OLDEST = (7, 0)  # the lowest level (compat.py), which has all commands up to this version


class QuickForm:
    """The quick form of a command: it runs and writes its reply, without an object for the result.

    It stands beside the full form, in the same module, and does the same work with the same functions. Only
    two things may differ: how it reads its arguments, and that it writes its reply itself. It need not
    support all arguments: if it returns False, or raises an error that a client can cause, nothing has
    changed and no reply is written, and the full form runs. Servers use quick forms for clients without a
    special state (docs/quick-forms.md). All engines of a process share it, so it never changes.
    """

    __slots__ = ()

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        """Run the command and write its reply; False if the full form must run. The arity is checked."""
        raise NotImplementedError


class Command:
    """One row: the name, the function, and what callers must know before they call it.

    `arity` includes the command's own name; a negative one means "at least". `keys` gives the positions of
    the keys; `find_keys`, if given, finds those that depend on the arguments. `run` takes a Context and a
    Frame, or with `in_session` a Session and a Frame. `syntax` shows the arguments as in Redis's manual:
    [optional], one|another, repeated ... `is_newer`: the lowest level does not have the command. `quick` is
    the command's quick form, if it has one.

    The rest is for the permissions of users:

    access          the key flags of Redis, one text per key; the last one holds for all further keys. By
                    default a command that writes does not read, and a command that reads returns the value
    find_access     finds the key flags, if they depend on the arguments
    channels        the positions of channels that are published or subscribed to, as `keys`
    patterns        the same for patterns of channels
    group_at        the position of the consumer group; 0 for none
    find_group      finds that position, if it depends on the arguments
    """

    __slots__ = (
        "access",
        "arity",
        "channels",
        "complexity",
        "find_access",
        "find_group",
        "find_keys",
        "flags",
        "group",
        "group_at",
        "in_session",
        "is_newer",
        "keys",
        "name",
        "patterns",
        "quick",
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
        quick: QuickForm | None = None,
        access: tuple[str, ...] | None = None,
        find_access: Callable[[Frame], str] | None = None,
        channels: tuple[int, int, int] = NO_KEYS,
        patterns: tuple[int, int, int] = NO_KEYS,
        group_at: int = 0,
        find_group: Callable[[Frame], int] | None = None,
    ) -> None:
        self.name = name
        self.run = run
        self.arity = arity
        self.flags = int(flags)
        self.keys = keys
        self.summary = summary
        self.syntax = syntax
        self.since = since
        self.is_newer = tuple(map(int, since.split(".")[:2])) > OLDEST
        self.complexity = complexity
        self.group = group
        self.find_keys = find_keys
        self.in_session = in_session
        self.quick = quick
        by_default = _WRITES if flags & Flags.WRITE else _READS
        self.access = by_default if access is None else access
        self.find_access = find_access
        self.channels = channels
        self.patterns = patterns
        self.group_at = group_at
        self.find_group = find_group

    def takes(self, words: int) -> bool:
        """Tell whether the command accepts this number of words."""
        return words == self.arity if self.arity >= 0 else words >= -self.arity

    def key_places(self, frame: Frame) -> list[int]:
        """The positions of the keys in a frame. Raises: CommandError for invalid arguments."""
        if self.find_keys is not None:
            return self.find_keys(frame)
        return places_in(frame, self.keys)

    def access_to(self, frame: Frame, key: int) -> str:
        """The key flags for the key with this number, from 0 on."""
        if self.find_access is not None:
            return self.find_access(frame)
        return self.access[min(key, len(self.access) - 1)]


def places_in(frame: Frame, places: tuple[int, int, int]) -> list[int]:
    """The positions that a range (first, last, step) stands for in a frame."""
    first, last, step = places
    if first == 0:
        return []
    return list(range(first, (frame.count + last if last < 0 else last) + 1, step))
