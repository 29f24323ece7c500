"""`penstock check`: checks data files, shows what they hold, writes a repaired copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.connect import Json
from penstock.cli.terminal.outcome import BadFile
from penstock.cli.terminal.output import Stdout, TableColumn
from penstock.cli.terminal.progress import ProgressBar
from penstock.human.show import harmless, json_line, size_text
from penstock.persist.check.files import check_report
from penstock.persist.check.repair import Copy, RepairRefused, check_place, write_copy
from penstock.persist.check.report import FileReport, LeftOut, Part, Report, Totals, Verdict
from penstock.persist.check.target import MANIFEST, find_target
from penstock.persist.disk import SystemDisk

EPILOG = """\b
Examples:
  penstock check penstock-data                     all files of a data directory
  penstock check appendonlydir/appendonly.aof.2.base.rdb
  penstock check dump.rdb --json | jq .verdict
  penstock check penstock-data --repair mended     write what can be read to a new directory

\b
Exit codes, with and without --repair:
  0    all of PATH is sound
  1    something is torn, damaged or missing, or the copy cannot be written
  2    PATH or a file in it cannot be read, or the command line is wrong
  130  interrupted (Ctrl-C)"""

NONE = "-"
_MB_BITS = 20
COLUMNS = (
    TableColumn("file"),
    TableColumn("role"),
    TableColumn("kind"),
    TableColumn("version", numeric=True),
    TableColumn("size", numeric=True),
    TableColumn("keys", numeric=True),
    TableColumn("commands", numeric=True),
    TableColumn("verdict"),
)
TOTALS = tuple(field.name for field in fields(Totals))


def check(
    path: Annotated[str, typer.Argument(metavar="PATH", show_default=False)],
    repair: Annotated[
        str | None,
        typer.Option(
            metavar="OUT",
            help="Write everything that can be read to OUT, which must not exist yet.",
        ),
    ] = None,
    past_damage: Annotated[
        bool,
        typer.Option(
            "--past-damage",
            help="With --repair: also use sound batches after a damaged part, if their commands still apply.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Check data files and show what they hold.

    PATH is a data directory, the directory of a log, a manifest, a single log (AOF) or a snapshot (RDB), of
    penstock or of Redis. The kind is recognized by its content. Files are read as a server reads them when it
    starts, with additional checks. They are not changed, and no lock is needed. The check needs as much
    memory as a server with this data.

    A torn end gives exit code 1 too, although a server removes it when it starts: some data is missing.
    """
    if past_damage and repair is None:
        raise typer.BadParameter("--past-damage needs --repair OUT")
    try:
        if repair is not None:
            check_place(path, repair)
        report = _read(path, past_damage, keep_data=repair is not None)
    except RepairRefused as error:
        raise typer.BadParameter(f"--repair {error}") from error
    except OSError as error:
        raise BadFile(f"{error.filename or path}: {error.strerror or error}") from error
    copy, refusal = (None, "") if repair is None else _repair(report, repair.rstrip("/"))
    output = Stdout()
    if json:
        output.line(json_line(_json(report, copy, refusal)))
    else:
        _show(report, output)
        if repair is not None:
            _show_copy(report, copy, refusal, output)
    code = _exit_code(report) or int(bool(refusal))
    if code:
        raise typer.Exit(code)


def _read(path: str, past_damage: bool, keep_data: bool) -> Report:
    disk = SystemDisk()
    report = find_target(disk, path.rstrip("/") or "/")
    done = 0
    total = sum(file.size for file in report.files)
    with ProgressBar(total, ids_are_printed=False, count_format="{} MB read") as progress:

        def on_bytes(count: int) -> None:
            nonlocal done
            done += count
            if (done - count) >> _MB_BITS != done >> _MB_BITS:
                progress.advance(done, done >> _MB_BITS)

        check_report(disk, report, on_bytes, past_damage, keep_data)
    return report


def _repair(report: Report, out: str) -> tuple[Copy | None, str]:
    """The copy, or the reason why there is none."""
    try:
        return write_copy(SystemDisk(), report, out), ""
    except RepairRefused as error:
        return None, str(error)
    except OSError as error:
        return (
            None,
            f"{error.filename or out}: {error.strerror or error}; no files were left behind",
        )


def _exit_code(report: Report) -> int:
    verdict = report.verdict
    return 0 if verdict is Verdict.SOUND else 2 if verdict is Verdict.UNREADABLE else 1


# --- As text ---------------------------------------------------------------------------------------------


def _show(report: Report, output: Stdout) -> None:
    output.line(harmless(f"{report.path}: {report.kind}, {report.verdict.value}"))
    output.line("")
    output.table(COLUMNS, [_cells(file, report) for file in report.files])
    read = [part for part in report.parts if any(file.role != MANIFEST for file in part.files)]
    if read:
        output.line("")
        output.table(
            [TableColumn("holds"), *(TableColumn(part.name, numeric=True) for part in read)],
            [[name, *(str(getattr(part.totals, name)) for part in read)] for name in TOTALS],
        )
    problems = [file for file in report.files if file.verdict is not Verdict.SOUND]
    if problems or report.warnings:
        output.line("")
    for warning in report.warnings:
        output.line(harmless(f"warning: {warning}"))
    for file in problems:
        output.line(harmless(_problem(file)))


def _cells(file: FileReport, report: Report) -> list[str]:
    return [
        harmless(_short(file.path, report)),
        file.role,
        file.kind if file.kind and file.kind != file.role else NONE,
        str(file.version) if file.version else NONE,
        size_text(file.size),
        str(file.keys) if file.version else NONE,
        str(file.commands) if "AOF" in file.kind else NONE,
        file.verdict.value,
    ]


def _short(path: str, report: Report) -> str:
    return path.removeprefix(f"{report.path}/") if path != report.path else Path(path).name


def _problem(file: FileReport) -> str:
    place = "" if file.offset < 0 else f" at byte {file.offset} of {file.size}"
    lost = ""
    if file.verdict is Verdict.TORN:
        lost = f" ({file.size - file.offset} bytes)"
    remedy = f"; {file.remedy}" if file.remedy else ""
    return f"{file.verdict.value}: {file.path}{place}{lost}: {file.what}{remedy}"


def _show_copy(report: Report, copy: Copy | None, refusal: str, output: Stdout) -> None:
    output.line("")
    if copy is None:
        output.line(harmless(f"no copy: {refusal}"))
        return
    left_out = list(_left_out(report))
    for part, found in left_out:
        output.line(harmless(f"left out of the {part.name}: {_left_out_text(found)}"))
    for part in report.parts:
        more = part.left_out_count - len(part.left_out)
        if more:
            output.line(f"left out of the {part.name}: {more} more, not listed")
    for name in copy.skipped:
        output.line(f"left out: the {name}, because none of it can be read")
    if not left_out and not copy.skipped:
        output.line("nothing was left out")
    assert copy.check is not None
    output.line(harmless(f"copy: {copy.path}: {copy.check.kind}, {copy.check.verdict.value}"))


def _left_out(report: Report) -> Iterator[tuple[Part, LeftOut]]:
    for part in report.parts:
        for found in part.left_out:
            yield part, found


def _left_out_text(found: LeftOut) -> str:
    if found.size:
        until = found.offset + found.size
        return f"{found.path} bytes {found.offset} to {until} ({found.size}): {found.why}"
    place = f" at byte {found.offset}" if found.offset >= 0 else ""
    return f"{found.path}{place}: {found.why}"


# --- As JSON ---------------------------------------------------------------------------------------------


def _json(report: Report, copy: Copy | None, refusal: str) -> dict[str, object]:
    about: dict[str, object] = {
        "path": report.path,
        "kind": report.kind,
        "verdict": report.verdict.value,
        "parts": [_part_json(part) for part in report.parts],
        "warnings": report.warnings,
    }
    if copy is not None and copy.check is not None:
        about["copy"] = {
            "path": copy.path,
            "files": copy.files,
            "skipped": copy.skipped,
            "verdict": copy.check.verdict.value,
        }
    elif refusal:
        about["copy"] = {"refused": refusal}
    return about


def _part_json(part: Part) -> dict[str, object]:
    return {
        "name": part.name,
        "files": [_file_json(file) for file in part.files],
        "totals": asdict(part.totals),
        "left_out": [asdict(found) for found in part.left_out],
        "left_out_count": part.left_out_count,
    }


def _file_json(file: FileReport) -> dict[str, object]:
    return asdict(file) | {
        "verdict": file.verdict.value,
        "version": file.version or None,
        "offset": None if file.offset < 0 else file.offset,
    }
