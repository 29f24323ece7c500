"""Conditions on the command line: human/where.py has the grammar."""

from __future__ import annotations

import typer

from penstock.human import where
from penstock.human.where import Condition

__all__ = ["Condition", "parse_condition"]


def parse_condition(text: str) -> Condition:
    """A function of an entry's fields. Raises: typer.BadParameter."""
    try:
        return where.parse_condition(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
