"""Requests to stop the server, from commands and the periodic work to the program that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StopRequest:
    """The arguments of SHUTDOWN. `save`: True for SAVE, False for NOSAVE, None for neither."""

    save: bool | None
    now: bool
    force: bool


class Lifecycle(Protocol):
    """The owner of a server; app.App implements it."""

    def request_stop(self, request: StopRequest | None = None) -> None:
        """Stop the server at the end of this turn."""

    def abort_stop(self) -> bool:
        """Give up a stop that still waits for replicas; False if there is none."""

    def report_broken(self, command: str) -> None:
        """Stop the server: a command failed halfway and may have left a partial change in memory."""
