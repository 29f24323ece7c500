"""All commands on data, which may stand in a log: the engine's, and those that know the file format."""

from __future__ import annotations

from penstock.engine.execute import TABLE
from penstock.engine.table import Command
from penstock.persist.commands import dump

DATA_ROWS: tuple[Command, ...] = (*TABLE.values(), *dump.COMMANDS)
