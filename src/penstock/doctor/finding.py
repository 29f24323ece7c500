"""A finding of the doctor: what is wrong, how dangerous it is, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

DISK_DANGER_SHARE = 0.05
DISK_WARNING_SHARE = 0.15
FSYNC_SECONDS_MAX = 0.02


class Severity(IntEnum):
    """Danger: data can be lost or read by strangers. Warning: it will become a problem. Advice: a habit."""

    DANGER = 0
    WARNING = 1
    ADVICE = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `rule` is a short name for programs; `what` and `remedy` are sentences for people."""

    severity: Severity
    rule: str
    what: str
    remedy: str


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Most dangerous first; in the order of the rules within each kind."""
    return sorted(findings, key=lambda finding: finding.severity)


def is_bad(findings: Iterable[Finding]) -> bool:
    """Tell whether there is more than advice."""
    return any(finding.severity < Severity.ADVICE for finding in findings)


def disk_findings(free: int, size: int, place: str) -> list[Finding]:
    """Whether the disk is nearly full."""
    share = free / size if size else 1.0
    if share >= DISK_WARNING_SHARE:
        return []
    severity = Severity.DANGER if share < DISK_DANGER_SHARE else Severity.WARNING
    return [
        Finding(
            severity,
            "disk-full",
            f"the disk of {place} is nearly full: {share:.1%} free ({free >> 20} MiB)",
            "free space or use a larger disk; a rewrite of the log needs room for a second copy of the data",
        )
    ]


def fsync_findings(seconds: float, place: str) -> list[Finding]:
    """Whether the disk is slow."""
    if seconds <= FSYNC_SECONDS_MAX:
        return []
    return [
        Finding(
            Severity.WARNING,
            "slow-disk",
            f"an fsync takes {seconds * 1000:.0f} ms on {place}",
            "use a local SSD; until then each write waits this long with appendfsync always",
        )
    ]
