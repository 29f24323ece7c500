"""The commands of a pipeline: recorded first, then run without releasing the lock in between.

    pipe.xack("jobs", "g", i)    recorded(Database.xack, ...)  ->  CommandCall
    pipe.xadd("done", {...})     recorded(Database.xadd, ...)  ->  CommandCall
    pipe.execute()               Transaction([...])            ->  one unit of effects, one wait for the disk

As between MULTI and EXEC: a command that is refused does not stop the others, a blocking read does not block,
and blocked readers are served after the last command. The log gets the effects between MULTI and EXEC, so
recovery applies all of them or none.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from penstock.embedded.database import Database
from penstock.embedded.runner import Call, CommandCall, Runner
from penstock.engine.execute import Engine
from penstock.engine.table import Command
from penstock.errors import CommandError, wrong_arity

if TYPE_CHECKING:
    from penstock.server.session.transaction import Watching

P = ParamSpec("P")

_SHOWN_CHARACTERS_MAX = 100


class Recorder(Database):
    """A Database whose methods keep the call that they make instead of running it."""

    __slots__ = ("call",)

    def __init__(self) -> None:
        self._calls = []
        self._decode = False
        self._closed = True  # nothing to close
        self.call = CommandCall()

    def _new_call(self, command: Command, shape: Callable[[Any], Any] | None) -> CommandCall:
        self.call.begin(command, shape)
        return self.call

    def _perform(self, call: CommandCall) -> Any:
        return None


def recorded(
    method: Callable[Concatenate[Any, P], object], *args: P.args, **options: P.kwargs
) -> CommandCall:
    """The call that a method of Database would run. Raises: DataError."""
    recorder = Recorder()
    method(recorder, *args, **options)
    return recorder.call


class Transaction(Call):
    """Several commands that run without releasing the lock in between.

    Its reply is a list of replies and CommandErrors, or None if a watched key has changed. `is_atomic`: the
    commands are one unit of the log and see one time, as in Redis; otherwise each is its own unit.
    """

    __slots__ = ("_is_atomic", "_watching", "calls")

    def __init__(
        self, calls: list[CommandCall], is_atomic: bool, watching: Watching | None
    ) -> None:
        Call.__init__(self, _writes(calls))
        self.calls = calls
        self._is_atomic = is_atomic
        self._watching = watching
        if is_atomic:
            _check_words(calls)

    def perform(self, runner: Runner) -> Any:
        """Run the commands."""
        engine = runner._engine
        context = engine.context
        if self._is_atomic:
            self._check_known(engine)
        context.instant.advance()
        if self._is_atomic and self._watching is not None and self._watching.broken:
            return None
        context.may_block = False
        try:
            return self._run_as_unit(engine) if self._is_atomic else self._run_each(engine)
        finally:
            context.may_block = True

    def _check_known(self, engine: Engine) -> None:
        """Refuse the whole transaction if the level does not have a command, as MULTI does."""
        for number, call in enumerate(self.calls, 1):
            try:
                call.check_known(engine)
            except CommandError as error:
                raise numbered(error, number, call) from None

    def _run_as_unit(self, engine: Engine) -> list[Any]:
        replies: list[Any] = []
        engine.begin_unit()
        try:
            for call in self.calls:
                try:
                    reply = engine.run(call.command, call.frame)
                    # Shaped at once: the next command may trim the entries that the reply refers to.
                    replies.append(reply if call.shape is None else call.shape(reply))
                except CommandError as error:
                    replies.append(error)
        except BaseException:
            engine.abandon_unit()
            raise
        engine.end_unit()
        return replies

    def _run_each(self, engine: Engine) -> list[Any]:
        replies: list[Any] = []
        for call in self.calls:
            try:
                call.check_known(engine)
                reply = engine.execute(call.command, call.frame)
                replies.append(reply if call.shape is None else call.shape(reply))
            except CommandError as error:
                replies.append(error)
        return replies


def _writes(calls: list[CommandCall]) -> bool:
    return any([call.writes for call in calls])  # noqa: C419 - a list: a generator expression is a closure


def _check_words(calls: list[CommandCall]) -> None:
    """Refuse the whole transaction if a command has the wrong number of words, as MULTI does."""
    for number, call in enumerate(calls, 1):
        if not call.command.takes(call.frame.count):
            raise numbered(wrong_arity(call.command.name), number, call)


def numbered(error: CommandError, number: int, call: CommandCall) -> CommandError:
    """Say in the text of an error which command of a pipeline it is about, with the text of redis-py."""
    frame = call.frame
    words = [frame.piece(index).decode("utf-8", "replace") for index in range(frame.count)]
    shown = textwrap.shorten(
        " ".join(words), _SHOWN_CHARACTERS_MAX, placeholder="...", break_long_words=True
    )
    error.args = (f"Command # {number} ({shown}) of pipeline caused error: {error}",)
    return error
