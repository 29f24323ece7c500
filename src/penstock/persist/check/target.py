"""Finds out what a path holds, by content and not by name.

    directory   with a *.manifest               the directory of a log
                otherwise                       a data directory: appendonlydir, appendonly.aof, dump.rdb
    file        REDIS....                       a snapshot; if commands follow, a log
                file NAME seq N type T          a manifest, comments before it
                anything else                   a log: commands, batches, annotations

The result is a report with the files to read, in order, and the errors in the manifest. The data itself is
not read here.
"""

from __future__ import annotations

import os
from pathlib import Path

from penstock.errors import CorruptData
from penstock.persist.aof.manifest import (
    MANIFEST_BYTES_MAX,
    LogFile,
    Salvage,
    parse_manifest,
    salvage_manifest,
)
from penstock.persist.check.report import FileReport, Part, Report, Verdict
from penstock.persist.disk import Disk, is_lock_held
from penstock.persist.layout import LOCK_NAME, Layout
from penstock.persist.reading import read_all, read_into

DATA_DIRECTORY = "data directory"
LOG_DIRECTORY = "AOF directory"
MANIFEST = "manifest"
FILE = "file"

BASE, INCREMENT, LOG, SNAPSHOT = "base", "increment", "log", "snapshot"
_SUFFIX = ".manifest"
_TEMPORARY = "temp-"
_FIRST_BYTES = 4096


def find_target(disk: Disk, path: str) -> Report:
    """Find the files to check. Raises: OSError; FileNotFoundError also for a directory without data."""
    place = Path(path)
    if place.is_dir():
        report = _directory(disk, path)
        above = [place, place.resolve().parent]
    else:
        report = _file(disk, path)
        above = [place.resolve().parent, place.resolve().parent.parent]
    for report_file in report.files:
        _measure(disk, report_file)
    _warn_of_use(report, above)
    return report


def _measure(disk: Disk, file: FileReport) -> None:
    try:
        file.size = disk.size(file.path)
    except FileNotFoundError:
        file.judge(
            Verdict.MISSING,
            "it is listed but missing",
            remedy="restore it from a copy",
        )
    except OSError as error:
        file.judge(Verdict.UNREADABLE, _why(error))


def _warn_of_use(report: Report, directories: list[Path]) -> None:
    for directory in directories:
        try:
            held = is_lock_held(str(directory / LOCK_NAME))
        except OSError as error:
            report.warnings.append(f"cannot tell whether a server uses {directory}: {_why(error)}")
            continue
        if held:
            report.warnings.append(
                f"{directory} is in use by a server: its files may be changing, most of all their last bytes"
            )


def _why(error: OSError) -> str:
    return error.strerror or str(error)


# --- Directories -----------------------------------------------------------------------------------------


def _directory(disk: Disk, path: str) -> Report:
    # Not `disk.names`, which returns an empty list for a missing directory: permission errors must show.
    os.listdir(path)  # noqa: PTH208
    if _manifests(disk, path):
        report = Report(path, LOG_DIRECTORY)
        _add_log(disk, report, path)
        return report
    report = Report(path, DATA_DIRECTORY)
    layout = Layout(path)
    for name in disk.names(path):
        inner = f"{path}/{name}"
        if Path(inner).is_dir() and (name == layout.appenddirname or _manifests(disk, inner)):
            _add_log(disk, report, inner)
    if len(report.parts) > 1:
        report.warnings.append("more than one log: a server reads the one named in its settings")
    has_log = bool(report.parts)
    if _is_there(layout.old_log):
        if has_log:
            report.warnings.append(
                f"{layout.old_log} is the log of an older Redis: not read, because there is a newer one"
            )
        else:
            report.parts.append(Part(LOG, [FileReport(layout.old_log, LOG)]))
    snapshot = _snapshot_or_none(disk, layout)
    if snapshot is not None:
        report.parts.append(Part(SNAPSHOT, [FileReport(snapshot, SNAPSHOT)]))
    if not report.parts:
        raise FileNotFoundError(2, "this directory holds neither a log nor a snapshot", path)
    return report


def _is_there(path: str) -> bool:
    """Whether a name exists. A dangling link counts, so that it is reported."""
    return os.path.lexists(path)


def _snapshot_or_none(disk: Disk, layout: Layout) -> str | None:
    if _is_there(layout.snapshot):
        return layout.snapshot
    found = [
        name
        for name in disk.names(layout.directory)
        if name.endswith(".rdb") and not name.startswith(_TEMPORARY)
    ]
    return f"{layout.directory}/{found[0]}" if len(found) == 1 else None


def _manifests(disk: Disk, directory: str) -> list[str]:
    try:
        names = disk.names(directory)
    except OSError:
        return []  # reported when it is read
    return [name for name in names if name.endswith(_SUFFIX) and not name.startswith(_TEMPORARY)]


def _add_log(disk: Disk, report: Report, directory: str) -> None:
    names = os.listdir(directory)  # noqa: PTH208  (raises, unlike `disk.names`)
    manifests = _manifests(disk, directory)
    if not manifests:
        _add_orphans(report, directory, names)
        return
    if len(manifests) > 1:
        report.warnings.append(
            f"{directory} has more than one manifest: {', '.join(manifests)}; each is checked"
        )
    for name in manifests:
        _add_manifest(disk, report, f"{directory}/{name}")


def _add_orphans(report: Report, directory: str, names: list[str]) -> None:
    """Report log files without a manifest: which of them count is unknown."""
    orphans = sorted(name for name in names if ".base." in name or ".incr." in name)
    if not orphans:
        return
    manifest = FileReport(f"{directory}/{Layout('').appendfilename}{_SUFFIX}", MANIFEST, MANIFEST)
    manifest.judge(
        Verdict.MISSING,
        f"without it, it is unknown which of these files count: {', '.join(orphans[:5])}",
        remedy="restore it, or check the files one by one",
    )
    report.parts.append(Part(LOG, [manifest]))


# --- Manifests -------------------------------------------------------------------------------------------


def _add_manifest(disk: Disk, report: Report, path: str) -> None:
    """Add the part that a manifest describes, as far as the manifest is readable."""
    file = FileReport(path, MANIFEST, MANIFEST)
    part = Part(LOG, [file])
    report.parts.append(part)
    directory, name = os.path.split(path)
    try:
        if disk.size(path) > MANIFEST_BYTES_MAX:
            file.judge(Verdict.DAMAGED, f"it is larger than {MANIFEST_BYTES_MAX} bytes", 0)
            return
        text = read_all(disk, path)
    except OSError as error:
        file.judge(Verdict.UNREADABLE, _why(error))
        return
    lines = salvage_manifest(text, path)
    try:
        manifest = parse_manifest(text, path)
        lines = Salvage(
            (manifest.base,) if manifest.base else (), manifest.increments, manifest.history, ()
        )
        file.checksum = b"#PSCRC:" in text
    except CorruptData as error:
        what = error.what.removeprefix(f"{path}: ")
        file.judge(Verdict.DAMAGED, what, error.offset, _manifest_remedy(lines))
    # If there are several bases, the newest one counts.
    part.files += [_listed(directory, base, BASE) for base in reversed(lines.bases)]
    part.files += [_listed(directory, file, INCREMENT) for file in lines.increments]
    _warn_of_strangers(disk, report, directory, {name, *_names(lines)})


def _listed(directory: str, file: LogFile, role: str) -> FileReport:
    return FileReport(f"{directory}/{file.name}", role, written=file.size, crc=file.crc)


def _manifest_remedy(lines: Salvage) -> str:
    if len(lines.bases) > 1:
        return f"remove the line of the wrong one; {lines.bases[-1].name} is the newer one"
    return "restore it from a copy; the files of its readable lines are checked below"


def _names(lines: Salvage) -> set[str]:
    return {file.name for file in (*lines.bases, *lines.increments, *lines.history)}


def _warn_of_strangers(disk: Disk, report: Report, directory: str, known: set[str]) -> None:
    for name in disk.names(directory):
        if name.startswith(_TEMPORARY):
            report.warnings.append(
                f"{directory}/{name} is left over from a write that did not finish"
            )
        elif name not in known and not name.endswith(_SUFFIX):
            report.warnings.append(f"{directory}/{name} is not listed in the manifest: not read")


# --- Files -----------------------------------------------------------------------------------------------


def _file(disk: Disk, path: str) -> Report:
    if _is_manifest(disk, path):
        report = Report(path, MANIFEST)
        _add_manifest(disk, report, path)
        return report
    return Report(path, FILE, [Part(FILE, [FileReport(path, LOG)])])


def _is_manifest(disk: Disk, path: str) -> bool:
    source = disk.read(path)
    try:
        buffer = bytearray(_FIRST_BYTES)
        first = bytes(buffer[: read_into(source, memoryview(buffer))])
    finally:
        source.close()
    lines = (line for line in first.splitlines() if not line.startswith(b"#"))
    return next(lines, b"").startswith((b"file ", b'"file" ', b"seq ", b"type "))
