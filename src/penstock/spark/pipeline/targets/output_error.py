"""The error of an output that cannot be written."""

from __future__ import annotations

from penstock.errors import PenstockError


class OutputError(PenstockError):
    """Writing a batch failed. The text is one line, because Spark mishandles long ones."""
