"""What a server knows of itself and tells in INFO: set by whoever owns it, read by commands.

The composition root sets what does not change (port, config_file, stop), settings set what CONFIG SET may
change (maxmemory, debug_allowed, ...), the regular tick sets the rates. A server of which nobody has said
anything answers with the values below.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.server.stats import process

if TYPE_CHECKING:
    from penstock.persist.recovery import Progress
    from penstock.server.durability import Durability

ID_BYTES = 20


@dataclass(frozen=True, slots=True)
class StopRequest:
    """What SHUTDOWN asks for. `save`: True and False for SAVE and NOSAVE, None for neither."""

    save: bool | None
    now: bool
    force: bool


@dataclass(slots=True)
class Facts:
    """One server's."""

    started_us: int  # the date
    started_steady_ms: int  # the same moment, for the uptime
    # --- Where it is ---
    port: int = 0
    config_file: str = ""
    run_id: str = field(default_factory=lambda: secrets.token_hex(ID_BYTES))
    replication_id: str = field(default_factory=lambda: secrets.token_hex(ID_BYTES))
    # --- Settings ---
    hz: int = 10
    maxclients: int = 10_000
    maxmemory: int = 0
    maxmemory_policy: str = "noeviction"
    debug_allowed: str = "no"  # or yes, or local
    active_expire: bool = True
    # --- Measured ---
    startup_bytes: int = field(default_factory=process.resident_bytes)
    connections_rejected: int = 0
    ops_per_sec: int = 0
    in_kbps: float = 0.0
    out_kbps: float = 0.0
    # --- Saving ---
    saved_s: int = -1  # -1: never, which INFO shows as the time of the start
    dirty_at_save: int = 0
    bgsave_ok: bool = True
    bgsave_seconds: int = -1
    appendonly: bool = False
    rewrite_ok: bool = True
    rewrite_seconds: int = -1
    forks: int = 0
    fork_us: int = 0  # that the last one took
    disk_error: str = ""  # why the log could not be written
    loading: Progress | None = None
    durability: Durability | None = None  # None while nothing is kept
    # --- Stopping: None while nobody has said how ---
    stop: Callable[[StopRequest], None] | None = None
