"""`penstock archive`: what a lake holds, and its small files merged into few."""

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
    help="Streams in a lake: what an archive holds, and small files merged into few.",
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
    """One directory of a lake."""

    partition: str
    files: int = 0
    rows: int = 0
    bytes: int = 0


class LocalFiles:
    """Manifests on this machine, read without Spark."""

    def names(self, directory: str) -> list[str]:
        """What a directory holds; nothing if there is none."""
        place = Path(directory)
        return sorted(one.name for one in place.iterdir()) if place.is_dir() else []

    def read(self, path: str) -> str:
        """A whole file. Raises: FileNotFoundError."""
        return Path(path).read_text()


@archive.command(epilog=SHOW_EPILOG)
def show(path: Target, json: Json = False) -> None:
    """Show what an archive on this machine holds: its partitions, files and rows, and its last batch.

    That is what its manifests say. Files that none of them names are those of a batch that is being written,
    or that was interrupted and will be run again; a file that is missing is an error, with exit code 1.
    """
    root = _local(path)
    try:
        lake = load_lake(LocalFiles(), str(root))
    except PenstockError as error:
        raise Failure(str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{root}: cannot be read: {error}") from error
    if lake.newest is None:
        raise typer.BadParameter(f"{path} is no archive: it has no manifest")
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
        typer.Option(metavar="SIZE", help="How large merged files become: k, kb, m, mb, g, gb."),
    ] = "128mb",
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="A Spark cluster; else this machine.")
    ] = None,
    json: Json = False,
) -> None:
    """Merge the small files of an archive, partition by partition, sorted by id.

    Files that are smaller than half of the target are merged. A query may go on writing meanwhile. Whoever
    reads while files are exchanged may miss the rows of one merged file, and sees none twice. What is
    interrupted is finished by the next compaction, or by the query's next batch.
    """
    target_bytes = _size(target_size)
    need_spark()
    if "://" not in path and not Path(path).is_dir():
        raise typer.BadParameter(f"{path} is no directory")
    from penstock.spark.lake import compaction

    with quiet_session("archive compact", master, {}) as spark:
        done = _compact(compaction, spark, path, target_bytes)
    if json:
        Stdout().line(json_line(asdict(done)))
        return
    before, after = size_text(done.bytes_before), size_text(done.bytes_after)
    Stdout().line(
        f"{done.files_before} files, {before} became {done.files_after} files, {after};"
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
            f"{path}: show reads archives on this machine, by their plain path"
        )
    root = Path(path)
    if not root.is_dir():
        raise typer.BadParameter(f"{path} is no directory")
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
        output.line(harmless(f"unfinished: {name}: in no manifest yet"))
    for name in facts["missing"]:
        output.line(harmless(f"missing: {name}: a manifest names it; restore it"))


def _cells(one: dict[str, Any]) -> list[str]:
    name = harmless(one["partition"]) or NONE
    return [name, str(one["files"]), str(one["rows"]), size_text(one["bytes"])]
