"""All commands that may appear in a log: those of the engine, DUMP and RESTORE."""

from __future__ import annotations

from penstock.engine.execute import TABLE
from penstock.engine.table import Command
from penstock.persist.commands import dump

DATA_ROWS: tuple[Command, ...] = (*TABLE.values(), *dump.COMMANDS)
