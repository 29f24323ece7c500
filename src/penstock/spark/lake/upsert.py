"""Upsert tables: Parquet with one row for each key, the newest. Any reader of Parquet can read them.

    latest/
      bucket-0007-0000000012-9b2e4d10.parquet    bucket, batch, attempt
      _manifest/base-0000000012-0000000012.json  all files, the position, the key and the number of buckets
    _latest.tmp/                                 next to the table: Parquet that is being written

The hash of a key selects its bucket. A batch rewrites the buckets that it touches: the rows of the bucket and
of the batch together, of each key the newest. So the work of a batch is bounded by the size of the table.
Spark spills what does not fit into memory.

The files are replaced by the steps of a compaction (compaction.py), with the same promise: killed before the
intent is written, a batch has changed nothing, and after that the next batch or run completes it. While a
bucket is replaced, its rows are missing for a moment; no key is ever there twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from penstock.spark.lake.columns import fit, quoted
from penstock.spark.lake.compaction import (
    Merge,
    finish_compaction,
    replace_files,
    temporary_for_compactions,
)
from penstock.spark.lake.files import LakeFiles, literal, temporary_of, write_parquet
from penstock.spark.lake.local_files import HEX_DIGITS
from penstock.spark.lake.manifest import ArchiveError, DataFile, Manifest, load_newest_or_none

FilesOf = Callable[..., LakeFiles]

_BUCKET, _ROW, _ORDER = "_bucket", "_row", "_order"


@dataclass(frozen=True, slots=True)
class Upserts:
    """The definition of a table. `order_by` decides which row of a key is the newest."""

    key: tuple[str, ...]
    order_by: str = "_id"
    delete_when: str = ""
    buckets: int = 16

    def to_json(self) -> dict[str, Any]:
        """What a manifest stores: it cannot change as long as the table exists."""
        return {"key": list(self.key), "buckets": self.buckets}


@dataclass(frozen=True, slots=True)
class UpsertBatch:
    """Rows, the queries that may own the table, and the position after the rows."""

    rows: DataFrame
    owners: Sequence[str]
    position: Mapping[str, str]


class UpsertWriter:
    """Writes batches to one table."""

    def __init__(self, path: str, upserts: Upserts, files_of: FilesOf = LakeFiles) -> None:
        self._path = path
        self._upserts = upserts
        self._files_of = files_of

    def write(self, batch: UpsertBatch, is_done: Callable[[Manifest | None], bool]) -> int:
        """Write a batch unless the table has it. Returns the rows of the batch. Raises: ArchiveError."""
        files = self._files_of(batch.rows.sparkSession)
        root = files.qualify(self._path)
        temporary_of(root)  # fails early if nothing can be written next to the table
        finish_compaction(files, root)
        newest = load_newest_or_none(files, root)
        self._check(files, root, newest, batch.owners)
        if is_done(newest):
            return 0
        files.delete(temporary_for_compactions(root))
        return _Rewrite(files, root, self._upserts, newest).run(batch)

    def _check(
        self, files: LakeFiles, root: str, newest: Manifest | None, owners: Sequence[str]
    ) -> None:
        if newest is None:
            others = files.data_files(root)
            if others:
                raise ArchiveError(
                    f"{root} has no manifest but is not empty ({others[0][0]}): another program has written"
                    " there. Write the table into another directory"
                )
            return
        if newest.query not in owners:
            raise ArchiveError(
                f"{root} was written by query {newest.query}, but this is query {owners[0]}: the checkpoint"
                " was deleted or another one is used. Restore it, or write the table into another directory"
            )
        problem = definition_problem(newest, self._upserts)
        if problem:
            raise ArchiveError(f"{root}: {problem}")


def definition_problem(newest: Manifest, upserts: Upserts) -> str:
    """How a table differs from its definition. Empty if it does not."""
    now = upserts.to_json()
    if dict(newest.keyed) == now:
        return ""
    if not newest.keyed:
        return "it is not an upsert table: write the table into another directory"
    was = newest.keyed
    return (
        f"it has key {', '.join(was['key'])} and {was['buckets']} buckets, but the file says"
        f" {', '.join(now['key'])} and {now['buckets']}: undo the change, or rename the table, which is then"
        " made again from silver"
    )


class _Rewrite:
    """Rewrites the buckets that one batch touches."""

    def __init__(
        self, files: LakeFiles, root: str, upserts: Upserts, newest: Manifest | None
    ) -> None:
        self._files = files
        self._root = root
        self._upserts = upserts
        self._newest = newest
        self._batch = 0 if newest is None else newest.batch + 1
        self._attempt = uuid4().hex[:HEX_DIGITS]
        self._temporary = temporary_for_compactions(root)

    def run(self, batch: UpsertBatch) -> int:
        """Write the buckets, and commit."""
        known = None if self._newest is None else self._newest.schema
        # Of each key one row is enough: the others of the batch can only be older.
        changes = self._newest_rows(self._in_buckets(fit(batch.rows, known))).persist()
        try:
            counts = {row[0]: row[1] for row in changes.groupBy(_BUCKET).count().collect()}
            columns = StructType([one for one in changes.schema if one.name != _BUCKET])
            merges = self._merges(changes, columns, sorted(counts)) if counts else []
        finally:
            changes.unpersist()
        base = self._base(batch, columns, merges)
        replace_files(self._files, self._root, merges, base)
        return sum(counts.values())

    def _merges(self, changes: DataFrame, columns: StructType, buckets: list[int]) -> list[Merge]:
        """The new file of each bucket, written next to the table, and the file that it replaces."""
        old = {
            bucket: [one for one in self._old() if _bucket_of(one) == bucket] for bucket in buckets
        }
        paths = [literal(f"{self._root}/{one.path}") for found in old.values() for one in found]
        rows = changes
        if paths:
            there = changes.sparkSession.read.schema(columns).parquet(*paths)
            rows = self._newest_rows(self._in_buckets(there).unionByName(changes))
        if self._upserts.delete_when:
            rows = rows.where(~F.coalesce(F.expr(self._upserts.delete_when), F.lit(False)))
        staged = f"{self._temporary}/{self._attempt}"
        write_parquet(rows.repartition(_BUCKET), staged, (_BUCKET,))
        written = dict(self._written(staged))
        for bucket in buckets:
            if bucket not in written:  # all its rows were deleted
                written[bucket] = self._empty(changes, columns, bucket)
        return [self._merge(bucket, written[bucket], old[bucket]) for bucket in buckets]

    def _written(self, staged: str) -> list[tuple[int, tuple[str, int]]]:
        found: dict[int, tuple[str, int]] = {}
        for path, size in self._files.data_files(staged):
            bucket = int(path.partition("/")[0].partition("=")[2])
            if bucket in found:
                raise ArchiveError(
                    f"{self._root}: Spark has written two files for a bucket. Set"
                    " spark.sql.files.maxRecordsPerFile to 0"
                )
            found[bucket] = (f"{self._attempt}/{path}", size)
        return list(found.items())

    def _empty(self, changes: DataFrame, columns: StructType, bucket: int) -> tuple[str, int]:
        """A file without rows: readers then still find the columns."""
        place = f"{self._attempt}/empty-{bucket}"
        none = changes.sparkSession.createDataFrame([], columns).coalesce(1)
        write_parquet(none, f"{self._temporary}/{place}", ())
        ((path, size),) = self._files.data_files(f"{self._temporary}/{place}")
        return f"{place}/{path}", size

    def _merge(self, bucket: int, staged: tuple[str, int], old: list[DataFile]) -> Merge:
        path, size = staged
        self._files.sync(f"{self._temporary}/{path}")
        self._files.sync_names(self._temporary, [path])
        name = f"bucket-{bucket:04d}-{self._batch:010d}-{self._attempt}.parquet"
        rows = self._files.rows(f"{self._temporary}/{path}")
        return Merge(tuple(one.path for one in old), path, DataFile(name, rows, size))

    def _base(self, batch: UpsertBatch, columns: StructType, merges: list[Merge]) -> Manifest:
        gone = {path for merge in merges for path in merge.old}
        kept = [one for one in self._old() if one.path not in gone]
        return Manifest(
            batch.owners[0],
            self._batch,
            (),
            json.loads(columns.json()),
            tuple(sorted([*kept, *(one.new for one in merges)], key=lambda file: file.path)),
            1 if self._newest is None else self._newest.generation + 1,
            batch.position,
            self._upserts.to_json(),
        )

    def _old(self) -> tuple[DataFile, ...]:
        return () if self._newest is None else self._newest.files

    def _in_buckets(self, rows: DataFrame) -> DataFrame:
        key = [F.col(quoted(name)) for name in self._upserts.key]
        return rows.withColumn(_BUCKET, F.pmod(F.xxhash64(*key), F.lit(self._upserts.buckets)))

    def _newest_rows(self, rows: DataFrame) -> DataFrame:
        """Of each key the row that comes last."""
        columns = [F.col(quoted(name)) for name in rows.columns]
        packed = rows.select(
            *(F.col(quoted(name)).alias(f"_key_{at}") for at, name in enumerate(self._upserts.key)),
            F.struct(*columns).alias(_ROW),
            self._order().alias(_ORDER),
        )
        keys = [f"_key_{at}" for at in range(len(self._upserts.key))]
        last = packed.groupBy(*keys).agg(F.max_by(_ROW, _ORDER).alias(_ROW))
        return last.select(f"{_ROW}.*")

    def _order(self) -> Column:
        """The order of rows: `order_by`, then the id as numbers, then the stream."""
        halves = [
            F.get(F.split("_id", "-"), F.lit(half)).try_cast("decimal(20,0)") for half in (0, 1)
        ]
        by = [] if self._upserts.order_by == "_id" else [F.col(quoted(self._upserts.order_by))]
        return F.struct(*by, *halves, F.col("_stream"))


def _bucket_of(file: DataFile) -> int:
    return int(file.path.split("-")[1])
