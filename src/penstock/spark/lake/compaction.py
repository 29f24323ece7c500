"""Compaction: merges the small files of each directory of a lake into larger ones.

A query that archives every ten seconds writes 8,640 files a day or more. In each directory, files smaller
than half the target size are merged in order, into files of about the target size, each sorted by id.

    1  write merged files next to the lake, and count their rows
    2  write the intent: which files replace which, and the new base manifest
    3  for each merged file: delete the files it replaces, and rename it into its directory
    4  write the base, delete the manifests it replaces
    5  delete the intent and the temporary files

Steps 2 to 5 write all file names of the lake twice, so they run once every COMMIT_SECONDS for everything
merged since. That bounds the work that a crash before the intent loses, and the disk space that is used
twice.

Killed before the intent is written, a compaction has changed nothing. After that every step can be repeated,
and the next compaction or the query's next batch does so. Both may do so at the same time.

No single step that all readers understand can replace many files by one. So in step 3 the rows of one merged
file are missing for a moment, or after a crash until the next run. The other order would show these rows
twice.

Delta and Iceberg tables replace files in one commit (table_formats/), so their readers miss nothing.

Only files that a manifest names are changed. The query may keep writing: its next batches follow the base. On
a local disk a lock excludes a second compaction. On other storage a compaction fails if it notices another
one.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from penstock.spark.lake.columns import data_schema
from penstock.spark.lake.files import (
    LakeFiles,
    literal,
    temporary_of,
    write_parquet,
)
from penstock.spark.lake.formats import found_log
from penstock.spark.lake.local_files import HEX_DIGITS
from penstock.spark.lake.lock import held
from penstock.spark.lake.manifest import (
    INTENTS,
    MANIFESTS,
    VERSION,
    ArchiveError,
    DataFile,
    Lake,
    Manifest,
    damaged,
    file_json,
    load_lake,
    parse_file,
    parse_manifest,
    parse_versioned,
    superseded,
)
from penstock.spark.lake.table_formats.table_log import DATA, TableFile, TableLog

TARGET_BYTES = 128 << 20
COMMIT_SECONDS = 60

_INTENT = re.compile(r"compaction-\d+\.json")

OnBytes = Callable[[int, int, int], None]
T = TypeVar("T", DataFile, TableFile)


@dataclass(frozen=True, slots=True)
class Merge:
    """Files that become one. `staged` is the path of the new file among the temporary files."""

    old: tuple[str, ...]
    staged: str
    new: DataFile


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of a compaction."""

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    rows: int


def compact(
    spark: SparkSession,
    path: str,
    target_bytes: int = TARGET_BYTES,
    on_bytes: OnBytes | None = None,
) -> Compacted:
    """Merge the small files of a lake. Raises: ArchiveError.

    `on_bytes` is called after each merged file with the bytes done, the total bytes, and the files done.
    """
    files = LakeFiles(spark)
    log = found_log(files, files.qualify(path))
    if log is not None:
        return _compact_table(spark, files, log, target_bytes)
    return Compaction(files, spark, path).run(target_bytes, on_bytes)


class Compaction:
    """One run over one lake."""

    def __init__(self, files: LakeFiles, spark: SparkSession, path: str) -> None:
        self._files = files
        self._spark = spark.newSession()  # its settings can be changed
        self._spark.conf.set("spark.sql.files.maxRecordsPerFile", "0")  # a merge makes one file
        self._root = files.qualify(path)
        self._temporary = temporary_for_compactions(self._root)
        self._done_bytes = self._done_files = 0

    def run(self, target_bytes: int = TARGET_BYTES, on_bytes: OnBytes | None = None) -> Compacted:
        """Finish an interrupted compaction, then merge small files."""
        _check_target(target_bytes)
        if not self._files.exists(self._root):
            raise _no_archive(self._root)
        busy = ArchiveError(f"{self._root}: another compaction is running; nothing was changed")
        with held(self._root, busy):
            return self._run(target_bytes, on_bytes)

    def _run(self, target_bytes: int, on_bytes: OnBytes | None) -> Compacted:
        before = load_finished(self._files, self._root)
        if before.newest is None:
            raise _no_archive(self._root)
        if before.newest.keyed:
            raise ArchiveError(f"{self._root} is an upsert table, which needs no compaction")
        self._files.delete(self._temporary)
        plan = [
            one for merges in plan_merges(before.files, target_bytes).values() for one in merges
        ]
        total = sum(file.bytes for merge in plan for file in merge)
        lake, merged, since = before, list[Merge](), time.monotonic()
        for merge in plan:
            merged.append(self._merge(merge, before.newest))
            self._done_bytes += sum(file.bytes for file in merge)
            self._done_files += len(merge)
            if on_bytes is not None:
                on_bytes(self._done_bytes, total, self._done_files)
            if time.monotonic() - since >= COMMIT_SECONDS:
                lake, merged, since = self._commit(lake, merged), [], time.monotonic()
        return _difference(before.files, self._commit(lake, merged).files)

    def _merge(self, files: Sequence[DataFile], newest: Manifest) -> Merge:
        """Step 1 for the files of one merge."""
        attempt = uuid4().hex[:HEX_DIGITS]
        staged = f"{self._temporary}/{attempt}"
        columns = data_schema(newest.schema, newest.partition_by)
        frame = self._spark.read.schema(columns).parquet(
            *(literal(f"{self._root}/{one.path}") for one in files)
        )
        write_parquet(_sorted(frame.coalesce(1)), staged, ())
        ((source, size),) = self._files.data_files(staged)
        rows = self._files.rows(f"{staged}/{source}")
        if rows != sum(file.rows for file in files):
            raise ArchiveError(
                f"{self._root}: {len(files)} files from {files[0].path} on have {rows} rows in total, but"
                f" {sum(file.rows for file in files)} in their manifests; they were not changed"
            )
        self._files.sync(f"{staged}/{source}")
        self._files.sync_names(self._temporary, [f"{attempt}/{source}"])
        partition = files[0].partition
        first = files[0].path.rpartition("/")[2].partition("-")[0]
        name = f"{first}-{newest.query[:HEX_DIGITS]}-{attempt}-merged.parquet"
        new = DataFile(f"{partition}/{name}" if partition else name, rows, size)
        return Merge(tuple(file.path for file in files), f"{attempt}/{source}", new)

    def _commit(self, lake: Lake, merges: Sequence[Merge], is_needed: bool = False) -> Lake:
        """Steps 2 to 5 for the files merged since the last commit. Returns the new lake."""
        if not merges and not is_needed:
            return lake
        for merge in merges:
            if not self._files.exists(f"{self._temporary}/{merge.staged}"):
                raise ArchiveError(
                    f"{self._root}: another compaction is running; {len(merge.old)} files from"
                    f" {merge.old[0]} on were not changed"
                )
        base = _base_of(lake, merges)
        replace_files(self._files, self._root, merges, base)
        return Lake((base,))


def _compact_table(
    spark: SparkSession, files: LakeFiles, log: TableLog, target_bytes: int
) -> Compacted:
    """Merge the small files of a Delta or Iceberg table. Its readers see all rows at any time."""
    _check_target(target_bytes)
    before = log.load()
    if before is None:
        raise _no_archive(log.root)
    session = spark.newSession()
    session.conf.set("spark.sql.files.maxRecordsPerFile", "0")  # a merge makes one file

    def rewrite(merge: Sequence[TableFile]) -> DataFile:
        columns = StructType.fromJson(dict(before.newest.schema))
        frame = session.read.schema(columns).parquet(*(literal(one.path) for one in merge))
        folder = f"{DATA}/merged-{uuid4().hex[:HEX_DIGITS]}"
        write_parquet(_sorted(frame.coalesce(1)), f"{log.root}/{folder}", ())
        ((name, size),) = files.data_files(f"{log.root}/{folder}")
        made = DataFile(f"{folder}/{name}", files.rows(f"{log.root}/{folder}/{name}"), size)
        if made.rows != sum(one.rows for one in merge):
            raise ArchiveError(
                f"{log.root}: {len(merge)} files from {merge[0].path} on have {made.rows} rows in total, but"
                f" {sum(one.rows for one in merge)} in the log; they were not changed"
            )
        files.sync(f"{log.root}/{made.path}")
        files.sync_names(log.root, [made.path])
        return made

    old = log.files(before)
    log.compact(before, target_bytes, rewrite)
    after = log.load()
    assert after is not None
    return _difference(old, log.files(after))


def replace_files(files: LakeFiles, root: str, merges: Sequence[Merge], base: Manifest) -> None:
    """Steps 2 to 5: replace files by those next to the lake, and all manifests by a new base."""
    intent = {
        "version": VERSION,
        "merges": [
            {"old": list(one.old), "staged": one.staged, "new": file_json(one.new)}
            for one in merges
        ],
        "base": base.to_json(),
    }
    path = f"{root}/{INTENTS}/compaction-{base.generation:010d}.json"
    files.write(path, json.dumps(intent), aside=temporary_for_compactions(root))
    _carry_out(files, root, path, (merges, base))


def load_finished(files: LakeFiles, root: str) -> Lake:
    """All manifests, after finishing an interrupted compaction. Raises: ArchiveError."""
    finish_compaction(files, root)
    return load_lake(files, root)


def finish_compaction(files: LakeFiles, root: str) -> None:
    """Repeat steps 3 to 5 of an interrupted compaction, if there is one."""
    for name in files.names(f"{root}/{INTENTS}"):
        if _INTENT.fullmatch(name):
            _finish(files, root, f"{root}/{INTENTS}/{name}")


def _finish(files: LakeFiles, root: str, path: str) -> None:
    try:
        intended = _parse_intent(parse_versioned(files.read(path), path), path)
    except FileNotFoundError:
        return  # another process has finished it
    _carry_out(files, root, path, intended)


def _carry_out(
    files: LakeFiles, root: str, path: str, intended: tuple[Sequence[Merge], Manifest]
) -> None:
    """Carry out the intent at a path. Each step may have been done before."""
    merges, base = intended
    temporary = temporary_for_compactions(root)
    if not files.exists(f"{root}/{base.name}"):
        for merge in merges:
            _exchange(files, root, f"{temporary}/{merge.staged}", merge)
        files.sync_names(root, [merge.new.path for merge in merges])
        _write_base(files, root, base)
    for name in superseded(files.names(f"{root}/{MANIFESTS}"), base):
        files.delete(f"{root}/{MANIFESTS}/{name}")
    files.delete(path)
    for merge in merges:
        files.delete(f"{temporary}/{merge.staged.partition('/')[0]}")


def temporary_for_compactions(root: str) -> str:
    """Separate from the query's directory, so that neither deletes the other's files."""
    return f"{temporary_of(root)}/compaction"


def _write_base(files: LakeFiles, root: str, base: Manifest) -> None:
    try:
        text = json.dumps(base.to_json())
        files.write(f"{root}/{base.name}", text, aside=temporary_for_compactions(root))
    except ArchiveError:
        if not files.exists(f"{root}/{base.name}"):  # otherwise another process was faster
            raise


def _exchange(files: LakeFiles, root: str, staged: str, merge: Merge) -> None:
    target = f"{root}/{merge.new.path}"
    if files.exists(target):
        return
    if not files.exists(staged):
        raise ArchiveError(
            f"{staged} is missing. An interrupted compaction of {root} needs it: restore the file"
            f" (it has {merge.new.rows} rows and replaces {len(merge.old)} files)"
        )
    for old in merge.old:
        files.delete(f"{root}/{old}")
    try:
        files.rename(staged, target)
    except ArchiveError:
        if not files.exists(target):  # otherwise another process was faster
            raise


def plan_merges(files: Sequence[T], target_bytes: int) -> dict[str, list[tuple[T, ...]]]:
    """Which files to merge into one, by directory. A pure function."""
    small: dict[str, list[T]] = {}
    for file in sorted(files, key=lambda one: one.path):
        if file.bytes * 2 < target_bytes:
            small.setdefault(file.partition, []).append(file)
    plan = {}
    for partition, candidates in small.items():
        groups: list[list[T]] = [[]]
        filled = 0
        for file in candidates:
            if filled and filled + file.bytes > target_bytes:
                groups.append([])
                filled = 0
            groups[-1].append(file)
            filled += file.bytes
        merges = [tuple(group) for group in groups if len(group) > 1]
        if merges:
            plan[partition] = merges
    return plan


def _sorted(frame: DataFrame) -> DataFrame:
    """Sort by id as numbers: as text, 10 would come before 9."""
    if "_id" not in frame.columns:
        return frame
    halves = F.split("_id", "-")
    return frame.sortWithinPartitions(
        *(F.get(halves, F.lit(half)).try_cast("decimal(20,0)") for half in (0, 1))
    )


def _base_of(lake: Lake, merges: Sequence[Merge]) -> Manifest:
    """All manifests of the lake as one, with the merged files in place of the old ones."""
    newest = lake.newest
    assert newest is not None
    gone = {old for merge in merges for old in merge.old}
    kept = [file for file in lake.files if file.path not in gone]
    files = sorted([*kept, *(merge.new for merge in merges)], key=lambda file: file.path)
    return replace(newest, files=tuple(files), generation=lake.generation + 1)


def _parse_intent(given: dict[str, Any], path: str) -> tuple[list[Merge], Manifest]:
    try:
        merges = [
            Merge(tuple(one["old"]), str(one["staged"]), parse_file(one["new"]))
            for one in given["merges"]
        ]
        return merges, parse_manifest(given["base"], path)
    except (KeyError, TypeError, ValueError):
        raise damaged(path) from None


def _check_target(target_bytes: int) -> None:
    if target_bytes < 1:
        raise ArchiveError(f"the target is {target_bytes} bytes; it must be 1 or more")


def _no_archive(root: str) -> ArchiveError:
    return ArchiveError(f"{root} is not an archive: it has no manifest")


def _difference(
    before: Sequence[DataFile | TableFile], after: Sequence[DataFile | TableFile]
) -> Compacted:
    return Compacted(
        len(before),
        len(after),
        sum(file.bytes for file in before),
        sum(file.bytes for file in after),
        sum(file.rows for file in after),
    )
