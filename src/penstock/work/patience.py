"""How long everything else may stand still for something that needs a quiet moment."""

from __future__ import annotations

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 30.0
OTHERS = 9  # after a wait in vain the others run for this many times as long


class Patience:
    """When to wait for a quiet moment, and for how long.

    Nothing begins during a wait, so the first one is short. After a wait in vain the others run nine times as
    long, and the next wait is twice as long, up to a limit. So at most a tenth of the time is lost, and a
    moment is found between jobs of up to half a minute.
    """

    def __init__(self, first_seconds: float = FIRST_SECONDS) -> None:
        self.seconds = first_seconds  # how long to wait this time
        self._after = 0.0

    def begins_in(self, now: float) -> float:
        """Seconds until the next wait may begin."""
        return max(0.0, self._after - now)

    def in_vain(self, now: float) -> None:
        """A wait has ended without a quiet moment."""
        self._after = now + OTHERS * self.seconds
        self.seconds = min(LONGEST_SECONDS, 2 * self.seconds)
