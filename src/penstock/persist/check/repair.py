"""Writes a repaired copy: everything that a check could read, at a new path.

    checked                written
    a directory or a       OUT/appendonlydir/appendonly.aof.1.base.rdb and its manifest: the data of the log
    manifest               OUT/dump.rdb: the data of the snapshot
    one log                OUT: a copy of its valid bytes, or commands if that would lose data
    one snapshot           OUT: a snapshot

A log or snapshot of which nothing can be read is not written, because an empty one would look like data. If
the log is lost, the copy has only the snapshot, and a server that starts there loads the snapshot.

The version of a snapshot is the newest version read, or the oldest that holds all data. So the server that
wrote the original can read the copy. The original is never written to. If writing the copy fails, it is
removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from penstock.engine.compat import NEWEST
from penstock.persist.aof.commands_out import write_commands
from penstock.persist.aof.manifest import Manifest, save_manifest
from penstock.persist.check import target as check_target
from penstock.persist.check.files import check_path
from penstock.persist.check.report import FileReport, Part, Report, Verdict
from penstock.persist.disk import Disk, File
from penstock.persist.layout import Layout
from penstock.persist.rdb.format import VERSION_MAX
from penstock.persist.rdb.writer import (
    RdbWriter,
    aux_fields,
    version_needed,
    write_databases,
)
from penstock.persist.reading import PIECE_BYTES, read_into

_HASH = b"#"


class RepairRefused(Exception):
    """No copy is written. The text says why."""


@dataclass(slots=True)
class Copy:
    """A written copy. `skipped`: parts of which nothing could be read."""

    path: str
    files: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    check: Report | None = None


def check_place(report_path: str, out: str) -> None:
    """Check that a copy can be written to `out`. Raises: RepairRefused."""
    if os.path.lexists(out):
        raise RepairRefused(f"{out} exists; a copy is only written to a new path")
    source, target = Path(report_path).resolve(), Path(out).resolve()
    if target.is_relative_to(source):
        raise RepairRefused(f"{out} is inside {report_path}, which must not be changed")
    if not target.parent.is_dir():
        raise RepairRefused(f"{target.parent} is not a directory")


def write_copy(disk: Disk, report: Report, out: str) -> Copy:
    """Write the data of a report's engines, free it, and check the copy.

    Raises: RepairRefused, OSError.
    """
    check_place(report.path, out)
    usable = [part for part in report.parts if _is_usable(part)]
    if not usable:
        raise RepairRefused("nothing can be read, so nothing was written")
    if sum(part.name == check_target.LOG for part in usable) > 1:
        raise RepairRefused("there is more than one log: repair each by its manifest")
    copy = Copy(out)
    copy.skipped = [part.name for part in report.parts if part not in usable]
    try:
        if report.kind == check_target.FILE:
            _write_one(disk, usable[0], copy)
        else:
            _write_directory(disk, usable, copy)
    except OSError:
        _remove(copy)
        raise
    for part in report.parts:
        part.engine = None  # free the memory for the check
    copy.check = check_path(disk, out)
    return copy


def _is_usable(part: Part) -> bool:
    """Whether there is anything to write: keys, commands, or a valid file."""
    return part.engine is not None and (
        part.totals.keys > 0
        or any(file.commands or _is_whole(file) for file in part.files if file.kind)
    )


def _is_whole(file: FileReport) -> bool:
    return file.role != check_target.MANIFEST and file.verdict is Verdict.SOUND


# --- A directory -----------------------------------------------------------------------------------------


def _write_directory(disk: Disk, parts: list[Part], copy: Copy) -> None:
    Path(copy.path).mkdir(0o700)
    layout = Layout(copy.path)
    for part in parts:
        if part.name == check_target.LOG:
            disk.make_dir(layout.log_dir)
            base = Manifest().next_base(layout.appendfilename)
            _write_snapshot(disk, part, layout.log_file(base.name), copy)
            copy.files.append(layout.manifest)
            save_manifest(disk, layout.log_dir, layout.appendfilename, Manifest().rebased(base, ()))
        else:
            _write_snapshot(disk, part, layout.snapshot, copy)
    disk.sync_dir(copy.path)
    disk.sync_dir(str(Path(copy.path).resolve().parent))


def _write_snapshot(disk: Disk, part: Part, path: str, copy: Copy) -> None:
    is_base = part.name == check_target.LOG

    def write(file: File) -> None:
        assert part.engine is not None
        context = part.engine.context
        # A damaged header may state any version, while the rest of the part is valid.
        version = min(max(version_needed(context.databases), part.rdb_version), VERSION_MAX)
        writer = RdbWriter(file.write, version)
        writer.begin(aux_fields(context.compat.redis_version, context.now_ms(), 0, is_base))
        write_databases(writer, context.databases)
        writer.end()

    _write_file(disk, path, write, copy)


def _write_file(disk: Disk, path: str, write: Callable[[File], None], copy: Copy) -> None:
    Path(path).touch(exist_ok=False)  # never overwrites a file made in the meantime
    copy.files.append(path)
    file = disk.append_to(path)
    try:
        write(file)
        file.sync()
    finally:
        file.close()


def _remove(copy: Copy) -> None:
    """Remove an unfinished copy: only files and directories made here."""
    for path in copy.files:
        with suppress(OSError):
            Path(path).unlink()
    for directory in (Layout(copy.path).log_dir, copy.path):
        with suppress(OSError):
            Path(directory).rmdir()


# --- One file --------------------------------------------------------------------------------------------


def _write_one(disk: Disk, part: Part, copy: Copy) -> None:
    """Write a copy of the same kind as the original file."""
    (file,) = part.files
    sound_bytes = _sound_bytes_or_none(disk, part, file)
    if sound_bytes is not None:
        _write_file(disk, copy.path, lambda to: _copy(disk, file.path, sound_bytes, to), copy)
    elif file.version:
        _write_snapshot(disk, part, copy.path, copy)
    else:
        _write_file(disk, copy.path, lambda to: _write_commands(part, to), copy)
    disk.sync_dir(str(Path(copy.path).resolve().parent))


def _sound_bytes_or_none(disk: Disk, part: Part, file: FileReport) -> int | None:
    """The number of bytes that can be copied unchanged; None if that would lose data that was read."""
    if file.verdict is Verdict.SOUND:
        return file.size
    if file.kind == "RDB" or file.offset < 0 or part.past_damage or part.has_skipped:
        return None
    if file.verdict is Verdict.TORN or not file.batches:
        return file.offset
    # A cut inside a batch would leave an incomplete one.
    return file.offset if _byte_at(disk, file.path, file.offset) == _HASH else None


def _byte_at(disk: Disk, path: str, offset: int) -> bytes:
    found = b""
    source = disk.read(path)
    try:
        left = offset + 1
        while left:
            piece = bytearray(min(left, PIECE_BYTES))
            size = read_into(source, memoryview(piece))
            if not size:
                return b""
            left -= size
            found = bytes(piece[size - 1 : size])
    finally:
        source.close()
    return found


def _copy(disk: Disk, path: str, size: int, to: File) -> None:
    source = disk.read(path)
    try:
        while size:
            piece = bytearray(min(size, PIECE_BYTES))
            got = read_into(source, memoryview(piece))
            if not got:
                raise OSError(5, "the file became shorter while it was copied", path)
            to.write(bytes(piece[:got]))
            size -= got
    finally:
        source.close()


def _write_commands(part: Part, to: File) -> None:
    assert part.engine is not None
    # The newest level: what an older server wrote needs no newer command.
    write_commands(to.write, part.engine.context.databases, NEWEST)
