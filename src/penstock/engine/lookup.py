"""Finding the row of a command by its first word, or its first two."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core.frame import Frame
from penstock.engine.table import Command
from penstock.errors import CommandError, shown, wrong_arity


class Lookup:
    """Names to rows, in any mix of case."""

    def __init__(self, rows: Iterable[Command]) -> None:
        self.rows = {row.name.encode(): row for row in rows}
        self.containers = {name.split(b" ")[0] for name in self.rows if b" " in name}

    def find(self, frame: Frame) -> Command:
        """The row that a frame asks for. Raises: CommandError if there is none."""
        word = frame.piece(0).upper()
        row = self.rows.get(word)
        if row is not None:
            return row
        if word not in self.containers:
            raise CommandError(
                f"unknown command '{shown(frame.piece(0))}', with args beginning with: "
            )
        if frame.count == 1:
            raise wrong_arity(word.decode())
        row = self.rows.get(word + b" " + frame.piece(1).upper())
        if row is None:
            raise CommandError(
                f"unknown subcommand '{shown(frame.piece(1))}'. Try {word.decode()} HELP."
            )
        return row
