"""The store: one data directory, and the engine whose data it holds.

    open       locks the directory, reads the data, continues the log
    commit     writes new effects to disk (persist/aof/commit.py)
    rewrite    replaces the base and its increments by a new base
    save       writes a snapshot next to the log
    close      syncs everything and releases the lock

A rewrite has three steps. After a crash between any two of them, all files of the manifest exist:

    1  begin     the log continues in a new increment, which the manifest lists
    2            the data as of that moment is written to temp-rewrite, synced, and read back: a base that
                 cannot be read must not replace anything
    3  finish    temp-rewrite is renamed to the next base; a new manifest lists that base and the increments
                 since step 1; the files that it no longer lists are removed

After a failed write the log cannot be trusted (persist/aof/commit.py), so step 1 differs: the new increment
is listed only in step 3, and writes are refused until then (persist/health.py). A log that is begun while the
server runs is also listed only in step 3.

A failed rewrite leaves one more increment in the manifest. After INCREMENTS_MAX of them no rewrite begins,
and the next start writes a new base first.

Besides the order of the steps, these rules make a crash harmless:

    ST1  a file is on disk before the manifest lists it: its first line, its name, then the manifest
    ST2  no number is used twice: a failed step may have left a manifest on disk that lists it
    ST3  a first log counts only when its manifest exists; until then a marker file says that it is unfinished
    ST4  a file last written by another program is complete: the log continues in a new file, whose first line
        shows that it is ours (persist/aof/batch.py)
    ST5  after a clean stop the manifest also states the length and checksum of the last increment. A start
        that continues that file removes them from the manifest before it writes
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from penstock.engine.execute import Engine
from penstock.engine.table import Command
from penstock.errors import CorruptData, DirectoryInUse
from penstock.persist.aof import file_crc
from penstock.persist.aof.commit import Commit, Policy
from penstock.persist.aof.increment import Increment
from penstock.persist.aof.journal import Journal
from penstock.persist.aof.manifest import LogFile, Manifest, load_manifest, save_manifest
from penstock.persist.disk import Disk, Lock
from penstock.persist.layout import Layout
from penstock.persist.recovery import Recovered, Recovery
from penstock.persist.snapshot import SnapshotOptions, read_back, write_snapshot

TEMP_REWRITE = "temp-rewrite"
TEMP_SNAPSHOT = "temp-snapshot.rdb"
INCREMENTS_MAX = 1000
LOCK_SECONDS_MAX = 0.5
LOCK_RETRY_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A running rewrite. `increments`: those that the new base does not cover.

    `era`: when the log is started afresh, a new era begins, and rewrites of earlier eras are abandoned.
    """

    base: LogFile
    increments: tuple[LogFile, ...]
    temporary: str
    final: str
    era: int


class Store:
    """One directory. `commit` is None without a log. `manifest` is the one on disk."""

    def __init__(self, disk: Disk, layout: Layout, engine: Engine, rows: Iterable[Command]) -> None:
        self.disk = disk
        self.layout = layout
        self.engine = engine
        self.journal = Journal()
        self.commit: Commit | None = None
        self.manifest = Manifest()
        self.base_bytes = 0  # the size of the log after the last rewrite or at the start
        self._base_seq = self._increment_seq = 0  # the largest numbers used (ST2)
        self._unlisted: list[str] = []  # files that were made but may never be listed
        self._temporaries: list[str] = []
        self._era = 0
        self._rows = list(rows)
        self._lock: Lock | None = None
        self._was_used = False  # the lock file was there

    # --- Opening and closing -----------------------------------------------------------------------

    def lock(self) -> None:
        """Lock the directory. Raises: DirectoryInUse, OSError.

        Retries for a moment: a server killed just after a fork leaves a child that holds the lock until it
        has closed its files.
        """
        self.disk.make_dir(self.layout.directory)
        self._was_used = self.disk.exists(self.layout.lock)
        deadline = time.monotonic() + LOCK_SECONDS_MAX
        while (lock := self.disk.lock(self.layout.lock)) is None:
            if time.monotonic() > deadline:
                raise DirectoryInUse(self.layout.directory)
            time.sleep(LOCK_RETRY_SECONDS)
        self._lock = lock

    def recovery(self, load_truncated: bool) -> Recovery:
        """A reader of the directory. `engine` adopts its spare engine afterwards."""
        recovery = Recovery(
            self.disk, self.layout, self.engine.spare(), self._rows, load_truncated=load_truncated
        )
        recovery.was_used = self._was_used
        return recovery

    def begin_log(self, recovered: Recovered, policy: Policy, options: SnapshotOptions) -> None:
        """Continue the log that was read, or begin one with the data in memory. Raises: OSError."""
        self.disk.make_dir(self.layout.log_dir)
        if recovered.manifest is None:
            self._mark_unfinished()
            self._write_first_base(options)
            file = self._continue_in(self._next_increment())
        else:
            # The process that wrote the manifest may have been killed before it was durable.
            self.disk.sync_dir(self.layout.log_dir)
            self.manifest = recovered.manifest
            file = self._open_last(recovered)
        self._tidy()
        if len(self.manifest.increments) >= INCREMENTS_MAX:
            file = self._replace_all(file, options)
        self.base_bytes = self.log_bytes()
        self.commit = Commit(self.journal, file, policy)
        self.engine.context.effects = self.journal

    def _write_first_base(self, options: SnapshotOptions) -> None:
        rewrite = self._plan(options, ())
        self.write_base(rewrite.temporary, options)
        self.disk.rename(rewrite.temporary, rewrite.final)
        self._temporaries.clear()
        self.manifest = Manifest(self._complete(rewrite.base))

    def _replace_all(self, file: Increment, options: SnapshotOptions) -> Increment:
        """Write a new base before the first write, because too many rewrites have failed.

        The base has everything up to now, also what is in the last increment. So the log continues in a new
        one, which is returned. If the base cannot be written, the old files stay. Raises: OSError.
        """
        increment = self._next_increment()
        continued = self._continue_in(increment, self._entry_at_end(file))
        file.close()
        rewrite = self._plan(options, (increment,))
        with suppress(OSError):
            self.write_base(rewrite.temporary, options)
            self.finish_rewrite(rewrite)
        return continued

    def _complete(self, file: LogFile) -> LogFile:
        """The entry of a complete file, with its length and checksum."""
        path = self.layout.log_file(file.name)
        return replace(file, size=self.disk.size(path), crc=file_crc.of_file(self.disk, path))

    def _open_last(self, recovered: Recovered) -> Increment:
        """Continue in the last increment, or in a new one if there is none or it is not ours (ST4)."""
        if not self.manifest.increments:
            return self._continue_in(self._next_increment())
        last = self.manifest.increments[-1]
        file = self.disk.append_to(self.layout.log_file(last.name))
        file.sync()  # its last writer may have been killed before a sync
        if not recovered.is_vouched:
            size = file.size
            file.close()
            return self._continue_in(self._next_increment(), replace(last, size=size))
        if last.size is not None:
            self._save_manifest(self.manifest.with_last(LogFile(last.name, last.seq)))  # ST5
        return Increment(file, recovered.lines_crc)

    def _mark_unfinished(self) -> None:
        """Create the marker of ST3. Raises: OSError, also if there are log files without a manifest."""
        if self.disk.exists(self.layout.manifest) or self.disk.exists(self.layout.unfinished):
            return
        names = self.disk.names(self.layout.log_dir)
        if any(name.startswith(f"{self.layout.appendfilename}.") for name in names):
            raise FileExistsError(
                errno.EEXIST,
                "there are files of a log but no manifest: restore it, or move them away",
                self.layout.log_dir,
            )
        self.disk.create(self.layout.unfinished).close()
        self.disk.sync_dir(self.layout.log_dir)

    def _tidy(self) -> None:
        """Remove leftovers of earlier processes. Those that cannot be removed do no harm."""
        for name in self.disk.names(self.layout.log_dir):
            path = self.layout.log_file(name)
            if name.startswith(TEMP_REWRITE) or path == self.layout.unfinished:
                self._remove(path)
        if self.manifest.history:
            self._drop_history()

    def begin_new_log(self, policy: Policy, options: SnapshotOptions) -> Rewrite:
        """Log effects from now on. The caller still has to write the base with the data up to now.

        An earlier log counts until that base is on disk, and is history afterwards. Raises: OSError.
        """
        self._era += 1
        self.disk.make_dir(self.layout.log_dir)
        self._mark_unfinished()
        self.manifest = self._manifest_on_disk()
        increment = self._next_increment()
        file = self._make_increment(increment)
        self.journal = Journal()
        self.commit = Commit(self.journal, file, policy, is_based=False)
        self.engine.context.effects = self.journal
        return self._plan(options, (increment,))

    def _manifest_on_disk(self) -> Manifest:
        """The manifest on disk. Raises: OSError, also if it is corrupt."""
        if not self.disk.exists(self.layout.manifest):
            return Manifest()
        try:
            return load_manifest(self.disk, self.layout.log_dir, self.layout.appendfilename)
        except CorruptData as error:
            raise OSError(errno.EBADMSG, str(error), self.layout.manifest) from error

    def drop_log(self) -> None:
        """End the log and ignore errors."""
        with suppress(OSError):
            self.end_log()

    def end_log(self) -> None:
        """End the log; its files stay. Raises: OSError if the last effects are not on disk."""
        self.engine.context.effects = None
        commit, self.commit = self.commit, None
        if commit is not None:
            commit.close()
            self._note_end(commit.file)

    def _note_end(self, file: Increment) -> None:
        """After a clean stop, record the length and checksum of the last increment (ST5).

        Without them the next start only compares less, so an error does no harm.
        """
        with suppress(OSError):
            self._save_manifest(self.manifest.with_last(self._entry_at_end(file)))

    def _entry_at_end(self, file: Increment) -> LogFile:
        """The entry of the last increment, with its length and checksum: nothing will be added to it."""
        last = self.manifest.increments[-1]
        return replace(last, size=file.size, crc=file_crc.of_lines(file.lines_crc))

    def close(self) -> None:
        """Sync everything and release the directory. Raises: OSError."""
        try:
            self.end_log()
        finally:
            self.release_lock()

    def release_lock(self) -> None:
        """Release the directory. In a forked copy the parent keeps its lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def log_bytes(self) -> int:
        """The total size of the log's files."""
        size = 0
        for file in self.manifest.files:
            # The thread that syncs may be removing a file, or may not have made it yet.
            with suppress(FileNotFoundError):
                size += self.disk.size(self.layout.log_file(file.name))
        return size

    # --- Rewriting ---------------------------------------------------------------------------------

    def begin_rewrite(self, options: SnapshotOptions) -> Rewrite:
        """Step 1: continue in a new increment, which the thread that syncs makes.

        Raises: OSError if too many rewrites have failed.
        """
        assert self.commit is not None
        if len(self.manifest.increments) >= INCREMENTS_MAX:
            raise OSError(
                errno.EMFILE,
                f"{len(self.manifest.increments)} rewrites have failed; restart to write a new base",
                self.layout.log_dir,
            )
        increment = self._next_increment()
        self.commit.change_file(lambda: self._change_to(increment))
        return self._plan(options, (increment,))

    def _change_to(self, increment: LogFile) -> Increment:
        """Run in the thread that syncs, and use the current manifest: another rewrite may have just ended.

        Without a base the increment is not listed, because it does not belong to the listed files.
        """
        assert self.commit is not None
        if not self.commit.is_based:
            return self._make_increment(increment)
        return self._continue_in(increment, self._entry_at_end(self.commit.file))

    def keep_log(self, name: str) -> str:
        """Link the files of the log into a data directory of their own, with a manifest; return its path.

        The manifest comes last: without it the directory is the rest of an attempt that failed. The effects
        so far must be in the files. Raises: OSError.
        """
        kept = replace(self.layout, directory=f"{self.layout.directory}/{name}")
        if self.disk.exists(kept.manifest):
            return kept.directory
        self.disk.make_dir(kept.log_dir)
        for found in self.disk.names(kept.log_dir):
            self.disk.remove(kept.log_file(found))
        manifest = Manifest(self.manifest.base, self.manifest.increments)
        for file in manifest.files:
            self.disk.link(self.layout.log_file(file.name), kept.log_file(file.name))
        self.disk.sync_dir(kept.log_dir)
        save_manifest(self.disk, kept.log_dir, kept.appendfilename, manifest)
        return kept.directory

    def begin_afresh(self, options: SnapshotOptions) -> Rewrite:
        """Step 1 after a failure. Raises: OSError if the disk still fails."""
        assert self.commit is not None
        self._era += 1
        self.disk.make_dir(self.layout.log_dir)  # a user may have removed it
        # Failed steps may have renamed manifests without a sync. Only the durable one tells what to remove.
        self.disk.sync_dir(self.layout.log_dir)
        self._remove_unlisted(self._manifest_on_disk(), self.manifest)
        while self._temporaries:
            self._remove(self._temporaries.pop())
        increment = self._next_increment()
        self.commit.start_afresh(self._make_increment(increment))
        return self._plan(options, (increment,))

    def _plan(self, options: SnapshotOptions, increments: tuple[LogFile, ...]) -> Rewrite:
        filename = self.layout.appendfilename
        base = self.manifest.next_base(filename, options.form, self._base_seq)
        self._base_seq = base.seq
        # A unique name, because the last rewrite's file may not have been renamed yet.
        temporary = self.layout.log_file(f"{TEMP_REWRITE}-{base.seq}")
        self._temporaries.append(temporary)
        return Rewrite(base, increments, temporary, self.layout.log_file(base.name), self._era)

    def _next_increment(self) -> LogFile:
        increment = self.manifest.next_increment(self.layout.appendfilename, self._increment_seq)
        self._increment_seq = increment.seq
        return increment

    def finish_rewrite(self, rewrite: Rewrite) -> None:
        """Step 3. Runs in the thread that syncs, so that step 1 is over. Raises: OSError.

        A rewrite of an earlier era is abandoned.
        """
        if rewrite.era != self._era:
            self.abandon_rewrite(rewrite)
            return
        self._unlisted.append(rewrite.base.name)
        self.disk.rename(rewrite.temporary, rewrite.final)
        self._temporaries.remove(rewrite.temporary)
        self.disk.sync_dir(self.layout.log_dir)
        base = self._complete(rewrite.base)
        # From the current manifest, which has the length of increments completed since.
        first = rewrite.increments[0].seq
        increments = tuple(file for file in self.manifest.increments if file.seq >= first)
        self._save_manifest(self.manifest.rebased(base, increments or rewrite.increments))
        if self.commit is not None:
            self.commit.base_is_there()
        if self.disk.exists(self.layout.unfinished):
            self._remove(self.layout.unfinished)
        self._remove_unlisted(self.manifest)
        self._drop_history()
        self.base_bytes = self.log_bytes()

    def _drop_history(self) -> None:
        listed = {file.name for file in self.manifest.files}
        for file in self.manifest.history:
            if file.name not in listed:
                self._remove(self.layout.log_file(file.name))
        self._save_manifest(Manifest(self.manifest.base, self.manifest.increments))

    def _remove_unlisted(self, *manifests: Manifest) -> None:
        """Remove files that no manifest lists, to free space on a full disk."""
        listed = {file.name for manifest in manifests for file in manifest.files}
        for name in self._unlisted:
            if name not in listed:
                self._remove(self.layout.log_file(name))
        self._unlisted = [name for name in self._unlisted if name in listed]

    def _remove(self, path: str) -> None:
        with suppress(OSError):
            self.disk.remove(path)

    def abandon_rewrite(self, rewrite: Rewrite) -> None:
        """Give up after step 2 has failed: the log continues, with one more increment."""
        if rewrite.temporary in self._temporaries:
            self._temporaries.remove(rewrite.temporary)
        self._remove(rewrite.temporary)

    def _continue_in(self, increment: LogFile, last: LogFile | None = None) -> Increment:
        """Make a new increment and list it. `last`: the previous one, now complete."""
        file = self._make_increment(increment)
        try:
            self._save_manifest(self.manifest.with_increment(increment, last))
        except OSError:
            file.close()
            raise
        return file

    def _make_increment(self, increment: LogFile) -> Increment:
        """Make a new file. Its first line and its name are on disk when this returns (ST1)."""
        self._unlisted.append(increment.name)
        file = Increment(self.disk.create(self.layout.log_file(increment.name)))
        try:
            # A file of that name may exist, and after a crash its old bytes could return.
            file.append(b"")
            file.sync()
            self.disk.sync_dir(self.layout.log_dir)
        except OSError:
            file.close()
            raise
        return file

    def _save_manifest(self, manifest: Manifest) -> None:
        save_manifest(self.disk, self.layout.log_dir, self.layout.appendfilename, manifest)
        self.manifest = manifest

    # --- Writing the data --------------------------------------------------------------------------

    def write_base(self, path: str, options: SnapshotOptions) -> None:
        """Write all data as a base. It is on disk when this returns. Raises: OSError."""
        self._write(path, self.engine, options, is_base=True)

    def compact(self, rewrite: Rewrite, options: SnapshotOptions) -> None:
        """Step 2 from the files that the base will replace, instead of the data in memory.

        Step 1 must be over. Raises: OSError, CorruptData.
        """
        recovery = self.recovery(load_truncated=False)
        replaced = [file for file in self.manifest.files if file not in rewrite.increments]
        recovery.read_files([self.layout.log_file(file.name) for file in replaced])
        self._write(rewrite.temporary, recovery.engine, options, is_base=True)

    def save(self, options: SnapshotOptions) -> None:
        """Write all data as the directory's snapshot. Raises: OSError."""
        temporary = f"{self.layout.directory}/{TEMP_SNAPSHOT}"
        self._write(temporary, self.engine, options, is_base=False)
        self.disk.rename(temporary, self.layout.snapshot)
        self.disk.sync_dir(self.layout.directory)

    def _write(self, path: str, engine: Engine, options: SnapshotOptions, is_base: bool) -> None:
        """Write a file and read it back. Raises: OSError after removing the file."""
        file = self.disk.create(path)
        try:
            try:
                write_snapshot(file, engine, options, is_base)
                file.sync()
            finally:
                file.close()
            read_back(self.disk, path, engine, self._rows)
        except OSError:
            self._remove(path)
            raise
