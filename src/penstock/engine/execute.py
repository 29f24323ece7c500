"""The Engine: checks a command, runs it, then serves the blocked readers of the keys that it changed.

    execute(command, frame)     1 arity   2 the time   3 run   4 waiters of the touched keys run again

A transaction calls `run` for each of its commands and `serve_waiters` at its end: keys that it creates and
removes again wake nobody. If effects are recorded, each command is a unit of effects, and so is each command
that a waiter runs again. The engine has no threads: its owner runs one command at a time.

A command that ends by anything but a reply or a CommandError was interrupted: by a signal, by a lack of
memory, by a bug. It may have made only some of its changes. Its effects are dropped, and `unfinished` stays
True: the data in memory must not be used any more. An owner with a log loads it again; `adopt` ends this
state.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from penstock.core.frame import Frame
from penstock.core.garbage import Garbage
from penstock.core.list_value import ListLimits
from penstock.core.stream import NodeLimits
from penstock.engine import compat, events
from penstock.engine.clock import Clock, Instant, SystemClock
from penstock.engine.commands import (
    databases,
    expiry,
    keys,
    list_edits,
    list_moves,
    list_pops,
    lists,
    numbers,
    retention,
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
    ranges,
    read,
    removal,
    settings,
)
from penstock.engine.commands.work import owners, send, settle, take
from penstock.engine.context import Context
from penstock.engine.keyspace import Keyspace
from penstock.engine.table import Command, QuickForm
from penstock.engine.waiters import ALIKE, ALIKE_IN_ERRORS, Blocked, Waiter
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
from penstock.reply import ReplyWriter

DATABASES = 16

TABLE: dict[str, Command] = {
    command.name: command
    for module in (
        *(append, removal, settings, ranges, read, groups, claims, info, extension, append_batch),
        *(take, settle, send, owners, retention),
        *(strings, numbers, substrings, keys, scan, databases, expiry),
        *(lists, list_edits, list_pops, list_moves),
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
    """Keys, commands and blocked readers, in memory.

    Run: execute, execute_quick, try_quick, run, run_quick, serve_waiters, begin_unit, end_unit, abandon_unit.
    Waiting: park, unpark, retry. Time: expire_due, let_expire. Loading: spare, adopt. Inside: context,
    waiters, limits, list_limits, expired_keys.
    `unfinished`: a command is running, or was interrupted.
    """

    __slots__ = ("context", "expired_keys", "limits", "list_limits", "unfinished", "waiters")

    def __init__(
        self,
        clock: Clock | None = None,
        compat_version: str | None = None,
        databases: int = DATABASES,
        like: Engine | None = None,
    ) -> None:
        """`like`: share the limits of another engine and its behaviour."""
        self.limits: NodeLimits = NodeLimits() if like is None else like.limits
        self.list_limits: ListLimits = ListLimits() if like is None else like.list_limits
        level = compat.DEFAULT if compat_version is None else compat.level(compat_version)
        if like is None:
            self.limits.lag_rule = level.lag_rule
        instant = Instant(SystemClock() if clock is None else clock)
        garbage = Garbage()
        keyspaces = [
            Keyspace(index, self.limits, self.list_limits, instant, garbage)
            for index in range(databases)
        ]
        self.context = Context(keyspaces, instant, level)
        self.waiters = self.context.waiters
        self.expired_keys = 0
        self.unfinished = False
        for keyspace in keyspaces:
            keyspace.on_expired = self._expire

    def spare(self) -> Engine:
        """An empty engine of the same kind, to load data into while this one keeps running."""
        made = Engine(databases=len(self.context.databases), like=self)
        made.context.compat = self.context.compat
        return made

    def replace_broken(self, loaded: Engine) -> None:
        """After an interrupted command: take the data of a spare engine, and drop that command."""
        self.context.start_over()
        self.adopt(loaded)

    def forget_broken(self) -> None:
        """After an interrupted command, if nothing can be loaded: continue with the data in memory."""
        self.context.start_over()
        for keyspace in self.context.databases:
            self.context.touch_waiting(keyspace)
        self.serve_waiters()
        self.unfinished = False

    def adopt(self, loaded: Engine) -> None:
        """Replace the data by that of a spare engine; serves waiters and breaks watches."""
        context = self.context
        self.unfinished = True
        for keyspace, other in zip(context.databases, loaded.context.databases, strict=True):
            for key in keyspace.watches:
                keyspace.changed(key)
            keyspace.swap_with(other)
            other.clear_into(context.garbage)
            context.touch_waiting(keyspace)
        loaded.let_expire(
            False
        )  # it refers to itself thereby, and no garbage collector runs in a server
        self.serve_waiters()
        self.unfinished = False

    def execute(self, command: Command, frame: Frame) -> Any:
        """Read the time, run one command and return its reply, or a Blocked. Raises: CommandError."""
        if not command.takes(frame.count):
            raise wrong_arity(command.name)
        self.context.instant.advance()
        return self.execute_now(command, frame)

    def execute_now(self, command: Command, frame: Frame) -> Any:
        """As execute, for a caller that has already checked the arity and read the time."""
        context = self.context
        self.unfinished = True
        try:
            if context.effects is None:
                reply = self._call(command, frame)
            else:
                reply = self._run_recorded(command, frame)
        except CommandError:
            self.serve_waiters()  # a lookup may have removed an expired key
            self.unfinished = False
            raise
        if context.touched:
            self.serve_waiters()
        self.unfinished = False
        return reply

    def execute_quick(self, quick: QuickForm, frame: Frame, reply: ReplyWriter) -> bool:
        """As execute_now, by the command's quick form; False if the full form must run instead.

        Raises: CommandError, CoreError. Nothing has changed then. The full form must run: it fails in the
        same way and words the error. They are not caught here, because that takes as long as a PING.
        """
        context = self.context
        self.unfinished = True
        if context.effects is None:
            done = quick.run(context, frame, reply)
        else:
            done = self._run_quick_recorded(quick, frame, reply)
        if context.touched:
            self.serve_waiters()
        self.unfinished = False
        return done

    def try_quick(self, quick: QuickForm, frame: Frame, reply: ReplyWriter) -> bool:
        """As execute_quick; False as well if the quick form has failed."""
        try:
            return self.execute_quick(quick, frame, reply)
        except (CommandError, CoreError):
            self.unfinished = False
            return False

    def run_quick(self, quick: QuickForm, frame: Frame, reply: ReplyWriter) -> bool:
        """As try_quick, without serving waiters."""
        try:
            if self.context.effects is None:
                return quick.run(self.context, frame, reply)
            return self._run_quick_recorded(quick, frame, reply)
        except (CommandError, CoreError):
            return False

    def run(self, command: Command, frame: Frame) -> Any:
        """As execute_now, without serving waiters. Raises: CommandError."""
        if self.context.effects is None:
            return self._call(command, frame)
        return self._run_recorded(command, frame)

    def _call(self, command: Command, frame: Frame) -> Any:
        """Run a command; an exception of core becomes Redis's error reply."""
        try:
            return command.run(self.context, frame)
        except CoreError as error:
            raise worded(error) from None

    def begin_unit(self) -> None:
        """Start a unit: a transaction. Ends with end_unit or abandon_unit."""
        self.unfinished = True
        if self.context.effects is not None:
            self.context.effects.begin()

    def end_unit(self) -> None:
        """End the unit: keep its effects and serve the waiters of the keys it changed."""
        if self.context.effects is not None:
            self.context.effects.end()
        self.serve_waiters()
        self.unfinished = False

    def abandon_unit(self) -> None:
        """The unit was interrupted: drop its effects. The data in memory must not be used any more."""
        if self.context.effects is not None:
            self.context.effects.abandon()

    def _run_recorded(self, command: Command, frame: Frame) -> Any:
        """Run a command and pass its effects to the sink: the words it recorded, or its own."""
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

    def _run_quick_recorded(self, quick: QuickForm, frame: Frame, reply: ReplyWriter) -> bool:
        """As _run_recorded, for a quick form."""
        context = self.context
        effects = context.effects
        assert effects is not None
        changes = context.dirty - self.expired_keys
        context.recorded = False
        effects.begin()
        try:
            done = quick.run(context, frame, reply)
            if not context.recorded and context.dirty - self.expired_keys != changes:
                effects.verbatim(context.keyspace.index, frame)
        except (CommandError, CoreError):
            effects.end()
            raise
        except BaseException:
            effects.abandon()
            raise
        effects.end()
        return done

    def park(self, waiter: Waiter) -> None:
        """Let a blocked command wait. The caller calls unpark when it stops waiting."""
        self.waiters.park(waiter)
        self.context.waiting = self.waiters.count

    def unpark(self, waiter: Waiter) -> None:
        """Remove a waiter from its queues: it was served, timed out, or its caller left. Safe to repeat."""
        if not waiter.done:
            self.waiters.remove(waiter)
            self.context.waiting = self.waiters.count

    def serve_waiters(self) -> None:
        """Run the waiters of the touched keys again, and then those of the keys that these touch.

        This ends, because a served waiter no longer waits.
        """
        context = self.context
        selected = context.keyspace
        while context.touched:
            places = dict.fromkeys(context.touched)
            context.touched = []
            for index, key in places:
                self._serve_key(context.databases[index], key)
        context.keyspace = selected

    def _serve_key(self, keyspace: Keyspace, key: bytes) -> None:
        """Serve the lines of a key until the first of each finds nothing, in the order of blocking."""
        lines = keyspace.awaited.get(key, {})
        firsts = [(next(iter(line)).ticket, name) for name, line in lines.items()]
        heapq.heapify(firsts)
        while firsts:
            _, name = heapq.heappop(firsts)
            line = lines.get(name)
            if line and self._serve(next(iter(line))) and line:
                heapq.heappush(firsts, (next(iter(line)).ticket, name))

    def _serve(self, waiter: Waiter) -> bool:
        """Run a waiting command again; False if it keeps waiting."""
        context = self.context
        context.keyspace = waiter.keyspace
        context.retrying = True
        try:
            reply = self.run(waiter.command, waiter.frame)
            if isinstance(reply, Blocked):
                if reply.retry_ms is not None:
                    waiter.keep_waiting(reply.retry_ms)
                return False
            waiter.reply = reply
        except CommandError as error:
            waiter.error = error.with_traceback(None)  # the traceback refers to the waiter
        finally:
            context.retrying = False
        # In this order: if interrupted in between, the waiter is still in its queues and removes itself.
        common = ALIKE if waiter.error is None else ALIKE_IN_ERRORS
        if waiter.reply_form and waiter.alike >= common:
            alike = self.waiters.alike(waiter)
            waiter.wake_all(alike)
            self.waiters.remove_all(alike)
            context.waiting = self.waiters.count
        else:
            waiter.wake()
            self.unpark(waiter)
        return True

    def retry(self, waiter: Waiter) -> None:
        """Run a waiter's command again: it is time to (retry_ms). Those that blocked before it run first."""
        if waiter.done:
            return
        context = self.context
        context.instant.advance()
        self.unfinished = True
        context.touched += [(waiter.keyspace.index, key) for key in waiter.keys]
        self.serve_waiters()
        if not waiter.done:
            # It was left out if one with the same position found nothing. Its own run sets its next time.
            selected = context.keyspace
            self._serve(waiter)
            context.keyspace = selected
            self.serve_waiters()
        self.unfinished = False

    def let_expire(self, on: bool) -> None:
        """Whether expired keys are removed. If not, they are invisible until a command removes them."""
        for keyspace in self.context.databases:
            keyspace.on_expired = self._expire if on else None

    def expire_due(self, most: int) -> int:
        """Remove up to `most` expired keys of each database; return how many were removed."""
        context = self.context
        context.instant.advance()
        self.unfinished = True
        removed = 0
        for keyspace in context.databases:
            for key in keyspace.take_due(most):
                self._expire(keyspace, key)
                removed += 1
        self.serve_waiters()
        self.unfinished = False
        return removed

    def _expire(self, keyspace: Keyspace, key: bytes) -> None:
        """Remove an expired key, record its effect and notify watchers, listeners and waiters."""
        context = self.context
        selected = context.keyspace
        context.keyspace = keyspace
        keyspace.discard(key)
        self.expired_keys += 1
        if context.effects is not None:
            context.effects.words(keyspace.index, [b"DEL", key])
        context.changed(key, events.EXPIRED, b"expired")
        context.touch(key)
        context.keyspace = selected
