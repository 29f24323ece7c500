"""Recovery reads the files of a directory into memory. It uses the first that exists:

    1  a manifest: its base, then its increments, in order
    2  files of a log without a manifest: refused, because it is unknown which of them count
    3  appendonly.aof, the log of an older Redis
    4  dump.rdb
    5  nothing: empty

Without a log (appendonly no) only 4 and 5 apply. Everything is read into a spare engine. The running engine
adopts the data when all of it was read and validated. After a clean stop the manifest states the length and
the checksum of every file, and both are compared.

Recovery changes no file, with one exception: it cuts off a torn end of the last file (persist/aof/replay.py
defines torn) if `load_truncated` allows it. The bytes that it cuts off are kept in another file and reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.core.stream import Stream
from penstock.engine.execute import Engine
from penstock.engine.table import Command
from penstock.errors import CorruptData
from penstock.persist.aof import file_crc
from penstock.persist.aof.manifest import LogFile, Manifest, load_manifest
from penstock.persist.aof.replay import Replay, Torn
from penstock.persist.disk import Disk, Source
from penstock.persist.layout import Layout
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb.reader import RdbReader, load_databases
from penstock.persist.rdb.value import ValueLimits
from penstock.persist.reading import Joined, read_all, read_into
from penstock.persist.replication_point import ReplicationPoint, point_of_aux_or_none

CUT_PREFIX = "cut-"


@dataclass(slots=True)
class Progress:
    """The progress of a recovery."""

    bytes_total: int = 0
    bytes_done: int = 0

    def step(self, count: int) -> None:
        """Count bytes that were read."""
        self.bytes_done += count


@dataclass(frozen=True, slots=True)
class Cut:
    """A torn end that was cut off. `kept_in`: the file that it was copied to, None if it was zeros."""

    path: str
    offset: int
    lost_bytes: int
    why: str
    kept_in: str | None

    def __str__(self) -> str:
        kept = "they were zeros" if self.kept_in is None else f"they are kept in {self.kept_in}"
        return (
            f"{self.path} was torn at byte {self.offset} ({self.why}): {self.lost_bytes} bytes were cut off,"
            f" {kept}"
        )


@dataclass(slots=True)
class Recovered:
    """The result of a recovery. `manifest` is None if there was no log."""

    engine: Engine
    manifest: Manifest | None = None
    sources: list[str] = field(default_factory=list)
    keys: int = 0
    commands: int = 0
    cut: Cut | None = None
    missing: str | None = None  # a text, if the directory was used but holds no data
    # The last file ends with a batch, after the cut if there was one.
    is_vouched: bool = False
    lines_crc: int = 0  # of the last file (persist/aof/increment.py)
    point: ReplicationPoint | None = None  # where the data is in a replication history

    @property
    def warnings(self) -> list[str]:
        """Messages for the user."""
        return [str(warning) for warning in (self.cut, self.missing) if warning is not None]


class Recovery:
    """Reads a directory into a spare engine: with_log(), snapshot_only()."""

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        engine: Engine,
        rows: Iterable[Command],
        load_truncated: bool = True,
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._load_truncated = load_truncated
        self.engine = engine
        self.skip_foreign = (
            False  # skip values of unsupported types; only for callers that never write
        )
        self.was_used = False  # an earlier process had the directory
        self.progress = Progress()
        self._found = Recovered(engine)
        self._noted: dict[str, LogFile] = {}  # by path: the files whose length the manifest records
        self._replay = Replay(engine, rows, self.progress.step)

    def with_log(self) -> Recovered:
        """Read the log, or the files that a new log starts from. Raises: CorruptData, OSError."""
        disk, layout = self._disk, self._layout
        if disk.exists(layout.manifest):
            manifest = load_manifest(disk, layout.log_dir, layout.appendfilename)
            self._found.manifest = manifest
            self._load_log(manifest)
        else:
            self._refuse_orphans()
            if disk.exists(layout.old_log):
                self.read_files([layout.old_log])
            else:
                self._load_snapshot()
            if self.was_used and not self._found.sources:
                self._found.missing = (
                    f"{layout.directory} was used before, but has neither a log ({layout.appenddirname}) nor"
                    f" a snapshot ({layout.dbfilename}): starting without data"
                )
        return self._done()

    def snapshot_only(self) -> Recovered:
        """Read the snapshot, if there is one. Raises: CorruptData, OSError."""
        self._load_snapshot()
        if self._disk.exists(self._layout.manifest):
            self._found.missing = f"the log in {self._layout.log_dir} is not read: appendonly is no"
        return self._done()

    def entries(self) -> int:
        """The number of keys and commands read so far."""
        return self._found.keys + self._replay.commands

    def _done(self) -> Recovered:
        self._found.commands = self._replay.commands
        _see_consumers(self.engine)
        return self._found

    def _load_snapshot(self) -> None:
        if self._disk.exists(self._layout.snapshot):
            self.read_files([self._layout.snapshot])

    def _refuse_orphans(self) -> None:
        """Refuse log files without a manifest: they may hold data, so they are not ignored."""
        if self._disk.exists(self._layout.unfinished):
            return  # a first log was not finished; the files that it was made from are still there
        names = self._disk.names(self._layout.log_dir)
        orphans = [name for name in names if name.startswith(self._layout.appendfilename + ".")]
        if orphans:
            raise CorruptData(
                f"{self._layout.manifest}: it is missing, but {', '.join(orphans[:5])} exist: "
                "restore it, or move them away to start without them",
                0,
            )

    def _load_log(self, manifest: Manifest) -> None:
        for file in manifest.files:
            self._check_is_there(file, is_last=file in manifest.increments[-1:])
        last = manifest.increments[-1:] if manifest.is_ours else ()
        if last and self._disk.size(self._layout.log_file(last[0].name)) == 0:
            raise CorruptData(
                f"{self._layout.log_file(last[0].name)}: it is empty, but was not when it was listed:"
                " restore it, or see what is left with penstock check --repair",
                0,
            )
        self._noted = {
            self._layout.log_file(file.name): file
            for file in manifest.files
            if file.size is not None
        }
        self.read_files([self._layout.log_file(file.name) for file in manifest.files])

    def _check_is_there(self, file: LogFile, is_last: bool) -> None:
        """Check that a file exists with its recorded length; the last one may have grown.

        Redis appends to the last file and does not change our manifest.
        """
        if not self._disk.exists(self._layout.log_file(file.name)):
            raise CorruptData(
                f"{self._layout.manifest}: {file.name} is listed but missing: restore it, or see what "
                "is left with penstock check --repair",
                0,
            )
        path = self._layout.log_file(file.name)
        size = self._disk.size(path)
        if file.size is None or (is_last and size > file.size):
            return
        if size != file.size:
            raise CorruptData(
                f"{path}: it has {size} bytes, but {file.size} were written: restore it, or see what is left"
                " with penstock check --repair",
                min(size, file.size),
            )

    def read_files(self, paths: list[str]) -> None:
        """Read the files of a log, or a single file. Raises: CorruptData, OSError."""
        self.progress.bytes_total = sum(self._disk.size(path) for path in paths)
        for path in paths:
            try:
                self._check_crc(path, self._load_file(path))
            except Torn as torn:
                self._check_crc(path, file_crc.of_lines(self._replay.lines_crc))
                self._cut(path, torn, is_last=path == paths[-1])
            self._found.sources.append(path)
            self._found.is_vouched = self._replay.is_batched()
            self._found.lines_crc = self._replay.lines_crc
            if self._replay.commands or self._replay.point is not None:
                self._found.point = self._replay.point

    def _check_crc(self, path: str, found: str) -> None:
        """Compare the checksum: a file of the right length can still be the wrong one."""
        file = self._noted.get(path)
        if file is not None and file.crc not in (None, found):
            raise CorruptData(
                f"{path}: its checksum is {found}, but the manifest says {file.crc}: it is not the original"
                " file; restore it, or see what is left with penstock check --repair",
                0,
            )

    def _load_file(self, path: str) -> str:
        """Load a snapshot, commands, or a snapshot followed by commands, regardless of the file's name.

        Returns the checksum of the file, as in a manifest (persist/aof/file_crc.py).
        """
        source = self._disk.read(path)
        try:
            first = bytearray(rdb_format.MAGIC_BYTES_MAX)
            size = read_into(source, memoryview(first))
            self.progress.step(size)
            if self._is_snapshot(path) and not first[:size].strip(b"\0"):
                # Read as a log it would be empty or torn, and its data would be lost unnoticed.
                raise CorruptData(f"{path}: it is empty or all zeros, but should be a snapshot", 0)
            if rdb_format.is_snapshot(bytes(first[:size])):
                head = bytes(first[:size])
                return file_crc.of_snapshot(self._load_rdb(Joined(head, source), path))
            if size:
                self._replay.run(source, path, bytes(first[:size]))
            return file_crc.of_lines(self._replay.lines_crc if size else 0)
        finally:
            source.close()

    def _is_snapshot(self, path: str) -> bool:
        return path == self._layout.snapshot or path.endswith(".rdb")

    def _load_rdb(self, source: Source, path: str) -> int:
        """Load a snapshot; return the checksum at its end."""
        limits = ValueLimits(self.engine.limits, self.engine.list_limits)
        reader = RdbReader(source, path, limits, skip_foreign=self.skip_foreign)
        self._found.keys += load_databases(reader, self.engine.context.databases)
        self._found.point = point_of_aux_or_none(reader.aux)
        # In an old log, commands may follow the snapshot.
        self._replay.run(source, path, reader.rest(), reader.offset)
        return reader.checksum

    def _cut(self, path: str, torn: Torn, is_last: bool) -> None:
        size = self._disk.size(path)
        file = self._noted.get(path)
        if not is_last or (file is not None and torn.offset < (file.size or 0)):
            raise CorruptData(f"{path}: {torn.why}, in a file that was complete", torn.offset)
        if not self._load_truncated:
            raise CorruptData(
                f"{path}: {torn.why}; {size - torn.offset} bytes would have to be cut off: "
                "allow it with aof-load-truncated yes, or see penstock check --repair",
                torn.offset,
            )
        kept_in = self._keep_tail(path, torn.offset)
        self._disk.truncate(path, torn.offset)
        self._found.cut = Cut(path, torn.offset, size - torn.offset, torn.why, kept_in)

    def _keep_tail(self, path: str, offset: int) -> str | None:
        """Copy the end of a file to another file, durably; None if it is all zeros."""
        tail = read_all(self._disk, path, offset)
        if not tail.strip(b"\0"):
            return None
        directory, _, name = path.rpartition("/")
        kept_in = f"{directory}/{CUT_PREFIX}{name}-{offset}"
        file = self._disk.create(kept_in)
        try:
            file.write(tail)
            file.sync()
        finally:
            file.close()
        self._disk.sync_dir(directory)
        return kept_in


def _see_consumers(engine: Engine) -> None:
    """Set the last-seen time of consumers to now if no file states it."""
    engine.context.instant.advance()
    now_ms = engine.context.now_ms()
    for keyspace in engine.context.databases:
        for value in keyspace.values.values():
            if isinstance(value, Stream) and value.groups is not None:
                for _, group in value.groups.pairs():
                    for _, consumer in group.consumers.pairs():
                        if consumer.seen_ms == 0:
                            consumer.seen_ms = now_ms
