"""The store: one data directory, and the engine whose data it keeps.

    open       lock the directory, read what is there, go on with the log
    commit     what is done from now on, on its way to disk (commit.py)
    rewrite    a new base in the place of the old one and its increments
    save       a snapshot beside the log
    close      everything on disk, the lock free

A rewrite, step by step; a crash between any two leaves a manifest whose files are all there:

    1  begin     the log goes on in a new increment, which the manifest lists
    2            somebody writes the data as they were at that moment into temp-rewrite, and syncs it
    3  finish    temp-rewrite gets the next base's name; a manifest with that base and the increments since
                 step 1 takes the old one's place; the files that it no longer names are removed

After a failed write the log is not to be trusted any more (commit.py), so step 1 differs: the new increment
is not listed before step 3, and nothing is accepted until then.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from penstock.engine.execute import Engine
from penstock.engine.table import Command
from penstock.errors import DirectoryInUse
from penstock.persist.commit import Commit, Policy
from penstock.persist.disk import Disk, File, Lock
from penstock.persist.journal import Journal
from penstock.persist.layout import Layout
from penstock.persist.manifest import LogFile, Manifest, load_manifest, save_manifest
from penstock.persist.recovery import Recovered, Recovery
from penstock.persist.snapshot import SnapshotOptions, write_snapshot

TEMP_REWRITE = "temp-rewrite"
TEMP_SNAPSHOT = "temp-snapshot.rdb"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite under way: the increments that the new base does not cover."""

    base: LogFile
    increments: tuple[LogFile, ...]
    temporary: str
    final: str


class Store:
    """One directory. `commit` is None while there is no log; `manifest` is what is on disk."""

    def __init__(self, disk: Disk, layout: Layout, engine: Engine, rows: Iterable[Command]) -> None:
        self.disk = disk
        self.layout = layout
        self.engine = engine
        self.journal = Journal()
        self.commit: Commit | None = None
        self.manifest = Manifest()
        self.base_bytes = 0  # the log when it was last rewritten or read
        self._rows = list(rows)
        self._lock: Lock | None = None

    # --- Opening and closing -----------------------------------------------------------------------

    def lock(self) -> None:
        """Have the directory for oneself. Raises: DirectoryInUse, OSError."""
        self.disk.make_dir(self.layout.directory)
        self._lock = self.disk.lock(self.layout.lock)
        if self._lock is None:
            raise DirectoryInUse(self.layout.directory)

    def recovery(self, load_truncated: bool) -> Recovery:
        """What reads the directory, into a spare engine that `engine` adopts afterwards."""
        return Recovery(
            self.disk, self.layout, self.engine.spare(), self._rows, load_truncated=load_truncated
        )

    def begin_log(self, recovered: Recovered, policy: Policy, options: SnapshotOptions) -> None:
        """Go on with the log that was read, or begin one with what is in memory. Raises: OSError."""
        self.disk.make_dir(self.layout.log_dir)
        if recovered.manifest is None:
            manifest = Manifest()
            base = manifest.next_base(self.layout.appendfilename, options.form)
            self.write_base(self.layout.log_file(TEMP_REWRITE), options)
            self.disk.rename(self.layout.log_file(TEMP_REWRITE), self.layout.log_file(base.name))
            self.manifest = manifest.rebased(base, ())
        else:
            self.manifest = recovered.manifest
        if self.manifest.increments:
            last = self.manifest.increments[-1]
            file = self.disk.append_to(self.layout.log_file(last.name))
            # Those who wrote it may not have synced it.
            file.sync()
        else:
            file = self._new_increment(self.manifest)
        self.base_bytes = self.log_bytes()
        self.commit = Commit(self.journal, file, policy)
        self.engine.context.effects = self.journal

    def begin_new_log(self, policy: Policy, options: SnapshotOptions) -> Rewrite:
        """Log what is done from now on; what was done before is the base that is still to be written.

        A log that was ended before counts until then, and is history afterwards. Raises: OSError.
        """
        self.disk.make_dir(self.layout.log_dir)
        self.manifest = Manifest()
        if self.disk.exists(self.layout.manifest):
            self.manifest = load_manifest(
                self.disk, self.layout.log_dir, self.layout.appendfilename
            )
        increment = self.manifest.next_increment(self.layout.appendfilename)
        file = self.disk.create(self.layout.log_file(increment.name))
        self.disk.sync_dir(self.layout.log_dir)
        self.journal = Journal()
        self.commit = Commit(self.journal, file, policy)
        self.engine.context.effects = self.journal
        return self._plan(options, (increment,))

    def drop_log(self) -> None:
        """Keep no log, whatever became of it."""
        with suppress(OSError):
            self.end_log()

    def end_log(self) -> None:
        """Keep no log any longer; the files stay. Raises: OSError if the last effects are not on disk."""
        self.engine.context.effects = None
        commit, self.commit = self.commit, None
        if commit is not None:
            commit.close()

    def close(self) -> None:
        """Put everything on disk and let others have the directory. Raises: OSError."""
        try:
            self.end_log()
        finally:
            self.release_lock()

    def release_lock(self) -> None:
        """Let others have the directory; in a forked copy, leave it to the parent."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def log_bytes(self) -> int:
        """How long the files of the log are together."""
        size = 0
        for file in self.manifest.files:
            with suppress(
                FileNotFoundError
            ):  # whoever syncs may be removing it, or may not have made it yet
                size += self.disk.size(self.layout.log_file(file.name))
        return size

    # --- Rewriting ---------------------------------------------------------------------------------

    def begin_rewrite(self, options: SnapshotOptions) -> Rewrite:
        """Step 1: what is done from now on goes into a new increment, made by whoever syncs."""
        assert self.commit is not None
        increment = self.manifest.next_increment(self.layout.appendfilename)
        self.commit.change_file(
            lambda: self._open_increment(increment, self.manifest.with_increment(increment))
        )
        return self._plan(options, (increment,))

    def begin_afresh(self, options: SnapshotOptions) -> Rewrite:
        """Step 1 after a failure. Raises: OSError if the disk is still not what it should be."""
        assert self.commit is not None
        increment = self.manifest.next_increment(self.layout.appendfilename)
        file = self.disk.create(self.layout.log_file(increment.name))
        self.disk.sync_dir(self.layout.log_dir)
        self.commit.start_afresh(file)
        return self._plan(options, (increment,))

    def _plan(self, options: SnapshotOptions, increments: tuple[LogFile, ...]) -> Rewrite:
        base = self.manifest.next_base(self.layout.appendfilename, options.form)
        return Rewrite(
            base,
            increments,
            self.layout.log_file(TEMP_REWRITE),
            self.layout.log_file(base.name),
        )

    def finish_rewrite(self, rewrite: Rewrite) -> None:
        """Step 3. To be done by whoever syncs, so that step 1 is over. Raises: OSError."""
        self.disk.rename(rewrite.temporary, rewrite.final)
        self.disk.sync_dir(self.layout.log_dir)
        later = tuple(
            file for file in self.manifest.increments if file.seq > rewrite.increments[-1].seq
        )
        manifest = self.manifest.rebased(rewrite.base, (*rewrite.increments, *later))
        save_manifest(self.disk, self.layout.log_dir, self.layout.appendfilename, manifest)
        self.manifest = Manifest(manifest.base, manifest.increments)
        for file in manifest.history:
            with suppress(FileNotFoundError):
                self.disk.remove(self.layout.log_file(file.name))
        save_manifest(self.disk, self.layout.log_dir, self.layout.appendfilename, self.manifest)
        self.base_bytes = self.log_bytes()

    def abandon_rewrite(self, rewrite: Rewrite) -> None:
        """Step 2 failed: the log goes on as it is, in one more file."""
        with suppress(OSError):
            self.disk.remove(rewrite.temporary)

    def _new_increment(self, manifest: Manifest) -> File:
        increment = manifest.next_increment(self.layout.appendfilename)
        return self._open_increment(increment, manifest.with_increment(increment))

    def _open_increment(self, increment: LogFile, manifest: Manifest) -> File:
        file = self.disk.create(self.layout.log_file(increment.name))
        save_manifest(self.disk, self.layout.log_dir, self.layout.appendfilename, manifest)
        self.manifest = manifest
        return file

    # --- Writing the data --------------------------------------------------------------------------

    def write_base(self, path: str, options: SnapshotOptions) -> None:
        """Write all data as a base, and return when it is on disk. Raises: OSError."""
        self._write(path, self.engine, options, is_base=True)

    def compact(self, rewrite: Rewrite, options: SnapshotOptions) -> None:
        """Step 2 without the data in memory: out of the files that the base will replace.

        Step 1 must be over. Raises: OSError, CorruptData.
        """
        recovery = self.recovery(load_truncated=False)
        replaced = [file for file in self.manifest.files if file not in rewrite.increments]
        recovery.read_files([self.layout.log_file(file.name) for file in replaced])
        self._write(rewrite.temporary, recovery.engine, options, is_base=True)

    def save(self, options: SnapshotOptions) -> None:
        """Write all data as the snapshot of the directory. Raises: OSError."""
        temporary = f"{self.layout.directory}/{TEMP_SNAPSHOT}"
        self._write(temporary, self.engine, options, is_base=False)
        self.disk.rename(temporary, self.layout.snapshot)
        self.disk.sync_dir(self.layout.directory)

    def _write(self, path: str, engine: Engine, options: SnapshotOptions, is_base: bool) -> None:
        file = self.disk.create(path)
        try:
            write_snapshot(file, engine, options, is_base)
            file.sync()
        except OSError:
            with suppress(OSError):
                self.disk.remove(path)
            raise
        finally:
            file.close()
