"""Conditions as options of commands. human/where.py has the grammar."""

from __future__ import annotations

import typer

from penstock.cli.terminal.outcome import Failure
from penstock.human import where
from penstock.human.show import Fields
from penstock.human.where import Condition, SlowPattern

__all__ = ["Condition", "parse_condition"]


def parse_condition(text: str) -> Condition:
    """A function that checks the fields of an entry. Raises: typer.BadParameter."""
    try:
        condition = where.parse_condition(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None

    def holds(fields: Fields) -> bool:
        try:
            return condition(fields)
        except SlowPattern as error:
            raise Failure(str(error)) from None

    return holds
