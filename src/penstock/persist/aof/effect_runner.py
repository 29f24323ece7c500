"""Runs effects in an engine, one after the other: those of a log file, or of a replication stream.

    SELECT n               chooses the database of the effects after it
    MULTI ... EXEC         the effects between them run together, when EXEC is there
    everything else        is run as a command; its reply is dropped

The owner sets `Context.replaying` and the clock. An effect that the engine refuses is given to `on_refused`,
which may raise; otherwise the next one runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.core.frame import Frame
from penstock.engine.execute import Engine
from penstock.engine.lookup import Lookup
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, wrong_arity
from penstock.reply import ReplyWriter

_NUMBER_BYTES_MAX = 18


class BadOrder(Exception):
    """MULTI, EXEC or SELECT where it cannot be."""


class Unheard(ReplyWriter):
    """Takes the replies of quick forms: nobody waits for them."""

    __slots__ = ()

    def put(self, reply: Any) -> None:
        """See ReplyWriter."""

    def put_raw(self, data: bytes) -> None:
        """See ReplyWriter."""

    def put_bulk(self, data: bytes) -> None:
        """See ReplyWriter."""

    def put_int(self, number: int) -> None:
        """See ReplyWriter."""

    def put_id(self, ms_text: bytes, seq: int) -> None:
        """See ReplyWriter."""

    def put_served(self, key: bytes, entries: Any) -> None:
        """See ReplyWriter."""


class EffectRunner:
    """Runs effects: start, run. `commands` counts them; `in_transaction`: EXEC is still missing."""

    __slots__ = (
        "_context",
        "_engine",
        "_last",
        "_last_word",
        "_lookup",
        "_queued",
        "_unheard",
        "commands",
        "in_transaction",
        "on_refused",
    )

    def __init__(self, engine: Engine, rows: Iterable[Command]) -> None:
        self._engine = engine
        self._context = engine.context
        self._lookup = Lookup(rows)
        self._unheard = Unheard()
        self._last: Command | None = None
        self._last_word = b""
        self._queued: list[tuple[Command, Frame]] = []
        self.commands = 0
        self.in_transaction = False
        self.on_refused: Callable[[Frame, CommandError], None] | None = None

    def start(self) -> None:
        """A file or a stream begins: with database 0, outside of a transaction."""
        self._queued = []
        self.in_transaction = False
        self._context.keyspace = self._context.databases[0]

    def run(self, frame: Frame) -> None:
        """Run an effect, or queue it until EXEC. Raises: BadOrder, and what `on_refused` raises."""
        row = self._last
        if row is None or not frame.is_word(0, self._last_word):
            row = None if self._run_control(frame) else self._find(frame)
        if row is None:
            pass  # SELECT, MULTI, EXEC, or refused
        elif self.in_transaction:
            self._queued.append((row, frame.copy()))
        else:
            self._execute(row, frame)

    def _run_control(self, frame: Frame) -> bool:
        """Handle SELECT, MULTI and EXEC; False for all other commands."""
        if frame.count == 1 and frame.is_word(0, b"MULTI"):
            if self.in_transaction:
                raise BadOrder("MULTI within MULTI")
            self.in_transaction = True
        elif frame.count == 1 and frame.is_word(0, b"EXEC"):
            if not self.in_transaction:
                raise BadOrder("EXEC without MULTI")
            self.in_transaction = False
            self._execute_queued()
        elif frame.count == 2 and frame.is_word(0, b"SELECT"):
            if self.in_transaction:
                self._queued.append((_SELECT, frame.copy()))
            else:
                self._select(frame)
        else:
            return False
        return True

    def _execute_queued(self) -> None:
        """Run a transaction. If effects are recorded, it is one unit again."""
        queued, self._queued = self._queued, []
        effects = self._context.effects
        if effects is not None:
            effects.begin()
        try:
            for row, frame in queued:
                self._execute(row, frame)
        finally:
            if effects is not None:
                effects.end()

    def _find(self, frame: Frame) -> Command | None:
        try:
            row = self._lookup.find(frame)
        except CommandError as error:
            self._refuse(frame, error)
            return None
        if " " not in row.name:  # a container command has several rows with the same first word
            self._last = row
            self._last_word = row.name.encode()
        return row

    def _execute(self, row: Command, frame: Frame) -> None:
        try:
            if row is _SELECT:
                self._select(frame)
            elif row.takes(frame.count):
                if row.quick is None or not self._engine.run_quick(row.quick, frame, self._unheard):
                    self._engine.run(row, frame)
                self.commands += 1
            else:
                raise wrong_arity(row.name)
        except CommandError as error:
            self._refuse(frame, error)

    def _select(self, frame: Frame) -> None:
        text = frame.piece(1)
        databases = self._context.databases
        if not text.isdigit() or len(text) > _NUMBER_BYTES_MAX or int(text) >= len(databases):
            raise BadOrder(
                f"SELECT {text[:20].decode('ascii', 'replace')}: there are {len(databases)} databases"
                " (see the setting `databases`)"
            )
        self._context.keyspace = databases[int(text)]

    def _refuse(self, frame: Frame, error: CommandError) -> None:
        if self.on_refused is None:
            raise error
        self.on_refused(frame, error)


def _select_nothing(_context: object, _frame: Frame) -> None:
    """Stands for SELECT in a queued transaction. `_execute` calls `_select` instead."""


_SELECT = Command("SELECT", _select_nothing, 2, Flags(0), NO_KEYS, "Select a database.")
