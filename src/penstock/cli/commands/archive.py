"""`penstock archive`: shows an archive and merges its small files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.connect import Json
from penstock.cli.spark_session import need_spark, quiet_session
from penstock.cli.terminal.outcome import Failure, example
from penstock.cli.terminal.output import Stdout, TableColumn
from penstock.cli.terminal.progress import ProgressBar
from penstock.errors import ConfigError, PenstockError
from penstock.human.show import harmless, json_line, size_text
from penstock.server.config.kinds import parse_memory
from penstock.spark.lake.formats import PARQUET, found_log
from penstock.spark.lake.local_files import LocalFiles, is_local, local_path
from penstock.spark.lake.manifest import DATA_SUFFIX, Lake, load_lake
from penstock.spark.lake.table_formats.table_log import TableLog, TableState, plain_path

archive = typer.Typer(
    help="Show an archive of streams in a lake, or merge its small files.",
    epilog=example(
        "penstock archive show lake/orders        partitions, files and rows",
        "penstock archive compact lake/orders     merge small files",
    ),
    rich_markup_mode=None,
    no_args_is_help=True,
)

COMPACT_EPILOG = example(
    "penstock archive compact lake/orders",
    "penstock archive compact lake/orders --target-size 512mb",
    "penstock archive compact s3a://bucket/orders --master spark://host:7077",
)
SHOW_EPILOG = example(
    "penstock archive show lake/orders",
    "penstock archive show lake/orders --json | jq .rows",
)

COLUMNS = (
    TableColumn("partition"),
    TableColumn("files", numeric=True),
    TableColumn("rows", numeric=True),
    TableColumn("size", numeric=True),
)
NONE = "-"

Target = Annotated[str, typer.Argument(metavar="PATH", show_default=False)]


@dataclass
class PartitionFacts:
    """One partition directory of a lake."""

    partition: str
    files: int = 0
    rows: int = 0
    bytes: int = 0


@archive.command(epilog=SHOW_EPILOG)
def show(path: Target, json: Json = False) -> None:
    """Show the partitions, files and rows of an archive on this machine, and its last batch.

    The numbers come from its manifests, or from the log of a Delta or Iceberg table. Files that no manifest
    names belong to a batch that is being written, or that was interrupted and will be retried. A missing file
    is an error with exit code 1.
    """
    root = _local(path)
    try:
        facts = _facts_of(root)
    except PenstockError as error:
        raise Failure(str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{root}: cannot be read: {error}") from error
    if facts is None:
        raise typer.BadParameter(f"{path} is not an archive: it has no manifest")
    output = Stdout()
    if json:
        output.line(json_line({"path": path} | facts))
    else:
        _print(path, facts, output)
    if facts["missing"]:
        raise typer.Exit(1)


@archive.command(epilog=COMPACT_EPILOG)
def compact(
    path: Target,
    target_size: Annotated[
        str,
        typer.Option(metavar="SIZE", help="Size of merged files, like 512kb, 64mb or 1gb."),
    ] = "128mb",
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark master. The default is this machine.")
    ] = None,
    json: Json = False,
) -> None:
    """Merge the small files of an archive, partition by partition, sorted by id.

    Files smaller than half of the target size are merged. Queries may keep writing to the archive. A reader
    may miss the rows of one merged file while files are replaced, but never sees a row twice. An interrupted
    compaction is completed by the next one or by the next batch of the query.

    Readers of a Delta or Iceberg table miss nothing meanwhile. Its old files stay for readers of older
    versions, until you VACUUM a Delta table or expire the snapshots of an Iceberg table.
    """
    target_bytes = _size(target_size)
    need_spark()
    if is_local(path) and not local_path(path).is_dir():
        raise typer.BadParameter(f"{path} is not a directory")
    from penstock.spark.lake import compaction

    with quiet_session("archive compact", master, {}) as spark:
        done = _compact(compaction, spark, path, target_bytes)
    if json:
        Stdout().line(json_line(asdict(done)))
        return
    before, after = size_text(done.bytes_before), size_text(done.bytes_after)
    Stdout().line(
        f"merged {done.files_before} files ({before}) into {done.files_after} files ({after});"
        f" {done.rows} rows"
    )


def _compact(compaction: Any, spark: Any, path: str, target_bytes: int) -> Any:
    with ProgressBar(None, ids_are_printed=False, count_format="{} files merged") as progress:

        def on_bytes(done: int, total: int, files: int) -> None:
            progress.set_total(total)
            progress.advance(done, files)

        return compaction.compact(spark, path, target_bytes, on_bytes)


def _size(text: str) -> int:
    try:
        size = parse_memory(text)
    except ConfigError:
        size = 0
    if size < 1:
        raise typer.BadParameter(f"--target-size {text!r}: expected a size like 64mb or 1gb")
    return size


def _local(path: str) -> Path:
    if not is_local(path):
        raise typer.BadParameter(
            f"{path}: show reads archives on this machine only: give a plain path"
        )
    root = local_path(path)
    if not root.is_dir():
        raise typer.BadParameter(f"{path} is not a directory")
    return root


def _facts_of(root: Path) -> dict[str, Any] | None:
    log = found_log(LocalFiles(), str(root))
    if log is not None:
        state = log.load()
        return None if state is None else _table_facts(log, state)
    lake = load_lake(LocalFiles(), str(root))
    return None if lake.newest is None else _facts(root, lake)


def _table_facts(log: TableLog, state: TableState) -> dict[str, Any]:
    """The facts of a Delta or Iceberg table. Files of older versions do not count."""
    files = log.files(state)
    paths = [plain_path(one.path) for one in files]
    return {
        "format": log.format,
        "query": state.newest.query,
        "last_batch": state.newest.batch,
        **_sums([(one.partition, one.rows, one.bytes) for one in files]),
        "unfinished": [],
        "missing": sorted(path for path in paths if not Path(path).exists()),
    }


def _sums(files: Sequence[tuple[str, int, int]]) -> dict[str, Any]:
    """Files, rows and bytes, in total and by partition. Each file is a partition, rows and bytes."""
    partitions: dict[str, PartitionFacts] = {}
    for partition, rows, size in files:
        facts = partitions.setdefault(partition, PartitionFacts(partition))
        facts.files += 1
        facts.rows += rows
        facts.bytes += size
    return {
        "files": len(files),
        "rows": sum(rows for _, rows, _ in files),
        "bytes": sum(size for _, _, size in files),
        "partitions": [asdict(partitions[name]) for name in sorted(partitions)],
    }


def _facts(root: Path, lake: Lake) -> dict[str, Any]:
    newest = lake.newest
    assert newest is not None
    named = {file.path for file in lake.files}
    found = {str(one.relative_to(root)) for one in root.rglob(f"*{DATA_SUFFIX}")}
    return {
        "format": PARQUET,
        "query": newest.query,
        "last_batch": newest.batch,
        "compactions": lake.generation,
        **_sums([(file.partition, file.rows, file.bytes) for file in lake.files]),
        "unfinished": sorted(found - named),
        "missing": sorted(named - found),
    }


def _print(path: str, facts: dict[str, Any], output: Stdout) -> None:
    output.line(
        harmless(
            f"{path}: {facts['rows']} rows, {facts['files']} files, {size_text(facts['bytes'])};"
            f" last batch {facts['last_batch']} of query {facts['query']}; {_kind(facts)}"
        )
    )
    output.line("")
    output.table(COLUMNS, [_cells(one) for one in facts["partitions"]])
    for name in facts["unfinished"]:
        output.line(harmless(f"unfinished: {name}: not in a manifest yet"))
    for name in facts["missing"]:
        source = "a manifest" if facts["format"] == PARQUET else "the log"
        output.line(harmless(f"missing: {name}: {source} names it; restore it from a backup"))


def _kind(facts: dict[str, Any]) -> str:
    if facts["format"] == PARQUET:
        return f"compactions {facts['compactions']}"
    return f"format {facts['format']}"


def _cells(one: dict[str, Any]) -> list[str]:
    name = harmless(one["partition"]) or NONE
    return [name, str(one["files"]), str(one["rows"]), size_text(one["bytes"])]
