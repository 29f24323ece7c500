"""Running a command: check it, run it, then let those who waited for what it changed have their turn.

    execute(command, frame)     1 arity   2 run   3 waiters of the touched keys run again, in order

The engine knows no thread: whoever owns it calls one command at a time.
"""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.core.stream import NodeLimits
from penstock.engine import compat
from penstock.engine.clock import Clock, SystemClock
from penstock.engine.commands import append, claims, groups, info, read
from penstock.engine.context import Context
from penstock.engine.keyspace import Keyspace
from penstock.engine.table import Command
from penstock.engine.waiters import Blocked, Waiter, Waiters
from penstock.errors import CommandError, wrong_arity

TABLE: dict[str, Command] = {
    command.name: command
    for module in (append, read, groups, claims, info)
    for command in module.COMMANDS
}


class Engine:
    """Keys, commands and waiting readers, in memory.

    Run: execute. Waiting: park, give_up. Inside: context, waiters, limits.
    """

    __slots__ = ("context", "limits", "waiters")

    def __init__(self, clock: Clock | None = None, compat_version: str | None = None) -> None:
        self.limits = NodeLimits()
        level = compat.NEWEST if compat_version is None else compat.level(compat_version)
        self.context = Context(
            Keyspace(self.limits), SystemClock() if clock is None else clock, level
        )
        self.waiters = Waiters()

    def execute(self, command: Command, frame: Frame) -> Any:
        """Run one command and return its reply, or a Blocked. Raises: CommandError."""
        if not command.takes(frame.count):
            raise wrong_arity(command.name)
        context = self.context
        context.begin()
        reply = command.run(context, frame)
        if context.touched:
            self._serve_waiters(context.touched)
        return reply

    def park(self, waiter: Waiter) -> None:
        """Let a blocked command wait. The caller waits, and calls give_up when its time is over."""
        self.waiters.park(waiter)
        self.context.watched = self.waiters.count

    def give_up(self, waiter: Waiter) -> None:
        """Stop waiting, unless the waiter was served already."""
        if not waiter.done:
            self.waiters.free(waiter)
            self.context.watched = self.waiters.count

    def _serve_waiters(self, keys: list[bytes]) -> None:
        """Run again what waits for these keys. Serving touches nothing, so this ends."""
        for key in dict.fromkeys(keys):
            # A reader that finds nothing new in this key has found it for all of its group. Without this
            # every entry would run the commands of all who wait, and a thousand may.
            read_up: set[bytes] = set()
            for waiter in self.waiters.waiting_for(key):
                if waiter.group is None:
                    self._serve(waiter)
                elif waiter.group not in read_up and not self._serve(waiter):
                    read_up.add(waiter.group)

    def _serve(self, waiter: Waiter) -> bool:
        """Run a waiting command again; False if it goes on waiting."""
        context = self.context
        context.retrying = True
        try:
            reply = waiter.command.run(context, waiter.frame)
            if isinstance(reply, Blocked):
                return False
            waiter.reply = reply
        except CommandError as error:
            waiter.error = error
        finally:
            context.retrying = False
        self.give_up(waiter)
        waiter.wake()
        return True
