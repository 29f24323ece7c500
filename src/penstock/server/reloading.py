"""Loads the data again while the server runs: DEBUG RELOAD, DEBUG LOADAOF."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import CommandError, CorruptData
from penstock.persist.recovery import Recovered
from penstock.server.durability import Durability
from penstock.server.log import LOG


def reload_snapshot(durability: Durability, save: bool) -> None:
    """Load the snapshot; `save` writes it first. Raises: CommandError, and the data is unchanged."""
    store = durability.store
    if not save and store.commit is not None:
        raise CommandError("DEBUG RELOAD NOSAVE would not match the log: use DEBUG LOADAOF")
    if save:
        durability.snapshots.save()
    _reload(durability, store.recovery(load_truncated=False).snapshot_only)


def reload_log(durability: Durability) -> None:
    """Load the log, with all changes so far. Raises: CommandError, and the data is unchanged."""
    store = durability.store
    if store.commit is None:
        raise CommandError("there is no log: CONFIG SET appendonly yes starts one")
    store.commit.hand_over()
    store.commit.sync()
    _reload(durability, store.recovery(load_truncated=False).with_log)


def _reload(durability: Durability, read: Callable[[], Recovered]) -> None:
    try:
        recovered = read()
    except (CorruptData, OSError) as error:
        LOG.error("%s", error)
        raise CommandError(f"Error trying to load the data: {error}") from error
    replication = durability.server.replication
    if replication.feed.backlog is not None:
        replication.feed.end()  # the data may be another: no replica can continue
        replication.replicas.drop_all()
    durability.server.engine.adopt(recovered.engine)
