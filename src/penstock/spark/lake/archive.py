"""The archive: writes the batches of a streaming query as Parquet, each row exactly once for every reader.

    writer = archive_writer("lake/orders")
    frame.writeStream.foreachBatch(writer).option("checkpointLocation", ...).start()

Spark's own Parquet sink is exactly-once only for readers of its log. Other readers see the files that a crash
has left. Here the directory itself is correct at any time. One batch:

    1  finish an interrupted compaction, and undo an interrupted batch (see below)
    2  create a claim, and write Parquet next to the lake, where no reader looks
    3  write the intent, a manifest with the final names of the files; delete the claim
    4  rename each file into its directory
    5  rename the intent to the manifest: this commits the batch
    6  delete the temporary files

A reader sees only complete files, but during step 4 a part of the batch. After a crash Spark repeats the
batch:

    killed in      left over                              the next run
    1 2            claim, Parquet next to the lake        deletes both
    3 4            intent, some of the files              deletes the files named in the intent, then it
    5 6            manifest                               skips the batch

A stale driver may resume while a new one undoes its batch and writes it again. A driver has a claim or an
intent from before its first write until the commit. The driver that undoes removes both first. Of two drivers
that delete or rename a file, one succeeds. So the stale driver fails at step 3 because its claim is gone, or
at step 5 because its intent is gone, and commits nothing. The intent is first renamed to `undone-`, so that
undoing can be interrupted too. Then the temporary files are deleted, so that no further file can be renamed
into the lake, and then the files. Where a rename is not atomic (S3), run one driver at a time.

A pipeline writes several tables from one query. Each must be exactly once by itself, and may be ahead of the
query after a crash. So `append` knows a batch by its position in the source, not by its number: the caller
drops the rows up to the position in the newest manifest, and batches get the numbers that follow.

A query is identified by the id in its checkpoint. Under another checkpoint the same batch numbers would have
other contents, so a lake accepts one query only.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.lake.columns import fit, with_partitions
from penstock.spark.lake.compaction import finish_compaction
from penstock.spark.lake.files import LakeFiles, temporary_of, write_parquet
from penstock.spark.lake.local_files import HEX_DIGITS
from penstock.spark.lake.manifest import (
    INTENTS,
    ArchiveError,
    DataFile,
    Manifest,
    load_lake,
    load_newest_or_none,
    parse_manifest,
    parse_versioned,
)
from penstock.spark.runtime.query_properties import QUERY_ID

log = logging.getLogger(__name__)

CLAIM, INTENT, UNDONE = "claim", "batch", "undone"
_BEGUN = re.compile(rf"({CLAIM}|{INTENT}|{UNDONE})-(?P<query>.+)-[0-9a-f]{{{HEX_DIGITS}}}\.json")

BatchWriter = Callable[[DataFrame, int], None]
FilesOf = Callable[[SparkSession], LakeFiles]


def archive_writer(path: str, partition_by: Sequence[str] = ("day",)) -> BatchWriter:
    """A function for foreachBatch that archives batches at `path`, exactly once.

    A frame without a column `day` gets one if it is partitioned by it: the date of `_timestamp` in UTC. The
    function raises ArchiveError if the lake belongs to another query or a column has changed its type.
    """
    return ArchiveWriter(path, partition_by)


class ArchiveWriter:
    """The function that `archive_writer` returns.

    It remembers the last manifest it wrote, so that a batch need not list all manifests. That is safe: if
    another driver has written the batch, its manifest exists and the rename in step 5 fails.
    """

    def __init__(
        self, path: str, partition_by: Sequence[str] = ("day",), files_of: FilesOf = LakeFiles
    ) -> None:
        self._path = path
        self._partition_by = tuple(partition_by)
        self._files_of = files_of
        self._newest: Manifest | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        spark = frame.sparkSession
        files = self._files_of(spark)
        root = files.qualify(self._path)
        temporary_of(root)  # fails early if nothing can be written next to the lake
        query = query_of(spark)
        known, self._newest = self._newest, None  # if this batch fails, the next one lists again
        finish_compaction(files, root)
        if known is None or (known.query, known.batch + 1) != (query, batch):
            known = load_newest_or_none(files, root)
        newest = self._undo(files, root, known, (query, batch))
        if newest is not None and newest.batch == batch:
            log.info("%s: batch %d exists already", root, batch)
            return
        frame = fit(
            with_partitions(frame, self._partition_by), None if newest is None else newest.schema
        )
        schema = json.loads(frame.schema.json())
        empty = Manifest(query, batch, self._partition_by, schema)
        self._newest = _archive(files, root, frame, empty)

    @property
    def rows(self) -> int:
        """The rows of the last batch, 0 if it existed already."""
        return 0 if self._newest is None else self._newest.rows

    def append(
        self,
        frame: DataFrame,
        owners: Sequence[str],
        position: Mapping[str, str],
        left: Callable[[DataFrame, Manifest | None], DataFrame | None],
    ) -> int:
        """Archive what is left of a batch after the newest manifest. Returns the number of rows.

        `owners` are the queries whose lake this is; the first one writes now. `left` returns the rows that
        the lake does not have yet, or None if it has all.
        """
        files = self._files_of(frame.sparkSession)
        root = files.qualify(self._path)
        temporary_of(root)  # fails early if nothing can be written next to the lake
        newest, self._newest = self._newest, None
        finish_compaction(files, root)
        if newest is None:
            newest = load_newest_or_none(files, root)
        while True:
            self._check_owner(files, root, newest, owners)
            if not _undo_batch(files, root, newest, owners):
                break
            newest = load_newest_or_none(files, root)
        rest = left(frame, newest)
        if rest is None:
            log.info("%s has the batch already", root)
            return 0
        rest = fit(
            with_partitions(rest, self._partition_by), None if newest is None else newest.schema
        )
        number = 0 if newest is None else newest.batch + 1
        schema = json.loads(rest.schema.json())
        empty = Manifest(owners[0], number, self._partition_by, schema, position=position)
        self._newest = _archive(files, root, rest, empty)
        return self._newest.rows

    def _undo(
        self, files: LakeFiles, root: str, newest: Manifest | None, now: tuple[str, int]
    ) -> Manifest | None:
        """Step 1. Returns the newest manifest: the driver to undo may have committed in the meantime."""
        while True:
            self._check(files, root, newest, now)
            if not _undo_batch(files, root, newest, now[:1]):
                return newest
            newest = load_newest_or_none(files, root)

    def _check_owner(
        self, files: LakeFiles, root: str, newest: Manifest | None, owners: Sequence[str]
    ) -> None:
        """Check that the lake belongs to these queries and has the same partitions. Raises: ArchiveError."""
        if newest is None:
            _check_empty(files, root)
            return
        if newest.query not in owners:
            raise another_query(root, newest.query, owners[0])
        if newest.partition_by != self._partition_by:
            raise ArchiveError(
                f"{root} is partitioned by {listed(newest.partition_by)}, but this query by"
                f" {listed(self._partition_by)}: keep the old columns, or archive into another directory"
            )

    def _check(
        self, files: LakeFiles, root: str, newest: Manifest | None, now: tuple[str, int]
    ) -> None:
        """Check that this batch may follow the newest one. Raises: ArchiveError."""
        query, batch = now
        self._check_owner(files, root, newest, (query,))
        if newest is None:
            if batch > 0:
                log.warning("%s starts with batch %d: earlier batches are missing", root, batch)
            return
        if batch < newest.batch:
            raise older_checkpoint(root, newest.batch, batch)
        if batch > newest.batch + 1:
            log.warning("%s: batch %d follows batch %d", root, batch, newest.batch)


def _archive(files: LakeFiles, root: str, frame: DataFrame, empty: Manifest) -> Manifest:
    """Steps 2 to 6. Returns the manifest."""
    temporary = _temporary_of(root)
    attempt = uuid4().hex[:HEX_DIGITS]
    claim, intent = (
        f"{root}/{INTENTS}/{kind}-{empty.query}-{attempt}.json" for kind in (CLAIM, INTENT)
    )
    files.create(claim, "")
    staged = f"{temporary}/{empty.batch}-{attempt}"
    write_parquet(frame, staged, empty.partition_by)
    moves = _moves(files, staged, empty, attempt)
    done = replace(empty, files=tuple(file for _, file in moves))
    files.write(intent, json.dumps(done.to_json()), aside=temporary)
    if not files.delete(claim):
        raise ArchiveError(
            f"{root}: another driver has started batch {empty.batch} while this one was writing it."
            " Run one driver at a time"
        )
    for source, file in moves:
        files.rename(f"{staged}/{source}", f"{root}/{file.path}")
    files.sync_names(root, [file.path for _, file in moves])
    files.rename(intent, f"{root}/{done.name}")
    files.sync_names(root, [done.name])
    files.delete(temporary)
    return done


def _moves(
    files: LakeFiles, staged: str, empty: Manifest, attempt: str
) -> list[tuple[str, DataFile]]:
    """The temporary files, synced to disk, and the data files they become."""
    moves: list[tuple[str, DataFile]] = []
    for source, size in files.data_files(staged):
        rows = files.rows(f"{staged}/{source}")
        if rows:  # Spark writes a file without rows if the batch is empty
            name = (
                f"{empty.batch:010d}-{empty.query[:HEX_DIGITS]}-{attempt}-{len(moves):05d}.parquet"
            )
            partition = source.rpartition("/")[0]
            target = f"{partition}/{name}" if partition else name
            moves.append((source, DataFile(target, rows, size)))
            files.sync(f"{staged}/{source}")
    return moves


def _undo_batch(
    files: LakeFiles, root: str, newest: Manifest | None, owners: Sequence[str]
) -> bool:
    """Undo interrupted attempts. Returns whether there were any. Raises: ArchiveError if another query's."""
    begun = _begun(files, root)
    for owner in begun.values():
        if owner not in owners:
            raise another_query(root, owner, owners[0])
    for name in begun:
        if name.startswith(CLAIM):
            files.delete(f"{root}/{INTENTS}/{name}")
    # The owner of a claim may have written its intent in the meantime.
    for name in _begun(files, root) if begun else []:
        if name.startswith(INTENT):
            undone = UNDONE + name.removeprefix(INTENT)
            files.rename(f"{root}/{INTENTS}/{name}", f"{root}/{INTENTS}/{undone}")
    files.delete(_temporary_of(root))
    for name in _begun(files, root) if begun else []:
        if name.startswith(UNDONE):
            _remove_files(files, root, f"{root}/{INTENTS}/{name}", newest)
    return bool(begun)


def _remove_files(files: LakeFiles, root: str, path: str, newest: Manifest | None) -> None:
    """Delete the files of an intent, except committed ones: on S3 an interrupted rename leaves both names."""
    try:
        intent = parse_manifest(parse_versioned(files.read(path), path), path)
    except FileNotFoundError:
        return  # another driver has undone it
    counted = set()
    if newest is not None and newest.batch >= intent.batch:
        counted = {file.path for file in load_lake(files, root).files}
    for file in intent.files:
        if file.path not in counted:
            files.delete(f"{root}/{file.path}")
    files.delete(path)


def _begun(files: LakeFiles, root: str) -> dict[str, str]:
    """The names of claims and intents, each with its query."""
    found = (_BEGUN.fullmatch(name) for name in files.names(f"{root}/{INTENTS}"))
    return {one[0]: one["query"] for one in found if one}


def _temporary_of(root: str) -> str:
    """Separate from the directory of compactions, so that neither deletes the other's files."""
    return f"{temporary_of(root)}/batch"


def query_of(spark: SparkSession) -> str:
    """The id of the streaming query whose batch this thread writes. Raises: ArchiveError."""
    found = spark.sparkContext.getLocalProperty(QUERY_ID)
    if not found:
        raise ArchiveError(
            "archive_writer works only in foreachBatch of a streaming query: it needs the query id to"
            " recognise a repeated batch, and there is none"
        )
    return str(found)


def _check_empty(files: LakeFiles, root: str) -> None:
    """Check that a directory without a manifest has no data. Raises: ArchiveError."""
    if _begun(files, root):
        return
    others = [path for path, _ in files.data_files(root)]
    if others or files.exists(f"{root}/_spark_metadata"):
        shown = ", ".join(others[:3]) or "_spark_metadata"
        raise ArchiveError(
            f"{root} has no manifest but is not empty ({shown}): another program has written there."
            " Archive into another directory"
        )


def older_checkpoint(root: str, newest: int, batch: int) -> ArchiveError:
    """The error for a query that is at an older batch than the lake."""
    return ArchiveError(
        f"{root} has batches up to {newest}, but its query is at batch {batch}: the checkpoint is older than"
        " the lake, and the same batch numbers may have other entries. Restore the newer checkpoint, or"
        " archive into another directory"
    )


def another_query(root: str, owner: str, query: str) -> ArchiveError:
    """The error for a lake of another query."""
    return ArchiveError(
        f"{root} was written by query {owner}, but this is query {query}: the checkpoint was deleted or"
        " another one is used, so entries would be archived twice. Restore the old checkpoint, or archive"
        " into another directory"
    )


def listed(names: Sequence[str]) -> str:
    """Names for a message."""
    return ", ".join(names) or "nothing"
