"""Rewrites of the log: a child writes a new base, which then replaces the old base and its increments.

    start         BGREWRITEAOF, or the log has grown by auto-aof-rewrite-percentage
    start_first   CONFIG SET appendonly yes: the base of a new log
    start_fresh   after a disk failure, or if the first base failed: a base of all data, in a new file

Before a rewrite the sync thread syncs the current file, while the loop continues to write to it. Only then
does the log continue in a new file, and the child is forked: clients wait for the switch, and what is left to
sync by then is little. With `always` the file is synced all the time.

When the child has written the base, the sync thread puts it in place (`store.finish_rewrite`), because the
manifest must not change while that thread writes. Until then `current` stays set and no other rewrite starts:
it would begin with an outdated manifest.

Failed attempts back off (persist/backoff.py), automatic rewrites and fresh bases separately.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from dataclasses import dataclass

from penstock.errors import CommandError
from penstock.persist import backoff
from penstock.persist.aof.commit import Commit, Policy
from penstock.persist.disk import reason
from penstock.persist.health import LogHealth
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Rewrite, Store
from penstock.server.config.settings import Config
from penstock.server.log import LOG
from penstock.server.saving.child import ChildSlot
from penstock.server.saving.snapshots import snapshot_options
from penstock.server.server import Server

_NEVER = -1


@dataclass(slots=True)
class RewriteStatus:
    """The rewrite fields of INFO."""

    ok: bool = True
    seconds: int = -1


class Rewrites:
    """Starts and finishes rewrites. `health`: whether the log can be trusted (persist/health.py).

    `is_scheduled`: a BGREWRITEAOF waits for the child to end.

    `on_base` is called when a base is on disk and in place.
    """

    def __init__(
        self,
        server: Server,
        store: Store,
        config: Config,
        child: ChildSlot,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._server = server
        self._store = store
        self._config = config
        self._child = child
        self._loop = loop
        self._current: Rewrite | None = None
        self._options = SnapshotOptions()  # of the current one, from before the fork
        self._starts_at = _NEVER  # a rewrite starts when the log is synced up to this position
        self._automatic = backoff.rewrites(self._steady_s)
        self.health = LogHealth(store, backoff.fresh_bases(self._steady_s))
        self.is_scheduled = False
        self.status = RewriteStatus()
        self.on_base: Callable[[], None] | None = None

    def _steady_s(self) -> float:
        return self._server.steady_ms() / 1000

    @property
    def is_running(self) -> bool:
        """Whether the log is synced for a rewrite, a child writes a base, or it is being put in place."""
        return self._current is not None or self._starts_at != _NEVER

    # --- Starting ----------------------------------------------------------------------------------

    def start(self) -> str:
        """BGREWRITEAOF: return the reply. Raises: CommandError."""
        if self.is_running:
            raise CommandError("Background append only file rewriting already in progress")
        if self._store.commit is None:
            raise CommandError("there is no log: CONFIG SET appendonly yes starts one")
        # A transaction that runs must not be split between the old files and the new base.
        if self._child.is_busy or not self._server.engine.context.may_block:
            self.is_scheduled = True
            return "Background append only file rewriting scheduled"
        self.is_scheduled = False
        commit = self._store.commit
        if commit.synced == commit.position or not commit.is_based or commit.failure is not None:
            self._begin()
        else:
            self._starts_at = commit.position
            commit.wake()
        return "Background append only file rewriting started"

    def go_on(self) -> None:
        """After a sync: begin a rewrite that has waited for it."""
        commit = self._store.commit
        if self._starts_at == _NEVER or commit is None or commit.synced < self._starts_at:
            return
        self._starts_at = _NEVER
        if self._child.is_busy:  # a snapshot has begun meanwhile
            self.is_scheduled = True
            return
        try:
            self._begin()
        except CommandError as error:
            self.status.ok = False
            LOG.error("%s", error)

    def _begin(self) -> None:
        """Continue the log in a new file, and start a child that writes the base. Raises: CommandError."""
        try:
            # The old files must have all effects so far, and the child must see no later ones.
            self._options = snapshot_options(self._config)
            self._current = self._store.begin_rewrite(self._options)
        except OSError as error:
            self._automatic.note_failure()
            raise CommandError(f"cannot rewrite the log: {reason(error)}") from error
        try:
            self._child.start(self._write_base, self._finish)
        except OSError as error:
            self._finish(reason(error))
            raise CommandError(f"cannot fork: {reason(error)}") from error
        self.apply_policy()

    def start_first(self) -> None:
        """Start a new log and its base. Raises: OSError; then there is no log."""
        try:
            self._options = snapshot_options(self._config)
            self._current = self._store.begin_new_log(self.configured_policy, self._options)
            self._child.start(self._write_base, self._finish)
        except OSError:
            self._store.drop_log()
            self._current = None
            raise

    def start_fresh(self) -> str | None:
        """Start a fresh base in a new file, in case the disk works again; return why that failed, or None."""
        try:
            self._options = snapshot_options(self._config)
            self._current = self.health.begin_base(self._options)
            self._child.start(self._write_base, self._finish)
        except OSError as error:
            self._current = None
            self.health.note_base_failed(error)
            return reason(error)
        return None

    @property
    def is_fresh_due(self) -> bool:
        """Whether a fresh base can be tried now."""
        return not self._child.is_busy and self._current is None and self.health.is_retry_due()

    def is_due(self) -> bool:
        """Tell whether a rewrite is scheduled, or the log has grown enough for one."""
        if self.is_running:
            return False
        return self.is_scheduled or (self._automatic.is_due() and self._has_grown())

    def _has_grown(self) -> bool:
        percentage = self._config.value("auto-aof-rewrite-percentage")
        if self._store.commit is None or not percentage:
            return False
        size = self._store.log_bytes()
        if size < self._config.value("auto-aof-rewrite-min-size"):
            return False
        base = max(1, self._store.base_bytes)
        return bool((size - base) * 100 >= percentage * base)

    def _write_base(self) -> None:
        """In the child: write the base."""
        assert self._current is not None
        self._store.write_base(self._current.temporary, self._options)

    # --- Finishing ---------------------------------------------------------------------------------

    def _finish(self, failure: str | None) -> None:
        """The child has ended: put its base in place, or drop it."""
        rewrite = self._current
        commit = self._store.commit
        self.status.seconds = self._child.seconds
        if rewrite is None or commit is None:
            self._current = None
            return
        if failure is None and commit.failure is not None:
            failure = reason(commit.failure)
        if failure is not None:
            self._drop(rewrite, commit, failure)
            return

        def put_in_place() -> None:
            self._store.finish_rewrite(rewrite)
            self._loop.call_soon_threadsafe(self._on_in_place, rewrite)

        commit.do(put_in_place)

    def _drop(self, rewrite: Rewrite, commit: Commit, failure: str) -> None:
        self._current = None
        if commit.failure is None:  # otherwise the failure of the log has been noted already
            if commit.is_based:
                self._automatic.note_failure()
            else:
                self.health.note_base_failed(OSError(errno.EIO, failure))
        self.apply_policy()
        self.status.ok = False
        LOG.error("cannot rewrite the log: %s", failure)
        self._store.abandon_rewrite(rewrite)

    def _on_in_place(self, rewrite: Rewrite) -> None:
        if self._current is not rewrite:
            return  # the log was switched off meanwhile
        self._current = None
        self.apply_policy()
        self.status.ok = True
        self._automatic.note_success()
        LOG.info("log rewritten: %d bytes", self._store.base_bytes)
        if self.on_base is not None:
            self.on_base()

    # --- The log's state ---------------------------------------------------------------------------

    @property
    def configured_policy(self) -> Policy:
        """When the log is synced, as `appendfsync` says."""
        return Policy(self._config.value("appendfsync"))

    def apply_policy(self) -> None:
        """Put `appendfsync` in force; with no-appendfsync-on-rewrite a rewrite suspends it."""
        commit = self._store.commit
        if commit is not None:
            relaxed = self.is_running and self._config.value("no-appendfsync-on-rewrite")
            commit.policy = Policy.NO if relaxed else self.configured_policy

    def kill_child(self) -> None:
        """Stop a base that a child writes, or will write."""
        self._starts_at = _NEVER
        self._child.kill(self._finish)

    def forget_current(self) -> None:
        """Drop a rewrite that the sync thread will not put in place any more."""
        self._starts_at = _NEVER
        self._current = None
