"""Running a command: check it, run it, then let those who waited for what it changed have their turn.

    execute(command, frame)     1 arity   2 the time   3 run   4 waiters of the touched keys run again

A transaction calls `run` for each of its commands and `serve_waiters` at its end: what it makes and takes
away again wakes nobody. Where effects are kept, each command is a unit of them, and so is each that a
waiter runs again. The engine knows no thread: its owner calls one command at a time.

A command that ends by anything but a reply or a CommandError was broken off: by a signal, for want of
memory, by a bug. It may have changed a part of what it was to change. Its effects are dropped, and
`unfinished` stays True: what is in memory must not be used any more. An owner that keeps a log reads it
again; `adopt` ends the state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from penstock.core.frame import Frame
from penstock.core.list_value import ListLimits
from penstock.core.stream import NodeLimits
from penstock.engine import compat, events
from penstock.engine.clock import Clock, Instant, SystemClock
from penstock.engine.commands import (
    databases,
    expiry,
    keys,
    list_moves,
    lists,
    numbers,
    scan,
    strings,
    substrings,
)
from penstock.engine.commands.streams import (
    append,
    append_batch,
    claims,
    extension,
    groups,
    info,
    read,
)
from penstock.engine.context import Context
from penstock.engine.keyspace import Keyspace
from penstock.engine.table import Command
from penstock.engine.waiters import Blocked, Waiter
from penstock.errors import (
    CommandError,
    CoreError,
    IDNotAboveLast,
    IDsExhausted,
    InvalidID,
    NoIDAbove,
    NoIDBelow,
    TooLarge,
    elements_too_large,
    id_not_above_top,
    ids_exhausted,
    invalid_stream_id,
    wrong_arity,
)

DATABASES = 16

TABLE: dict[str, Command] = {
    command.name: command
    for module in (
        *(append, read, groups, claims, info, extension, append_batch),
        *(strings, numbers, substrings, keys, scan, databases, expiry),
        *(lists, list_moves),
    )
    for command in module.COMMANDS
}

_WORDING: dict[type[CoreError], Callable[[], CommandError]] = {
    InvalidID: invalid_stream_id,
    NoIDAbove: lambda: CommandError("invalid start ID for the interval"),
    NoIDBelow: lambda: CommandError("invalid end ID for the interval"),
    IDNotAboveLast: id_not_above_top,
    IDsExhausted: ids_exhausted,
    TooLarge: elements_too_large,
}


def worded(error: CoreError) -> CommandError:
    """Redis's error reply for an exception of core."""
    return _WORDING[type(error)]()


class Engine:
    """Keys, commands and waiting readers, in memory.

    Run: execute, run, serve_waiters, begin_unit, end_unit, abandon_unit. Waiting: park, unpark. Time:
    expire_due. Loading: spare, adopt. Inside: context, waiters, limits, list_limits, expired_keys.
    `unfinished`: a command runs, or was broken off.
    """

    __slots__ = ("context", "expired_keys", "limits", "list_limits", "unfinished", "waiters")

    def __init__(
        self,
        clock: Clock | None = None,
        compat_version: str | None = None,
        databases: int = DATABASES,
        like: Engine | None = None,
    ) -> None:
        """`like`: share the limits of another engine, and behave as it does."""
        self.limits: NodeLimits = NodeLimits() if like is None else like.limits
        self.list_limits: ListLimits = ListLimits() if like is None else like.list_limits
        level = compat.NEWEST if compat_version is None else compat.level(compat_version)
        instant = Instant(SystemClock() if clock is None else clock)
        keyspaces = [
            Keyspace(index, self.limits, self.list_limits, instant) for index in range(databases)
        ]
        self.context = Context(keyspaces, instant, level)
        self.waiters = self.context.waiters
        self.expired_keys = 0
        self.unfinished = False
        for keyspace in keyspaces:
            keyspace.on_expired = self._expire

    def spare(self) -> Engine:
        """An empty engine of the same kind, to load data into while this one goes on."""
        made = Engine(databases=len(self.context.databases), like=self)
        made.context.compat = self.context.compat
        return made

    def replace_broken(self, loaded: Engine) -> None:
        """After a command was broken off: have the data of a spare engine, and forget that command."""
        self.context.start_over()
        self.adopt(loaded)

    def forget_broken(self) -> None:
        """After a command was broken off, where nothing can be read again: go on with what is there."""
        self.context.start_over()
        for keyspace in self.context.databases:
            self.context.touch_waiting(keyspace)
        self.serve_waiters()
        self.unfinished = False

    def adopt(self, loaded: Engine) -> None:
        """Have the data of a spare engine in the place of one's own; who waits is served, watches break."""
        context = self.context
        self.unfinished = True
        for keyspace, other in zip(context.databases, loaded.context.databases, strict=True):
            for key in keyspace.watches:
                keyspace.changed(key)
            keyspace.swap_with(other)
            context.touch_waiting(keyspace)
        self.serve_waiters()
        self.unfinished = False

    def execute(self, command: Command, frame: Frame) -> Any:
        """Read the time, run one command and return its reply, or a Blocked. Raises: CommandError."""
        if not command.takes(frame.count):
            raise wrong_arity(command.name)
        self.context.instant.advance()
        return self.execute_now(command, frame)

    def execute_now(self, command: Command, frame: Frame) -> Any:
        """As execute, for a caller who has counted the words and read the time already."""
        context = self.context
        self.unfinished = True
        try:
            if context.effects is None:
                reply = self._call(command, frame)
            else:
                reply = self._run_recorded(command, frame)
        except CommandError:
            self.serve_waiters()  # a look at a key may have removed it
            self.unfinished = False
            raise
        if context.touched:
            self.serve_waiters()
        self.unfinished = False
        return reply

    def run(self, command: Command, frame: Frame) -> Any:
        """As execute_now, but those who wait go on waiting. Raises: CommandError."""
        if self.context.effects is None:
            return self._call(command, frame)
        return self._run_recorded(command, frame)

    def _call(self, command: Command, frame: Frame) -> Any:
        """Run a command; what core refuses is raised as Redis's error reply."""
        try:
            return command.run(self.context, frame)
        except CoreError as error:
            raise worded(error) from None

    def begin_unit(self) -> None:
        """What runs from now on is one unit: a transaction. Then end_unit, or abandon_unit."""
        self.unfinished = True
        if self.context.effects is not None:
            self.context.effects.begin()

    def end_unit(self) -> None:
        """The unit is done: its effects count, and those who waited for what it changed run."""
        if self.context.effects is not None:
            self.context.effects.end()
        self.serve_waiters()
        self.unfinished = False

    def abandon_unit(self) -> None:
        """The unit was broken off: its effects are dropped, and memory must not be used any more."""
        if self.context.effects is not None:
            self.context.effects.abandon()

    def _run_recorded(self, command: Command, frame: Frame) -> Any:
        """Run a command and let the sink have what it did: the words that it recorded, or its own."""
        context = self.context
        effects = context.effects
        assert effects is not None
        database = context.keyspace.index
        changes = context.dirty - self.expired_keys  # an expired key has its own effect
        context.recorded = False
        effects.begin()
        try:
            reply = self._call(command, frame)
            if not context.recorded and context.dirty - self.expired_keys != changes:
                effects.verbatim(database, frame)
        except CommandError:
            effects.end()
            raise
        except BaseException:
            effects.abandon()
            raise
        effects.end()
        return reply

    def park(self, waiter: Waiter) -> None:
        """Let a blocked command wait. The caller waits, and calls unpark when it stops waiting."""
        self.waiters.park(waiter)
        self.context.waiting = self.waiters.count

    def unpark(self, waiter: Waiter) -> None:
        """Take a waiter out of its queues: it was served, timed out, or its caller left. Safe to repeat."""
        if not waiter.done:
            self.waiters.remove(waiter)
            self.context.waiting = self.waiters.count

    def serve_waiters(self) -> None:
        """Run again what waits for the touched keys, and for those that this touches in turn.

        This ends: whoever is served waits no longer.
        """
        context = self.context
        selected = context.keyspace
        while context.touched:
            places = dict.fromkeys(context.touched)
            context.touched = []
            for place in places:
                # A reader that finds nothing has found it for all who share its position. Without this
                # every entry would run the commands of all who wait, and a thousand may.
                read_up: set[Hashable] = set()
                for waiter in self.waiters.waiting_for(place):
                    if waiter.done:
                        continue
                    if waiter.position is None:
                        self._serve(waiter)
                    elif waiter.position not in read_up and not self._serve(waiter):
                        read_up.add(waiter.position)
        context.keyspace = selected

    def _serve(self, waiter: Waiter) -> bool:
        """Run a waiting command again; False if it goes on waiting."""
        context = self.context
        context.keyspace = waiter.keyspace
        context.retrying = True
        try:
            reply = self.run(waiter.command, waiter.frame)
            if isinstance(reply, Blocked):
                return False
            waiter.reply = reply
        except CommandError as error:
            waiter.error = error.with_traceback(None)  # which would lead back to the waiter
        finally:
            context.retrying = False
        # In this order: interrupted in between, the waiter finds itself still in its queues, and leaves.
        waiter.wake()
        self.unpark(waiter)
        return True

    def expire_due(self, most: int) -> int:
        """Remove up to so many keys of each database whose time has come; return how many went."""
        context = self.context
        context.instant.advance()
        self.unfinished = True
        removed = 0
        for keyspace in context.databases:
            for key in keyspace.take_due(most):
                self._expire(keyspace, key)
                removed += 1
            keyspace.drop_idle_index()
        self.serve_waiters()
        self.unfinished = False
        return removed

    def _expire(self, keyspace: Keyspace, key: bytes) -> None:
        """Remove a key whose time has come, and tell whom it concerns."""
        context = self.context
        selected = context.keyspace
        context.keyspace = keyspace
        keyspace.remove(key)
        self.expired_keys += 1
        if context.effects is not None:
            context.effects.words(keyspace.index, [b"DEL", key])
        context.changed(key, events.EXPIRED, b"expired")
        context.touch(key)
        context.keyspace = selected
