"""Opens an embedded database, in memory or in a directory."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, Literal, overload

from penstock.core.stream import NODE_BYTES_MAX, NODE_ENTRIES_MAX
from penstock.embedded.database import Database
from penstock.embedded.durability import Keeper
from penstock.embedded.pipeline import Pipeline  # noqa: F401 - on first use, Ctrl-C could break its import
from penstock.engine.clock import Clock
from penstock.engine.execute import Engine
from penstock.errors import ConfigError
from penstock.persist.aof.commit import Policy
from penstock.persist.disk import SystemDisk
from penstock.persist.layout import Layout
from penstock.persist.rows import DATA_ROWS
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Store

_LIMIT_MAX = 2**40  # more than any machine has; a hundred times as much still fits 64 bits


@overload
def open(
    path: str | os.PathLike[str] | None = None,
    *,
    appendfsync: str = "always",
    decode_responses: Literal[False] = False,
    compat_version: str | None = None,
    clock: Clock | None = None,
    node_bytes_max: int = NODE_BYTES_MAX,
    node_entries_max: int = NODE_ENTRIES_MAX,
) -> Database[bytes]: ...


@overload
def open(
    path: str | os.PathLike[str] | None = None,
    *,
    appendfsync: str = "always",
    decode_responses: Literal[True],
    compat_version: str | None = None,
    clock: Clock | None = None,
    node_bytes_max: int = NODE_BYTES_MAX,
    node_entries_max: int = NODE_ENTRIES_MAX,
) -> Database[str]: ...


@overload
def open(
    path: str | os.PathLike[str] | None = None,
    *,
    appendfsync: str = "always",
    decode_responses: bool,
    compat_version: str | None = None,
    clock: Clock | None = None,
    node_bytes_max: int = NODE_BYTES_MAX,
    node_entries_max: int = NODE_ENTRIES_MAX,
) -> Database[bytes | str]: ...


def open(
    path: str | os.PathLike[str] | None = None,
    *,
    appendfsync: str = "always",
    decode_responses: bool = False,
    compat_version: str | None = None,
    clock: Clock | None = None,
    node_bytes_max: int = NODE_BYTES_MAX,
    node_entries_max: int = NODE_ENTRIES_MAX,
) -> Database[Any]:
    """Open the database in a directory, which is created if needed. Without a path it is in memory.

    The files are those of a server: `penstock serve --dir PATH` and Redis read them. Only one process can
    have a directory open. Raises: DirectoryInUse, CorruptData, ConfigError, OSError.

    appendfsync: when a call returns. "always": its changes are on disk. "everysec": they are written, and
    synced within a second. "no": the operating system decides when to sync.
    decode_responses: return str instead of bytes.
    compat_version: behave as this Redis, from "7.0" to "8.10"; "8.6" by default.
    clock: gives the time of generated ids; the system clock by default.
    node_bytes_max, node_entries_max: the maximum size of a node of a stream; 0 for no limit.
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
    """Load the data of a directory, and log changes there from now on."""
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
    return Keeper(store, policy, options)
