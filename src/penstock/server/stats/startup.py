"""What is fixed when a server starts: the time, its ids, and the memory of the process."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from penstock.server.stats import process

ID_BYTES = 20


def _new_id() -> str:
    return secrets.token_hex(ID_BYTES)


@dataclass(frozen=True, slots=True)
class Startup:
    """`started_us` is the date; `started_steady_ms` is the same moment on the monotonic clock."""

    started_us: int
    started_steady_ms: int
    run_id: str = field(default_factory=_new_id)
    process_bytes: int = field(default_factory=process.resident_bytes)
