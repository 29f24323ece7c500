"""Checks files: reads them as a server would, into a scratch engine, and then verifies every value.

    find_target   finds the files to read and their order                  (target.py)
    read          uses the readers of recovery (RdbReader, Replay); a file that they refuse is damaged
    walk          runs the integrity checks of core/check on every value
    count         counts keys, entries, groups, pending records

A value of a snapshot that is refused is recorded and left out, and reading continues after it if the
structure of the file can be followed to its end (persist/rdb/salvage.py). The same goes for a refused command
of a log. Later commands on a key that was left out may be refused too.

Reading stops at a hole, where bytes are missing or changed, for example after a snapshot whose checksum is
wrong: later commands may depend on the lost data. With `past_damage`, reading resumes at the next batch with
a valid checksum, and in the files after it. Up to the next SELECT, these commands are applied to the database
that was selected before the hole.

A damaged manifest may list two bases. Then the newest valid one is used.

Cost: the memory and the time of a server start, plus O(everything) for the integrity checks. A damaged file
is also held in memory.
"""

from __future__ import annotations

import io
from collections.abc import Callable

from penstock.core.check import check_list, check_stream
from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.engine.execute import DATABASES, Engine
from penstock.errors import CorruptData, InvariantBroken
from penstock.persist.aof import batch, file_crc
from penstock.persist.aof.replay import Replay, Torn
from penstock.persist.check import target as check_target
from penstock.persist.check.report import FileReport, LeftOut, Part, Report, Verdict, count
from penstock.persist.disk import Disk, Source
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb import salvage as rdb_salvage
from penstock.persist.rdb import value as rdb_value
from penstock.persist.rdb.reader import Extent, RdbItem, RdbReader
from penstock.persist.rdb.value import ValueLimits
from penstock.persist.reading import Joined, read_all, read_into
from penstock.persist.rows import DATA_ROWS

DATABASES_MAX = 1024  # a file does not record the server's `databases` setting

_SHOWN_KEY_BYTES_MAX = 64
_SELECT = b"*2\r\n$6\r\nSELECT\r\n$%d\r\n%d\r\n"
_RDB, _AOF, _BOTH = "RDB", "AOF", "RDB+AOF"
_REPAIR = "restore it from a copy, or see what --repair can save"
_CUT = "the server cuts it off at its next start (aof-load-truncated), or use --repair"


def check_path(
    disk: Disk,
    path: str,
    on_bytes: Callable[[int], None] | None = None,
    past_damage: bool = False,
    keep_data: bool = False,
) -> Report:
    """Check the files at a path. `on_bytes` is called with the size of each read. Raises: OSError."""
    report = check_target.find_target(disk, path)
    check_report(disk, report, on_bytes, past_damage, keep_data)
    return report


def check_report(
    disk: Disk,
    report: Report,
    on_bytes: Callable[[int], None] | None = None,
    past_damage: bool = False,
    keep_data: bool = False,
) -> None:
    """Check the files of a report by `find_target`. `keep_data`: its parts keep the data read."""
    for part in report.parts:
        part.past_damage = past_damage
        engine = _check_part(disk, report, part, on_bytes)
        if keep_data:
            part.engine = engine


def _check_part(
    disk: Disk, report: Report, part: Part, on_bytes: Callable[[int], None] | None
) -> Engine:
    to_read = [file for file in part.files if file.role != check_target.MANIFEST]
    bases = [file for file in to_read if file.role == check_target.BASE]
    reader = PartReader(disk, report, part, on_bytes)
    if len(bases) > 1:
        reader = _choose_base(reader, bases, lambda: PartReader(disk, report, part, on_bytes))
        to_read = [file for file in to_read if file not in bases]
    for file in to_read:
        reader.read(file, is_last=file is to_read[-1])
    reader.walk()
    part.totals = count(reader.engine)
    _warn_of_databases(report, reader.engine)
    _warn_of_manifest(report, part)
    return reader.engine


def _choose_base(
    reader: PartReader, bases: list[FileReport], make: Callable[[], PartReader]
) -> PartReader:
    """Read the newest valid base. If there is none, read what is readable of the newest."""
    part = reader.part
    for base in bases:
        reader.read(base, is_last=False)
        if base.verdict is Verdict.SOUND:
            reader.report.warnings.append(f"of {len(bases)} bases {base.path} is taken")
            break
        reader = make()
    else:
        newest = next((base for base in bases if base.kind), bases[0])
        if newest.kind:
            newest.verdict, newest.keys = Verdict.SOUND, 0
        reader.read(newest, is_last=False)
    for base in bases:
        if base.verdict is Verdict.SOUND and not base.kind:
            base.judge(Verdict.NOT_READ, "another base was taken")
            part.leave_out(LeftOut(base.path, 0, base.size, "another base was taken"))
    return reader


def _warn_of_databases(report: Report, engine: Engine) -> None:
    used = [keyspace.index for keyspace in engine.context.databases if keyspace.values]
    if used and used[-1] >= DATABASES:
        report.warnings.append(
            f"database {used[-1]} is used: a server needs the setting databases {used[-1] + 1}"
        )


def _warn_of_manifest(report: Report, part: Part) -> None:
    """Warn if the manifest has no checksum, although penstock wrote batches to its files."""
    if any(file.batches for file in part.files):
        for file in part.files:
            if file.kind == check_target.MANIFEST and not file.checksum:
                report.warnings.append(
                    f"{file.path} has no checksum: Redis wrote it, or its last line is lost"
                )


class PartReader:
    """Reads the files of one part, in order, into its own engine."""

    def __init__(
        self, disk: Disk, report: Report, part: Part, on_bytes: Callable[[int], None] | None
    ) -> None:
        self.report = report
        self.part = part
        self.engine = Engine(databases=DATABASES_MAX)
        self._disk = disk
        self._on_bytes = on_bytes
        self._replay = Replay(self.engine, DATA_ROWS)
        self._hole = ""  # the last damaged file
        self._file = FileReport("", "")  # the current file
        self._has_lost_keys = False  # of a snapshot: later refusals may follow from it
        self._replay.on_refused = self._note_refused

    def read(self, file: FileReport, is_last: bool) -> None:
        """Read one file and judge it."""
        if file.verdict is not Verdict.SOUND:
            self._stop(file, LeftOut(file.path, 0, file.size, file.what))
            return
        if self._hole and not self.part.past_damage:
            file.judge(Verdict.NOT_READ, f"it follows the damage in {self._hole}")
            self.part.leave_out(LeftOut(file.path, 0, file.size, file.what))
            return
        self._file = file
        replay = self._replay
        commands, batches, unvouched = replay.commands, replay.batches, replay.unvouched
        try:
            self._compare(file, self._read(file), is_last)
        except Torn as torn:
            is_end = is_last and torn.offset >= (file.written or 0)
            is_same = file.crc in (None, file_crc.of_lines(replay.lines_crc))
            self._judge_torn(file, torn, is_end and is_same)
        except CorruptData as error:
            self._judge_damaged(file, error)
        except OSError as error:
            file.judge(Verdict.UNREADABLE, error.strerror or str(error))
            self._stop(file, LeftOut(file.path, 0, file.size, file.what))
        file.commands = replay.commands - commands
        file.batches = replay.batches - batches
        unvouched = replay.unvouched - unvouched
        if file.batches and unvouched:
            self.report.warnings.append(
                f"{file.path}: {unvouched} commands are not covered by a checksum: Redis wrote them, or the"
                " line of a batch is damaged"
            )

    def _compare(self, file: FileReport, crc: str, is_last: bool) -> None:
        """Compare a file with its manifest entry; the last one may have grown. Raises: CorruptData."""
        if is_last and self._was_emptied(file):
            raise CorruptData("it is empty, but was not when it was listed", 0)
        has_grown = is_last and file.written is not None and file.size > file.written
        if file.written not in (None, file.size) and not has_grown:
            what = f"it has {file.size} bytes, but {file.written} were written"
            raise CorruptData(what, min(file.size, file.written or 0))
        if file.verdict is Verdict.SOUND and file.crc not in (None, crc):
            what = f"its checksum is {crc}, but the manifest says {file.crc}: it is not the original file"
            raise CorruptData(what, file.size)

    def _was_emptied(self, file: FileReport) -> bool:
        """Tell whether an increment of ours is empty: it had a first line before the manifest listed it."""
        manifests = [other for other in self.part.files if other.kind == check_target.MANIFEST]
        is_ours = any(manifest.checksum for manifest in manifests)
        return is_ours and file.role == check_target.INCREMENT and file.size == 0

    def walk(self) -> None:
        """Check the integrity of every value; a broken one is damage and is left out."""
        for keyspace in self.engine.context.databases:
            for key, value in list(keyspace.values.items()):
                try:
                    if isinstance(value, Stream):
                        check_stream(value)
                    elif isinstance(value, ListValue):
                        check_list(value)
                except InvariantBroken as error:
                    shown = key[:_SHOWN_KEY_BYTES_MAX]
                    what = f"the key {shown!r} in database {keyspace.index}: {error}"
                    keyspace.remove(key)
                    self.part.files[-1].judge(Verdict.DAMAGED, what, remedy=_REPAIR)
                    self.part.leave_out(LeftOut(self.part.files[-1].path, -1, 0, what))

    # --- One file ----------------------------------------------------------------------------------

    def _read(self, file: FileReport) -> str:
        """Read a file; return its checksum (persist/aof/file_crc.py)."""
        source = _Counted(self._disk.read(file.path), self._on_bytes)
        try:
            first = bytearray(rdb_format.MAGIC_BYTES_MAX)
            size = read_into(source, memoryview(first))
            head = bytes(first[:size])
            if not head.strip(b"\0") and _should_be_snapshot(file):
                raise CorruptData("it is empty or all zeros, but should be a snapshot", 0)
            if rdb_format.is_snapshot(head):
                return file_crc.of_snapshot(self._read_rdb(Joined(head, source), file))
            file.kind = _AOF
            if not size:
                self.report.warnings.append(f"{file.path} is empty")
            self._replay.run(source, file.path, head)
            return file_crc.of_lines(self._replay.lines_crc)
        finally:
            source.close()

    def _read_rdb(self, source: Source, file: FileReport) -> int:
        """Read a snapshot; return the checksum at its end, 0 if it is damaged."""
        file.kind = _RDB
        engine = self.engine
        limits = ValueLimits(engine.limits, engine.list_limits)
        reader = RdbReader(source, file.path, limits, deep=True)
        try:
            for item in reader.items():
                self._put(file, item, reader.place)
        except CorruptData as error:
            if self._salvage(file, error, reader.place, limits):
                return 0
            raise
        finally:
            file.version = reader.version
            version = rdb_format.redis_version(reader.version)
            self.part.rdb_version = max(self.part.rdb_version, version)
        file.checksum = reader.vouched
        if not reader.vouched:
            self.report.warnings.append(
                f"{file.path} has no checksum: a changed bit in a value would go unnoticed"
            )
        if reader.empty_keys:
            self.report.warnings.append(
                f"{file.path}: {reader.empty_keys} keys are empty lists; they are skipped, as Redis does"
            )
        rest = reader.rest()
        if rest:
            file.kind = _BOTH
        self._replay.run(source, file.path, rest, reader.offset)
        return reader.checksum

    def _put(self, file: FileReport, item: RdbItem, place: int) -> None:
        """Add a key. Raises: CorruptData if it exists or its database does not."""
        databases = self.engine.context.databases
        if item.database >= len(databases):
            raise CorruptData(f"a key of database {item.database}", place)
        keyspace = databases[item.database]
        if item.key in keyspace.values:
            shown = item.key[:_SHOWN_KEY_BYTES_MAX]
            raise CorruptData(f"a second key {shown!r} in database {item.database}", place)
        keyspace.put(item.key, item.value)
        if item.expiry_ms is not None:
            keyspace.set_expiry(item.key, item.expiry_ms)
        file.keys += 1

    def _salvage(
        self, file: FileReport, error: CorruptData, place: int, limits: ValueLimits
    ) -> bool:
        """Continue after a refused value; False if its end cannot be found."""
        source = self._disk.read(file.path)
        try:
            outline = rdb_salvage.outline_or_none(source, file.path, place)
        finally:
            source.close()
        if outline is None or not (outline.extents or outline.operations):
            return False
        file.judge(Verdict.DAMAGED, _without(file.path, error.what), error.offset, _REPAIR)
        self._has_lost_keys = self.part.has_skipped = True
        for offset, what in outline.operations:
            self.part.leave_out(
                LeftOut(file.path, offset, 0, f"{what}, which penstock cannot keep")
            )
        source = self._disk.read(file.path)
        try:
            slices = rdb_salvage.Slices(source)
            for extent in outline.extents:
                self._salvage_key(file, extent, slices.take(extent.start, extent.end), limits)
            slices.skip_to(outline.end)
            if file.size > outline.end:
                file.kind = _BOTH
            if not outline.is_vouched:
                # This is damage, not just an unsupported value, and it may extend further.
                at = outline.end - rdb_format.CHECKSUM_BYTES
                raise CorruptData("a value was refused, and the file has no valid checksum", at)
            self._replay.run(source, file.path, b"", outline.end)
        finally:
            source.close()
        return True

    def _salvage_key(
        self, file: FileReport, extent: Extent, raw: bytes, limits: ValueLimits
    ) -> None:
        try:
            value = rdb_salvage.value_of(raw, extent, limits)
            if not rdb_value.is_empty_list(value):
                item = RdbItem(extent.database, extent.key, extent.expiry_ms, value)
                self._put(file, item, extent.place)
        except CorruptData as error:
            shown = extent.key[:_SHOWN_KEY_BYTES_MAX]
            kind = rdb_salvage.kind_name(extent.kind)
            what = f"the key {shown!r} in database {extent.database}, {kind}: {error.what}"
            size = extent.end - extent.place
            self.part.leave_out(LeftOut(file.path, extent.place, size, what))

    # --- What is wrong -----------------------------------------------------------------------------

    def _judge_torn(self, file: FileReport, torn: Torn, is_last: bool) -> None:
        what = torn.why
        if is_last:
            file.judge(Verdict.TORN, what, torn.offset, _CUT)
        else:
            what = f"{what}, in a file that was complete"
            file.judge(Verdict.DAMAGED, what, torn.offset, _REPAIR)
        self._go_past(file, torn.offset, what)

    def _judge_damaged(self, file: FileReport, error: CorruptData) -> None:
        what = _without(file.path, error.what)
        file.judge(Verdict.DAMAGED, what, error.offset, _REPAIR)
        self._go_past(file, error.offset, what)

    def _stop(self, file: FileReport, left_out: LeftOut) -> None:
        self._hole = file.path
        self.part.leave_out(left_out)

    def _note_refused(self, refusal: CorruptData) -> None:
        what = _without(self._file.path, refusal.what)
        if not self._has_lost_keys:
            self._file.judge(Verdict.DAMAGED, what, refusal.offset, _REPAIR)
        self.part.has_skipped = True
        self.part.leave_out(LeftOut(self._file.path, refusal.offset, 0, what))

    def _go_past(self, file: FileReport, offset: int, what: str) -> None:
        """Leave out the rest of a file, or with `past_damage` only the bytes before the next valid batch."""
        data = self._data(file)
        while self.part.past_damage:
            start = next(batch.whole_batches(data, batch.behind_damage(data, offset)), -1)
            if start < 0:
                break
            database = self._replay.database
            why = f"{what}; what follows is applied to database {database}"
            self._stop(file, LeftOut(file.path, offset, start - offset, why))
            try:
                self._resume(file, data, start, database)
                return
            except Torn as torn:
                offset, what = torn.offset, torn.why
            except CorruptData as error:
                offset, what = error.offset, _without(file.path, error.what)
        behind = sum(1 for _ in batch.whole_batches(data, batch.behind_damage(data, offset)))
        if behind:
            what = f"{what}; valid batches after it: {behind} (--past-damage reads them)"
        self._stop(file, LeftOut(file.path, offset, file.size - offset, what))

    def _resume(self, file: FileReport, data: bytes, start: int, database: int) -> None:
        source = io.BytesIO(data)
        source.seek(start)
        select = _SELECT % (len(b"%d" % database), database)
        self._replay.run(source, file.path, select, start - len(select))

    def _data(self, file: FileReport) -> bytes:
        """The bytes of a file with commands. A snapshot has nothing to find after damage."""
        if file.kind == _RDB:
            return b""
        try:
            return read_all(self._disk, file.path)
        except OSError:
            return b""


def _should_be_snapshot(file: FileReport) -> bool:
    return file.role == check_target.SNAPSHOT or file.path.endswith(".rdb")


def _without(path: str, what: str) -> str:
    return what.removeprefix(f"{path}: ")


class _Counted:
    """A source that reports the size of each read."""

    def __init__(self, source: Source, on_bytes: Callable[[int], None] | None) -> None:
        self._source = source
        self._on_bytes = on_bytes

    def readinto(self, buffer: memoryview, /) -> int | None:
        """See Source."""
        size = self._source.readinto(buffer)
        if size and self._on_bytes is not None:
            self._on_bytes(size)
        return size

    def close(self) -> None:
        """See Source."""
        self._source.close()
