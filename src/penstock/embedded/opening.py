"""Opening an embedded database: in memory, or in a directory."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from penstock.core.stream import NODE_BYTES_MAX, NODE_ENTRIES_MAX
from penstock.embedded.database import Database
from penstock.embedded.durability import Keeper, watch_forks
from penstock.engine.clock import Clock
from penstock.engine.execute import Engine
from penstock.errors import ConfigError
from penstock.persist.aof.commit import Policy
from penstock.persist.disk import SystemDisk
from penstock.persist.layout import Layout
from penstock.persist.rows import DATA_ROWS
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Store

_LIMIT_MAX = 2**40  # beyond any machine, and a hundred times it still fits 64 bits


def open(
    path: str | os.PathLike[str] | None = None,
    *,
    appendfsync: str = "always",
    decode_responses: bool = False,
    compat_version: str | None = None,
    clock: Clock | None = None,
    node_bytes_max: int = NODE_BYTES_MAX,
    node_entries_max: int = NODE_ENTRIES_MAX,
) -> Database:
    """A database in a directory, which is made if need be; without one, in memory.

    The files are a server's: `penstock serve --dir PATH` and Redis read them. One process may have a
    directory open. Raises: DirectoryInUse, CorruptData, ConfigError, OSError.

    appendfsync: when a call returns: "always", what it did is on disk; "everysec", it is written, and on disk
    within a second; "no", the system decides. decode_responses: give text instead of bytes. compat_version:
    behave as this Redis ("7.0", "7.2", "7.4"; the newest by default). clock: where ids get their time from;
    the system's clock by default. node_bytes_max, node_entries_max: how large a node of a stream may become,
    0 for no limit.
    """
    for name, value in (("node_bytes_max", node_bytes_max), ("node_entries_max", node_entries_max)):
        if type(value) is not int or not 0 <= value <= _LIMIT_MAX:
            raise ConfigError(f"{name} is a number from 0 to {_LIMIT_MAX}, not {value!r}")
    policies = [policy.value for policy in Policy]
    if appendfsync not in policies:
        raise ConfigError(f"appendfsync is one of {', '.join(policies)}, not {appendfsync!r}")
    engine = Engine(clock, compat_version)
    engine.limits.bytes_max = node_bytes_max
    engine.limits.entries_max = node_entries_max
    keeper = None if path is None else _keep(engine, os.fspath(path), Policy(appendfsync))
    return Database(engine, decode_responses, keeper)


def _keep(engine: Engine, path: str, policy: Policy) -> Keeper:
    """Read what is in a directory, and keep there what is done from now on."""
    options = SnapshotOptions()
    store = Store(SystemDisk(), Layout(str(Path(path).absolute())), engine, DATA_ROWS)
    store.lock()
    try:
        recovery = store.recovery(load_truncated=True)
        recovered = recovery.with_log()
        engine.adopt(recovery.engine)
        for warning in recovered.warnings:
            warnings.warn(warning, RuntimeWarning, stacklevel=4)
        store.begin_log(recovered, policy, options)
    except BaseException:
        store.release_lock()
        raise
    keeper = Keeper(store, policy, options)
    watch_forks(keeper)
    return keeper
