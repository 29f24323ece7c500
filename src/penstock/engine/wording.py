"""Redis's error replies for the exceptions of core.

The engine translates in one place, around every command. A command that let a CoreError pass would otherwise
count as broken off (see execute.py).
"""

from __future__ import annotations

from collections.abc import Callable

from penstock import errors
from penstock.core.errors import (
    CoreError,
    IDNotAboveLast,
    IDsExhausted,
    InvalidID,
    NoIDAbove,
    NoIDBelow,
    TooLarge,
)
from penstock.errors import CommandError

_WORDING: dict[type[CoreError], Callable[[], CommandError]] = {
    InvalidID: errors.invalid_stream_id,
    NoIDAbove: lambda: CommandError("invalid start ID for the interval"),
    NoIDBelow: lambda: CommandError("invalid end ID for the interval"),
    IDNotAboveLast: errors.id_not_above_top,
    IDsExhausted: errors.ids_exhausted,
    TooLarge: errors.elements_too_large,
}


def worded(error: CoreError) -> CommandError:
    """The error reply for an exception of core."""
    return _WORDING[type(error)]()
