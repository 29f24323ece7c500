"""Finds the table row for a command, or the error for an unknown one.

    XADD s * k v            the row XADD
    xgroup create s g 0     the row XGROUP CREATE
    COMMAND                 the row COMMAND, which has subcommands and also works alone
    XGROUP                  no row: this container does not work alone

Names are matched in any case. The arity is not checked here. Cost: one dictionary lookup, two for a
subcommand, and the copy of each name.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core.frame import Frame
from penstock.engine.table import Command
from penstock.errors import no_such_command, no_such_subcommand, wrong_arity


class Lookup:
    """The rows of a table by name. `containers` holds the rows of each container by its name."""

    __slots__ = ("_alone_is_short", "_rows", "_subcommands", "containers")

    def __init__(self, rows: Iterable[Command], alone_is_short: bool = False) -> None:
        """`alone_is_short`: how to report an unknown command without arguments (Compat)."""
        self._alone_is_short = alone_is_short
        self._rows: dict[bytes, Command] = {}
        self._subcommands: dict[bytes, dict[bytes, Command]] = {}
        self.containers: dict[str, list[Command]] = {}
        for row in rows:
            name, _, word = row.name.partition(" ")
            if word:
                self._subcommands.setdefault(name.encode(), {})[word.encode()] = row
                self.containers.setdefault(name, []).append(row)
            else:
                self._rows[name.encode()] = row

    def find(self, frame: Frame) -> Command:
        """The row for a frame with at least one word. Raises: CommandError if there is none."""
        given = frame.piece(0)
        name = given.upper()
        subcommands = self._subcommands.get(name)
        if subcommands is not None and frame.count > 1:
            row = subcommands.get(frame.piece(1).upper())
            if row is None:
                raise no_such_subcommand(name.decode(), frame.piece(1))
            return row
        row = self._rows.get(name)
        if row is not None:
            return row
        if subcommands is not None:
            raise wrong_arity(name.decode())
        words = [frame.piece(at) for at in range(1, frame.count)]
        raise no_such_command(given, words, self._alone_is_short)
