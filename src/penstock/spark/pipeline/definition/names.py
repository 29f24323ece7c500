"""Names in a pipeline file: how they are written, and the text for a column that does not exist."""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z0-9_-]+")
NAME_FORM = "letters, digits, _ and -"


def unknown_column(column: str, known: tuple[str, ...]) -> str:
    """What to say about a column that does not exist."""
    _, dot, last = column.rpartition(".")
    hint = f'; write {last} = "{column}" in [columns] and use {last} here' if dot and last else ""
    return f"there is no column {column}; there are {', '.join(known)}{hint}"
