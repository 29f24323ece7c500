"""Lag and pending entries of groups over time, in a fixed amount of memory."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.web.model.facts import StreamFacts
from penstock.web.model.rates import GAP_SECONDS_MIN, Series

SAMPLES_MAX = 900  # half an hour, one sample per two seconds
GROUPS_MAX = 1000  # times 900 samples of three numbers: about 20 MB


@dataclass(frozen=True, slots=True)
class Sample:
    """A group at one time, in seconds since 1970."""

    at: float
    lag: int | None
    pending: int


class GroupHistory:
    """Samples of up to GROUPS_MAX groups. Others are not recorded until some are deleted."""

    def __init__(self) -> None:
        self._series: dict[bytes, dict[bytes, Series]] = {}
        self._count = 0

    def note(self, facts: StreamFacts, at: float) -> None:
        """Record a sample of each group of a stream, unless its last sample is recent."""
        groups = self._series.setdefault(facts.name, {})
        for gone in groups.keys() - {group.name for group in facts.groups}:
            del groups[gone]
            self._count -= 1
        for group in facts.groups:
            series = groups.get(group.name)
            if series is None:
                if self._count >= GROUPS_MAX:
                    continue
                series = groups[group.name] = Series(3, SAMPLES_MAX)
                self._count += 1
            last = series.last()
            if last is None or at - (last[0] or 0) >= GAP_SECONDS_MIN:
                series.add(at, group.lag, group.pending)

    def forget(self, stream: bytes) -> None:
        self._count -= len(self._series.pop(stream, ()))

    def samples(self, stream: bytes, group: bytes) -> list[Sample]:
        """All samples of a group, oldest first."""
        series = self._series.get(stream, {}).get(group)
        if series is None:
            return []
        return [
            Sample(at or 0, None if lag is None else int(lag), int(pending or 0))
            for at, lag, pending in series.rows()
        ]
