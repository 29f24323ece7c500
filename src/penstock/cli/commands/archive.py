"""`penstock archive`: shows an archive and merges its small files."""

from __future__ import annotations

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
from penstock.spark.lake.manifest import DATA_SUFFIX, Lake, load_lake

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


class LocalFiles:
    """Reads manifests on this machine without Spark."""

    def names(self, directory: str) -> list[str]:
        """The names of the files in a directory. Empty if there is no such directory."""
        place = Path(directory)
        return sorted(one.name for one in place.iterdir()) if place.is_dir() else []

    def read(self, path: str) -> str:
        """Read a whole file. Raises: FileNotFoundError."""
        return Path(path).read_text()


@archive.command(epilog=SHOW_EPILOG)
def show(path: Target, json: Json = False) -> None:
    """Show the partitions, files and rows of an archive on this machine, and its last batch.

    The numbers come from its manifests. Files that no manifest names belong to a batch that is being written,
    or that was interrupted and will be retried. A missing file is an error with exit code 1.
    """
    root = _local(path)
    try:
        lake = load_lake(LocalFiles(), str(root))
    except PenstockError as error:
        raise Failure(str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{root}: cannot be read: {error}") from error
    if lake.newest is None:
        raise typer.BadParameter(f"{path} is not an archive: it has no manifest")
    facts = _facts(root, lake)
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
    """
    target_bytes = _size(target_size)
    need_spark()
    if "://" not in path and not Path(path).is_dir():
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
    if "://" in path:
        raise typer.BadParameter(
            f"{path}: show reads archives on this machine only: give a plain path"
        )
    root = Path(path)
    if not root.is_dir():
        raise typer.BadParameter(f"{path} is not a directory")
    return root


def _facts(root: Path, lake: Lake) -> dict[str, Any]:
    newest = lake.newest
    assert newest is not None
    partitions: dict[str, PartitionFacts] = {}
    for file in lake.files:
        facts = partitions.setdefault(file.partition, PartitionFacts(file.partition))
        facts.files += 1
        facts.rows += file.rows
        facts.bytes += file.bytes
    named = {file.path for file in lake.files}
    found = {str(one.relative_to(root)) for one in root.rglob(f"*{DATA_SUFFIX}")}
    return {
        "query": newest.query,
        "last_batch": newest.batch,
        "compactions": lake.generation,
        "files": len(lake.files),
        "rows": sum(file.rows for file in lake.files),
        "bytes": sum(file.bytes for file in lake.files),
        "partitions": [asdict(partitions[name]) for name in sorted(partitions)],
        "unfinished": sorted(found - named),
        "missing": sorted(named - found),
    }


def _print(path: str, facts: dict[str, Any], output: Stdout) -> None:
    output.line(
        harmless(
            f"{path}: {facts['rows']} rows, {facts['files']} files, {size_text(facts['bytes'])};"
            f" last batch {facts['last_batch']} of query {facts['query']};"
            f" compactions {facts['compactions']}"
        )
    )
    output.line("")
    output.table(COLUMNS, [_cells(one) for one in facts["partitions"]])
    for name in facts["unfinished"]:
        output.line(harmless(f"unfinished: {name}: not in a manifest yet"))
    for name in facts["missing"]:
        output.line(harmless(f"missing: {name}: a manifest names it; restore it from a backup"))


def _cells(one: dict[str, Any]) -> list[str]:
    name = harmless(one["partition"]) or NONE
    return [name, str(one["files"]), str(one["rows"]), size_text(one["bytes"])]
