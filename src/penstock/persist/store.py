"""The store: one data directory, and the engine whose data it keeps.

    open       lock the directory, read what is there, go on with the log
    commit     what is done from now on, on its way to disk (persist/aof/commit.py)
    rewrite    a new base in the place of the old one and its increments
    save       a snapshot beside the log
    close      everything on disk, the lock free

A rewrite, step by step; a crash between any two leaves a manifest whose files are all there:

    1  begin     the log goes on in a new increment, which the manifest lists
    2            somebody writes the data as they were at that moment into temp-rewrite, and syncs it
                 it is read back: a base that nobody can read must not replace anything
    3  finish    temp-rewrite gets the next base's name; a manifest with that base and the increments since
                 step 1 takes the old one's place; the files that it no longer names are removed

After a failed write the log is not to be trusted any more (persist/aof/commit.py), so step 1 differs: the
new increment is not listed before step 3, and nothing is accepted until then. The same where a log is
begun anew.

A rewrite that fails leaves one more increment in the manifest. After INCREMENTS_MAX of them no rewrite
begins; the next start writes a new base before it goes on.

What makes a crash harmless, besides the order of the steps:

    S1  a name is in the manifest only when the file under it is on disk: its first line, its name, then the
        manifest that lists it
    S2  no number is given away twice: a step that failed may have left a manifest on disk that names it
    S3  a first log is not one before its manifest is there; a mark in the directory says so until then
    S4  a file that somebody else wrote on last is complete: the log goes on in a new one, whose first line
        says that it is ours (persist/aof/batch.py)
    S5  after a clean stop the manifest states length and checksum of the last increment too. A start that
    goes
        on with it takes them out again, before anything is written
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
    """A rewrite under way: the increments that the new base does not cover.

    `era`: since a log was begun afresh, those that were under way before are of no use.
    """

    base: LogFile
    increments: tuple[LogFile, ...]
    temporary: str
    final: str
    era: int


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
        self._base_seq = self._increment_seq = 0  # the largest that were given away (S2)
        self._unlisted: list[str] = []  # what was made, and may never get into a manifest
        self._temporaries: list[str] = []
        self._era = 0
        self._rows = list(rows)
        self._lock: Lock | None = None
        self._was_used = False  # the lock file was there

    # --- Opening and closing -----------------------------------------------------------------------

    def lock(self) -> None:
        """Have the directory for oneself. Raises: DirectoryInUse, OSError.

        A server that was killed just after it forked leaves a child behind that has the lock too, until it
        has closed its files a moment later.
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
        """What reads the directory, into a spare engine that `engine` adopts afterwards."""
        recovery = Recovery(
            self.disk, self.layout, self.engine.spare(), self._rows, load_truncated=load_truncated
        )
        recovery.was_used = self._was_used
        return recovery

    def begin_log(self, recovered: Recovered, policy: Policy, options: SnapshotOptions) -> None:
        """Go on with the log that was read, or begin one with what is in memory. Raises: OSError."""
        self.disk.make_dir(self.layout.log_dir)
        if recovered.manifest is None:
            self._mark_unfinished()
            self._write_first_base(options)
            file = self._go_on_in(self._next_increment())
        else:
            # Those who put it there may have been killed before it was there for good.
            self.disk.sync_dir(self.layout.log_dir)
            self.manifest = recovered.manifest
            file = self._open_last(recovered)
        self._tidy()
        if len(self.manifest.increments) >= INCREMENTS_MAX:
            self._replace_all(options)
        self.base_bytes = self.log_bytes()
        self.commit = Commit(self.journal, file, policy)
        self.engine.context.effects = self.journal

    def _write_first_base(self, options: SnapshotOptions) -> None:
        rewrite = self._plan(options, ())
        self.write_base(rewrite.temporary, options)
        self.disk.rename(rewrite.temporary, rewrite.final)
        self._temporaries.clear()
        self.manifest = Manifest(self._complete(rewrite.base))

    def _replace_all(self, options: SnapshotOptions) -> None:
        """Write a new base while nothing is written yet: too many rewrites have failed.

        If this one fails too, the log goes on as it is.
        """
        rewrite = self._plan(options, self.manifest.increments[-1:])
        with suppress(OSError):
            self.write_base(rewrite.temporary, options)
            self.finish_rewrite(rewrite)

    def _complete(self, file: LogFile) -> LogFile:
        """A file that is complete, with its length and its checksum."""
        path = self.layout.log_file(file.name)
        return replace(file, size=self.disk.size(path), crc=file_crc.of_file(self.disk, path))

    def _open_last(self, recovered: Recovered) -> Increment:
        """Go on in the last increment, or in a new one where that is nobody's or somebody else's (S4)."""
        if not self.manifest.increments:
            return self._go_on_in(self._next_increment())
        last = self.manifest.increments[-1]
        file = self.disk.append_to(self.layout.log_file(last.name))
        file.sync()  # as above
        if not recovered.is_vouched:
            size = file.size
            file.close()
            return self._go_on_in(self._next_increment(), replace(last, size=size))
        if last.size is not None:
            self._save_manifest(self.manifest.with_last(LogFile(last.name, last.seq)))  # S5
        return Increment(file, recovered.lines_crc)

    def _mark_unfinished(self) -> None:
        """S3. Raises: OSError, also where there are files of a log that has lost its manifest."""
        if self.disk.exists(self.layout.manifest) or self.disk.exists(self.layout.unfinished):
            return
        names = self.disk.names(self.layout.log_dir)
        if any(name.startswith(f"{self.layout.appendfilename}.") for name in names):
            raise FileExistsError(
                errno.EEXIST,
                "there are files of a log, but no manifest: restore it, or move them away",
                self.layout.log_dir,
            )
        self.disk.create(self.layout.unfinished).close()
        self.disk.sync_dir(self.layout.log_dir)

    def _tidy(self) -> None:
        """Remove what earlier processes have left; what cannot be removed does no harm."""
        for name in self.disk.names(self.layout.log_dir):
            path = self.layout.log_file(name)
            if name.startswith(TEMP_REWRITE) or path == self.layout.unfinished:
                self._remove(path)
        if self.manifest.history:
            self._drop_history()

    def begin_new_log(self, policy: Policy, options: SnapshotOptions) -> Rewrite:
        """Log what is done from now on; what was done before is the base that is still to be written.

        A log that was ended before counts until then, and is history afterwards. Raises: OSError.
        """
        self._era += 1
        self.disk.make_dir(self.layout.log_dir)
        self._mark_unfinished()
        self.manifest = self._manifest_there()
        increment = self._next_increment()
        file = self._make_increment(increment)
        self.journal = Journal()
        self.commit = Commit(self.journal, file, policy, is_based=False)
        self.engine.context.effects = self.journal
        return self._plan(options, (increment,))

    def _manifest_there(self) -> Manifest:
        """What is on disk. Raises: OSError, also for one that cannot be read."""
        if not self.disk.exists(self.layout.manifest):
            return Manifest()
        try:
            return load_manifest(self.disk, self.layout.log_dir, self.layout.appendfilename)
        except CorruptData as error:
            raise OSError(errno.EBADMSG, str(error), self.layout.manifest) from error

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
            self._note_end(commit.file)

    def _note_end(self, file: Increment) -> None:
        """A clean stop: note what the last increment has to be at the next start (S5).

        Without the note the next start compares less. So a disk that cannot take it does no harm.
        """
        last = self.manifest.increments[-1]
        noted = replace(last, size=file.size, crc=file_crc.of_lines(file.lines_crc))
        with suppress(OSError):
            self._save_manifest(self.manifest.with_last(noted))

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
        """Step 1: what is done from now on goes into a new increment, made by the thread that syncs.

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
        """In the thread that syncs, with the manifest of that moment: another rewrite may have ended before.

        While there is no base, no increment is listed: it would follow files that it does not belong to.
        """
        assert self.commit is not None
        if not self.commit.is_based:
            return self._make_increment(increment)
        file = self.commit.file
        last = self.manifest.increments[-1]
        complete = replace(last, size=file.size, crc=file_crc.of_lines(file.lines_crc))
        return self._go_on_in(increment, complete)

    def begin_afresh(self, options: SnapshotOptions) -> Rewrite:
        """Step 1 after a failure. Raises: OSError if the disk is still not what it should be."""
        assert self.commit is not None
        self._era += 1
        self.disk.make_dir(self.layout.log_dir)  # it may have been removed
        # Several manifests may have been put there in vain. Only the one that lasts tells what may go.
        self.disk.sync_dir(self.layout.log_dir)
        self._remove_unlisted(self._manifest_there(), self.manifest)
        while self._temporaries:
            self._remove(self._temporaries.pop())
        increment = self._next_increment()
        self.commit.start_afresh(self._make_increment(increment))
        return self._plan(options, (increment,))

    def _plan(self, options: SnapshotOptions, increments: tuple[LogFile, ...]) -> Rewrite:
        filename = self.layout.appendfilename
        base = self.manifest.next_base(filename, options.form, self._base_seq)
        self._base_seq = base.seq
        # A name of its own: the last rewrite's may not have been renamed yet.
        temporary = self.layout.log_file(f"{TEMP_REWRITE}-{base.seq}")
        self._temporaries.append(temporary)
        return Rewrite(base, increments, temporary, self.layout.log_file(base.name), self._era)

    def _next_increment(self) -> LogFile:
        increment = self.manifest.next_increment(self.layout.appendfilename, self._increment_seq)
        self._increment_seq = increment.seq
        return increment

    def finish_rewrite(self, rewrite: Rewrite) -> None:
        """Step 3. To be done by whoever syncs, so that step 1 is over. Raises: OSError.

        One that a new era has overtaken is abandoned.
        """
        if rewrite.era != self._era:
            self.abandon_rewrite(rewrite)
            return
        self._unlisted.append(rewrite.base.name)
        self.disk.rename(rewrite.temporary, rewrite.final)
        self._temporaries.remove(rewrite.temporary)
        self.disk.sync_dir(self.layout.log_dir)
        base = self._complete(rewrite.base)
        # As they are listed by now: one that was written on since has got its length there.
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
        """Remove what was made in vain: a disk that is full needs the room."""
        listed = {file.name for manifest in manifests for file in manifest.files}
        for name in self._unlisted:
            if name not in listed:
                self._remove(self.layout.log_file(name))
        self._unlisted = [name for name in self._unlisted if name in listed]

    def _remove(self, path: str) -> None:
        with suppress(OSError):
            self.disk.remove(path)

    def abandon_rewrite(self, rewrite: Rewrite) -> None:
        """Step 2 failed: the log goes on as it is, in one more file."""
        if rewrite.temporary in self._temporaries:
            self._temporaries.remove(rewrite.temporary)
        self._remove(rewrite.temporary)

    def _go_on_in(self, increment: LogFile, last: LogFile | None = None) -> Increment:
        """A new increment that the manifest lists; `last`: the one before it, complete now."""
        file = self._make_increment(increment)
        try:
            self._save_manifest(self.manifest.with_increment(increment, last))
        except OSError:
            file.close()
            raise
        return file

    def _make_increment(self, increment: LogFile) -> Increment:
        """A new file, on disk with its first line and its name (S1)."""
        self._unlisted.append(increment.name)
        file = Increment(self.disk.create(self.layout.log_file(increment.name)))
        try:
            # Also because one of that name may be there, and its bytes could come back.
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
        """Write a file and read it back. Raises: OSError; then it is gone."""
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
