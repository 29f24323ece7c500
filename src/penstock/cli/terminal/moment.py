"""Times and durations as options of commands. human/moment.py has the grammar."""

from __future__ import annotations

import typer

from penstock.human import moment
from penstock.human.moment import Ago, Edge, Moment

__all__ = ["Ago", "Edge", "Moment", "parse_duration", "parse_moment"]


def parse_duration(text: str) -> int:
    """Milliseconds of `5m`, `1h30m`, `250ms`. Raises: typer.BadParameter."""
    try:
        return moment.parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def parse_moment(text: str) -> Moment:
    """Read a time. Raises: typer.BadParameter."""
    try:
        return moment.parse_moment(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
