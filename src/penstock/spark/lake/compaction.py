"""Compaction: the small files of a lake merged into few, directory by directory.

A query that archives every ten seconds leaves 8,640 files a day and more. Of each directory, files that
are smaller than half of the target are merged in order, into files of about the target's size, each sorted
by id.

    1  write merged files beside the lake, and count their rows
    2  write the intent: which files replace which, and the base manifest that then holds
    3  for each merged file: delete those that it replaces, and rename it into its directory
    4  write the base, delete the manifests that it covers
    5  delete the intent and what is left beside the lake

Steps 2 to 5 write all names of the lake twice, so they are done once in a while: for what was merged in
COMMIT_SECONDS, which is what a crash before the intent costs, and what lies there twice meanwhile.

Killed before the intent is there, what it would have replaced is as it was. From then on everything can be
done again from any point, and whoever comes next does so: a compaction, or the query's next batch. Both may
even do so at once.

Many files cannot be exchanged for one in a single step that every reader would understand. So in step 3
the rows of one merged file are missing for a moment, or after a crash until the next call. The other order
would show them twice, and count them twice.

Only files that a manifest names are touched. A query may go on writing meanwhile: its next batches come
behind the base. Two compactions at once are kept apart on a disk of this machine, and elsewhere refused where
they notice each other.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.spark.lake.columns import data_schema
from penstock.spark.lake.files import (
    HEX_DIGITS,
    LakeFiles,
    literal,
    temporary_of,
    write_parquet,
)
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

TARGET_BYTES = 128 << 20
COMMIT_SECONDS = 60

_INTENT = re.compile(r"compaction-\d+\.json")

OnBytes = Callable[[int, int, int], None]


@dataclass(frozen=True, slots=True)
class Merge:
    """Files that become one; `staged` is where it lies beside the lake."""

    old: tuple[str, ...]
    staged: str
    new: DataFile


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did."""

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

    `on_bytes` is told after each merged file: the bytes done, the bytes there are to do, the files done.
    """
    return Compaction(LakeFiles(spark), spark, path).run(target_bytes, on_bytes)


class Compaction:
    """One run over one lake."""

    def __init__(self, files: LakeFiles, spark: SparkSession, path: str) -> None:
        self._files = files
        self._spark = spark.newSession()  # its settings are ours to change
        self._spark.conf.set("spark.sql.files.maxRecordsPerFile", "0")  # a merge makes one file
        self._root = files.qualify(path)
        self._temporary = temporary_for_compactions(self._root)
        self._done_bytes = self._done_files = 0

    def run(self, target_bytes: int = TARGET_BYTES, on_bytes: OnBytes | None = None) -> Compacted:
        """Finish what was begun, then merge what is small."""
        if target_bytes < 1:
            raise ArchiveError(f"a target of {target_bytes} bytes; it must be 1 or more")
        if not self._files.exists(self._root):
            raise _no_archive(self._root)
        busy = ArchiveError(f"{self._root}: another compaction is at work; nothing was changed")
        with held(self._root, busy):
            return self._run(target_bytes, on_bytes)

    def _run(self, target_bytes: int, on_bytes: OnBytes | None) -> Compacted:
        before = load_finished(self._files, self._root)
        if before.newest is None:
            raise _no_archive(self._root)
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
                f"{self._root}: {len(files)} files from {files[0].path} on have {rows} rows together,"
                f" and {sum(file.rows for file in files)} by their manifests; they stay as they are"
            )
        self._files.sync(f"{staged}/{source}")
        self._files.sync_names(self._temporary, [f"{attempt}/{source}"])
        partition = files[0].partition
        first = files[0].path.rpartition("/")[2].partition("-")[0]
        name = f"{first}-{newest.query[:HEX_DIGITS]}-{attempt}-merged.parquet"
        new = DataFile(f"{partition}/{name}" if partition else name, rows, size)
        return Merge(tuple(file.path for file in files), f"{attempt}/{source}", new)

    def _commit(self, lake: Lake, merges: Sequence[Merge]) -> Lake:
        """Steps 2 to 5 for what was merged since the last time; the lake afterwards."""
        if not merges:
            return lake
        for merge in merges:
            if not self._files.exists(f"{self._temporary}/{merge.staged}"):
                raise ArchiveError(
                    f"{self._root}: another compaction is at work; {len(merge.old)} files from"
                    f" {merge.old[0]} on stay as they are"
                )
        base = _base_of(lake, merges)
        intent = {
            "version": VERSION,
            "merges": [
                {"old": list(one.old), "staged": one.staged, "new": file_json(one.new)}
                for one in merges
            ],
            "base": base.to_json(),
        }
        path = f"{self._root}/{INTENTS}/compaction-{base.generation:010d}.json"
        self._files.write(path, json.dumps(intent), aside=self._temporary)
        _carry_out(self._files, self._root, path, (merges, base))
        return Lake((base,))


def load_finished(files: LakeFiles, root: str) -> Lake:
    """Everything, once no compaction is left half done. Raises: ArchiveError."""
    finish_compaction(files, root)
    return load_lake(files, root)


def finish_compaction(files: LakeFiles, root: str) -> None:
    """Steps 3 to 5, from wherever they stopped; nothing, if there is no intent."""
    for name in files.names(f"{root}/{INTENTS}"):
        if _INTENT.fullmatch(name):
            _finish(files, root, f"{root}/{INTENTS}/{name}")


def _finish(files: LakeFiles, root: str, path: str) -> None:
    try:
        intended = _parse_intent(parse_versioned(files.read(path), path), path)
    except FileNotFoundError:
        return  # somebody else has finished it meanwhile
    _carry_out(files, root, path, intended)


def _carry_out(
    files: LakeFiles, root: str, path: str, intended: tuple[Sequence[Merge], Manifest]
) -> None:
    """What the intent at a path says; each step may have been done already."""
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
    """Apart from the query's, so that neither deletes what the other is writing."""
    return f"{temporary_of(root)}/compaction"


def _write_base(files: LakeFiles, root: str, base: Manifest) -> None:
    try:
        text = json.dumps(base.to_json())
        files.write(f"{root}/{base.name}", text, aside=temporary_for_compactions(root))
    except ArchiveError:
        if not files.exists(f"{root}/{base.name}"):  # else somebody else was quicker
            raise


def _exchange(files: LakeFiles, root: str, staged: str, merge: Merge) -> None:
    target = f"{root}/{merge.new.path}"
    if files.exists(target):
        return
    if not files.exists(staged):
        raise ArchiveError(
            f"{staged} is missing, which the compaction of {root} has left unfinished: restore it"
            f" there (it has {merge.new.rows} rows, and replaces {len(merge.old)} files)"
        )
    for old in merge.old:
        files.delete(f"{root}/{old}")
    try:
        files.rename(staged, target)
    except ArchiveError:
        if not files.exists(target):  # else whoever does the same at this moment was quicker
            raise


def plan_merges(
    files: Sequence[DataFile], target_bytes: int
) -> dict[str, list[tuple[DataFile, ...]]]:
    """By directory: which files become one. Pure."""
    small: dict[str, list[DataFile]] = {}
    for file in sorted(files, key=lambda one: one.path):
        if file.bytes * 2 < target_bytes:
            small.setdefault(file.partition, []).append(file)
    plan = {}
    for partition, candidates in small.items():
        groups: list[list[DataFile]] = [[]]
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
    """By id, which as text would put 10 before 9."""
    if "_id" not in frame.columns:
        return frame
    halves = F.split("_id", "-")
    return frame.sortWithinPartitions(
        *(F.get(halves, F.lit(half)).try_cast("decimal(20,0)") for half in (0, 1))
    )


def _base_of(lake: Lake, merges: Sequence[Merge]) -> Manifest:
    """The lake's manifests as one, with the merged files in place of the old ones."""
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


def _no_archive(root: str) -> ArchiveError:
    return ArchiveError(f"{root} is no archive: it has no manifest")


def _difference(before: Sequence[DataFile], after: Sequence[DataFile]) -> Compacted:
    return Compacted(
        len(before),
        len(after),
        sum(file.bytes for file in before),
        sum(file.bytes for file in after),
        sum(file.rows for file in after),
    )
