"""The archive: batches of a streaming query as Parquet that any reader can read, each row once.

    writer = archive_writer("lake/orders")
    frame.writeStream.foreachBatch(writer).option("checkpointLocation", ...).start()

Spark's own Parquet sink is exactly-once for readers of its log only; others meet what a crash has left. Here
the directory itself is right at every moment. One batch:

    1  finish a compaction that was begun, and undo a batch that was (below)
    2  write Parquet beside the lake, where no reader looks
    3  write the intent: the names that the files will have
    4  rename each file into its directory
    5  write the manifest: now the batch is done
    6  delete the intent and what is left beside the lake

A reader sees whole files, and a batch bit by bit during step 4. After a crash Spark runs it again:

    killed in      left                                   the next run
    1 2            Parquet beside the lake                deletes it
    3 4            the intent, some of the files          deletes them by their names, then the intent
    5 6            the manifest, perhaps the intent       deletes the intent, and skips the batch

The order of the undoing matters: first what lies beside the lake, so that a driver that was thought dead can
rename nothing more; the intent last, so that undoing can itself be interrupted.

A query is known by the id in its checkpoint. With another checkpoint batches would have other contents
under the same numbers, so a lake takes one query only.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.compaction import finish_compaction
from penstock.spark.lake_columns import fit, with_partitions
from penstock.spark.lake_files import LakeFiles, temporary_of, write_parquet
from penstock.spark.lake_manifest import (
    INTENTS,
    VERSION,
    ArchiveError,
    DataFile,
    Manifest,
    damaged,
    load_newest_or_none,
    parse_versioned,
)
from penstock.spark.sink import QUERY_ID

log = logging.getLogger(__name__)

INTENT = f"{INTENTS}/batch.json"
HEX_DIGITS = 8  # of the query's id and of an attempt's, in names of files

BatchWriter = Callable[[DataFrame, int], None]
FilesOf = Callable[[SparkSession], LakeFiles]


def archive_writer(path: str, partition_by: Sequence[str] = ("day",)) -> BatchWriter:
    """A function for foreachBatch that archives batches at `path`, exactly once.

    Partitioned by `day`, a frame without such a column gets the date of `_timestamp` in UTC.
    It raises ArchiveError if the lake belongs to another query, or a column has changed its type.
    """
    return ArchiveWriter(path, partition_by)


class ArchiveWriter:
    """What `archive_writer` returns; it remembers nothing between batches."""

    def __init__(
        self, path: str, partition_by: Sequence[str] = ("day",), files_of: FilesOf = LakeFiles
    ) -> None:
        self._path = path
        self._partition_by = tuple(partition_by)
        self._files_of = files_of

    def __call__(self, frame: DataFrame, batch: int) -> None:
        spark = frame.sparkSession
        files = self._files_of(spark)
        root = files.qualify(self._path)
        temporary_of(
            root
        )  # a place that has no room beside it is refused before anything is looked at
        query = _query_of(spark)
        finish_compaction(files, root)
        newest = load_newest_or_none(files, root)
        self._check(files, root, newest, (query, batch))
        _undo_batch(files, root, newest, query)
        if newest is not None and newest.batch == batch:
            log.info("%s: batch %d is there already", root, batch)
            return
        frame = fit(
            with_partitions(frame, self._partition_by), None if newest is None else newest.schema
        )
        schema = json.loads(frame.schema.json())
        empty = Manifest(query, batch, self._partition_by, schema)
        _archive(files, root, frame, empty)

    def _check(
        self, files: LakeFiles, root: str, newest: Manifest | None, now: tuple[str, int]
    ) -> None:
        """Whether this batch may go on where the lake ends. Raises: ArchiveError."""
        query, batch = now
        if newest is None:
            _check_empty(files, root)
            if batch > 0:
                log.warning("%s begins with batch %d: it lacks all that came before", root, batch)
            return
        if newest.query != query:
            raise _another_query(root, newest.query, query)
        if newest.partition_by != self._partition_by:
            raise ArchiveError(
                f"{root} is partitioned by {_listed(newest.partition_by)}, and this query by"
                f" {_listed(self._partition_by)}: keep the old columns, or archive into another directory"
            )
        if batch < newest.batch:
            raise ArchiveError(
                f"{root} holds batches up to {newest.batch}, and its query is back at batch {batch}:"
                " its checkpoint is older than the lake, and the same numbers may mean other entries"
                " now. Restore the newer checkpoint, or archive into another directory"
            )
        if batch > newest.batch + 1:
            log.warning("%s: batch %d comes behind batch %d", root, batch, newest.batch)


def _archive(files: LakeFiles, root: str, frame: DataFrame, empty: Manifest) -> None:
    """Steps 2 to 6."""
    temporary = _temporary_of(root)
    attempt = uuid4().hex[:HEX_DIGITS]
    staged = f"{temporary}/{empty.batch}-{attempt}"
    write_parquet(frame, staged, empty.partition_by)
    moves: list[tuple[str, DataFile]] = []
    for source, size in files.data_files(staged):
        rows = files.rows(f"{staged}/{source}")
        if rows:  # Spark writes a file without rows where there was no row at all
            name = (
                f"{empty.batch:010d}-{empty.query[:HEX_DIGITS]}-{attempt}-{len(moves):05d}.parquet"
            )
            partition = source.rpartition("/")[0]
            target = f"{partition}/{name}" if partition else name
            moves.append((source, DataFile(target, rows, size)))
    targets = tuple(file for _, file in moves)
    done = Manifest(empty.query, empty.batch, empty.partition_by, empty.schema, targets)
    if moves:
        files.write(f"{root}/{INTENT}", json.dumps(_intent_of(done)))
        for source, file in moves:
            files.rename(f"{staged}/{source}", f"{root}/{file.path}")
    files.write(f"{root}/{done.name}", json.dumps(done.to_json()))
    files.delete(f"{root}/{INTENT}")
    files.delete(temporary)


def _undo_batch(files: LakeFiles, root: str, newest: Manifest | None, query: str) -> None:
    """Remove what an earlier attempt has left. Raises: ArchiveError if it was another query's."""
    files_left, path = _temporary_of(root), f"{root}/{INTENT}"
    try:
        intent = parse_versioned(files.read(path), path)
        owner, batch, targets = intent["query"], int(intent["batch"]), list(intent["files"])
    except FileNotFoundError:
        files.delete(files_left)
        return
    except (KeyError, TypeError, ValueError):
        raise damaged(path) from None
    if owner != query:
        raise _another_query(root, owner, query)
    files.delete(files_left)
    if newest is None or newest.batch < batch:
        for target in targets:
            files.delete(f"{root}/{target}")
    files.delete(path)


def _intent_of(manifest: Manifest) -> dict[str, Any]:
    return {
        "version": VERSION,
        "query": manifest.query,
        "batch": manifest.batch,
        "files": [file.path for file in manifest.files],
    }


def _temporary_of(root: str) -> str:
    """Apart from that of compactions, so that neither deletes what the other is writing."""
    return f"{temporary_of(root)}/batch"


def _query_of(spark: SparkSession) -> str:
    found = spark.sparkContext.getLocalProperty(QUERY_ID)
    if not found:
        raise ArchiveError(
            "the archive is written by foreachBatch of a streaming query, whose id tells a batch that"
            " is run again from another; there is none here"
        )
    return str(found)


def _check_empty(files: LakeFiles, root: str) -> None:
    """A directory without a manifest must not hold data; what a first batch left is undone by its intent."""
    if files.exists(f"{root}/{INTENT}"):
        return
    others = [path for path, _ in files.data_files(root)]
    if others or files.exists(f"{root}/_spark_metadata"):
        shown = ", ".join(others[:3]) or "_spark_metadata"
        raise ArchiveError(
            f"{root} has no manifest, but it is not empty ({shown}): somebody else has written there;"
            " archive into another directory"
        )


def _another_query(root: str, owner: str, query: str) -> ArchiveError:
    return ArchiveError(
        f"{root} was written by the query {owner}, and this is the query {query}: the checkpoint was"
        " deleted or another one is used, so entries would be archived twice. Restore the old"
        " checkpoint, or go on with another directory"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
