"""The archive: batches of a streaming query as Parquet that any reader can read, each row once.

    writer = archive_writer("lake/orders")
    frame.writeStream.foreachBatch(writer).option("checkpointLocation", ...).start()

Spark's own Parquet sink is exactly-once for readers of its log only; others meet what a crash has left. Here
the directory itself is right at every moment. One batch:

    1  finish a compaction that was begun, and undo a batch that was (below)
    2  claim the lake, and write Parquet beside it, where no reader looks
    3  write the intent, which is the manifest with the names that the files will have; give back the claim
    4  rename each file into its directory
    5  rename the intent to be the manifest: now the batch is done
    6  delete what is left beside the lake

A reader sees whole files, and a batch bit by bit during step 4. After a crash Spark runs it again:

    killed in      left                                   the next run
    1 2            the claim, Parquet beside the lake     deletes both
    3 4            the intent, some of the files          deletes them by their names, then the intent
    5 6            the manifest                           skips the batch

A driver that was thought dead may live, and go on while another undoes its batch and writes it again. It has
a claim or an intent of its own from before it writes until it is done; who undoes takes both away first, and
a deletion or a rename of one file is done by one of two. So it stops at step 3 with a part of its Parquet
deleted, or at step 5 with its files gone, and never counts. The intent is taken away by a rename, to
`undone-`, so that undoing can itself be interrupted; then what lies beside the lake goes, so that nothing
more can be renamed; then the files. Where a rename is no single step (S3), run one driver at a time.

A query is known by the id in its checkpoint. With another checkpoint batches would have other contents
under the same numbers, so a lake takes one query only.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.lake.columns import fit, with_partitions
from penstock.spark.lake.compaction import finish_compaction
from penstock.spark.lake.files import HEX_DIGITS, LakeFiles, temporary_of, write_parquet
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

    Partitioned by `day`, a frame without such a column gets the date of `_timestamp` in UTC.
    It raises ArchiveError if the lake belongs to another query, or a column has changed its type.
    """
    return ArchiveWriter(path, partition_by)


class ArchiveWriter:
    """What `archive_writer` returns.

    It remembers the last manifest that it wrote, so that not every batch lists all of them. That is safe: a
    batch that somebody else has written meanwhile is found by its manifest when this one is to be renamed.
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
        temporary_of(
            root
        )  # a place that has no room beside it is refused before anything is looked at
        query = _query_of(spark)
        known, self._newest = self._newest, None  # whatever stops this batch, the next one looks
        finish_compaction(files, root)
        if known is None or (known.query, known.batch + 1) != (query, batch):
            known = load_newest_or_none(files, root)
        newest = self._undo(files, root, known, (query, batch))
        if newest is not None and newest.batch == batch:
            log.info("%s: batch %d is there already", root, batch)
            return
        frame = fit(
            with_partitions(frame, self._partition_by), None if newest is None else newest.schema
        )
        schema = json.loads(frame.schema.json())
        empty = Manifest(query, batch, self._partition_by, schema)
        self._newest = _archive(files, root, frame, empty)

    def _undo(
        self, files: LakeFiles, root: str, newest: Manifest | None, now: tuple[str, int]
    ) -> Manifest | None:
        """Step 1; the newest manifest afterwards, for who was to be undone may have been quicker."""
        while True:
            self._check(files, root, newest, now)
            if not _undo_batch(files, root, newest, now[0]):
                return newest
            newest = load_newest_or_none(files, root)

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


def _archive(files: LakeFiles, root: str, frame: DataFrame, empty: Manifest) -> Manifest:
    """Steps 2 to 6; the manifest."""
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
            f"{root}: another driver has begun batch {empty.batch} anew while this one was writing it;"
            " run one at a time"
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
    """What was written beside the lake, on disk by now, and what it will be in it."""
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
            files.sync(f"{staged}/{source}")
    return moves


def _undo_batch(files: LakeFiles, root: str, newest: Manifest | None, query: str) -> bool:
    """Remove what earlier attempts have left; whether there was any. Raises: ArchiveError if another's."""
    begun = _begun(files, root)
    for owner in begun.values():
        if owner != query:
            raise _another_query(root, owner, query)
    for name in begun:
        if name.startswith(CLAIM):
            files.delete(f"{root}/{INTENTS}/{name}")
    # Where a claim is gone, its intent may have come meanwhile.
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
    """What an intent names, but for what counts: where a rename is a copy, a crash leaves both names."""
    try:
        intent = parse_manifest(parse_versioned(files.read(path), path), path)
    except FileNotFoundError:
        return  # somebody else has undone it meanwhile
    counted = set()
    if newest is not None and newest.batch >= intent.batch:
        counted = {file.path for file in load_lake(files, root).files}
    for file in intent.files:
        if file.path not in counted:
            files.delete(f"{root}/{file.path}")
    files.delete(path)


def _begun(files: LakeFiles, root: str) -> dict[str, str]:
    """Claims and intents of batches: the query of each, by its name."""
    found = (_BEGUN.fullmatch(name) for name in files.names(f"{root}/{INTENTS}"))
    return {one[0]: one["query"] for one in found if one}


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
    if _begun(files, root):
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
