"""Writes the batches of a query to a table in a table format, Delta or Iceberg, each row exactly once.

The log of the table (table_log.py) decides what readers see, so files need not be renamed or undone as in
a Parquet lake (archive.py). One batch:

    1  load the newest version; if there is no table, create it without rows
    2  check the owner and the columns; skip a batch that the table has
    3  write Parquet to TABLE/data/COMMIT-ATTEMPT, which no version names yet
    4  commit: add the files, the batch and the position to the version that was loaded

    killed in      left over                              the next run
    1              perhaps a table without rows           continues
    2 3            Parquet that no version names          deletes it, see below
    4              the same, or the whole batch           deletes it, or skips the batch

A commit succeeds only if the table is still at the version that was loaded. If another program has changed
the table in the meantime, such as a compaction, the commit is tried again on the new version. If another
driver of penstock has changed it, this one is stale, deletes the files of its attempt, and fails.

Parquet that no version names may belong to a stale driver that still writes it. So it is deleted only after a
fence (table_log.py), which makes the stale driver fail. If the run is killed before it has deleted all files,
or if the stale driver writes more, a later run finds them by the number of the fence.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.spark.lake.archive import another_query, listed, older_checkpoint, query_of
from penstock.spark.lake.columns import fit, quoted, with_partitions
from penstock.spark.lake.files import LakeFiles, write_parquet
from penstock.spark.lake.local_files import HEX_DIGITS
from penstock.spark.lake.manifest import ArchiveError, DataFile, Manifest
from penstock.spark.lake.table_formats.table_log import (
    COMMITS_MAX,
    DATA,
    NO_BATCH,
    Conflict,
    TableLog,
    TableState,
)

log = logging.getLogger(__name__)

_ATTEMPT = re.compile(rf"(\d{{10}})-[0-9a-f]{{{HEX_DIGITS}}}")

FilesOf = Callable[[SparkSession], LakeFiles]
OpenLog = Callable[[str], TableLog]


@dataclass(frozen=True, slots=True)
class _Batch:
    """One batch: the rows that are left of it after the newest one, its number, and its position."""

    owners: Sequence[str]
    left: Callable[[Manifest | None], DataFrame | None]
    number: Callable[[Manifest], int]
    position: Mapping[str, str]


class TableWriter:
    """Writes batches to one table. It has the methods of an ArchiveWriter."""

    def __init__(
        self,
        path: str,
        partition_by: Sequence[str],
        open_log: OpenLog,
        files_of: FilesOf = LakeFiles,
    ) -> None:
        self._path = path
        self._partition_by = tuple(partition_by)
        self._open_log = open_log
        self._files_of = files_of
        self._log: TableLog | None = None
        self._is_clean = False
        self._rows = 0

    @property
    def rows(self) -> int:
        """The rows of the last batch, 0 if it existed already."""
        return self._rows

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a batch of a streaming query, which is known by its number."""
        query = query_of(frame.sparkSession)

        def left(newest: Manifest | None) -> DataFrame | None:
            if newest is not None and batch < newest.batch:
                raise older_checkpoint(self._path, newest.batch, batch)
            return None if newest is not None and newest.batch == batch else frame

        self._write(frame.sparkSession, _Batch((query,), left, lambda _: batch, {}))

    def append(
        self,
        frame: DataFrame,
        owners: Sequence[str],
        position: Mapping[str, str],
        left: Callable[[DataFrame, Manifest | None], DataFrame | None],
    ) -> int:
        """Write what is left of a batch after the newest one. Returns the number of rows."""
        batch = _Batch(
            owners,
            lambda newest: left(frame, newest),
            lambda newest: newest.batch + 1,
            position,
        )
        self._write(frame.sparkSession, batch)
        return self._rows

    def _write(self, spark: SparkSession, batch: _Batch) -> None:
        files = self._files_of(spark)
        root = files.qualify(self._path)
        self._log = self._log or self._open_log(root)
        table = _Table(files, root, self._log, self._partition_by)
        was_clean, self._is_clean, self._rows = self._is_clean, False, 0
        state = table.load(batch.owners)
        newest = None if state is None else state.newest
        rows = batch.left(newest)
        if rows is None:
            log.info("%s has the batch already", root)
            return
        rows = with_partitions(rows, self._partition_by)
        rows = fit(rows, None if newest is None else newest.schema, self._log.format)
        schema = json.loads(rows.schema.toNullable().json())
        if state is None:
            state = table.create(Manifest(batch.owners[0], NO_BATCH, self._partition_by, schema))
        if not was_clean:
            state = table.without_leftovers(state)
        written = table.write_files(state, rows)
        position = {**state.newest.position, **batch.position}
        number = batch.number(state.newest)
        table.commit(
            state, replace(state.newest, batch=number, schema=schema, position=position), written
        )
        self._is_clean, self._rows = True, sum(file.rows for file in written)


@dataclass(frozen=True, slots=True)
class _Table:
    """The steps of a batch."""

    files: LakeFiles
    root: str
    log: TableLog
    partition_by: tuple[str, ...]

    def load(self, owners: Sequence[str]) -> TableState | None:
        """Step 1, and the checks of step 2. None if the directory is empty. Raises: ArchiveError."""
        state = self.log.load()
        if state is None:
            self._check_empty()
            return None
        newest = state.newest
        if newest.query not in owners:
            raise another_query(self.root, newest.query, owners[0])
        if newest.partition_by != self.partition_by:
            raise ArchiveError(
                f"{self.root} is partitioned by {listed(newest.partition_by)}, but this query by"
                f" {listed(self.partition_by)}: keep the old columns, or archive into another directory"
            )
        return state

    def create(self, first: Manifest) -> TableState:
        """Create a table without rows. So every file of a batch is newer than the table."""
        self.log.create(first)
        return self._loaded()

    def without_leftovers(self, state: TableState) -> TableState:
        """Delete the files of attempts that were not committed. Returns the newest version."""
        attempts = (_ATTEMPT.fullmatch(name) for name in self.files.names(f"{self.root}/{DATA}"))
        numbers = {one[0]: int(one[1]) for one in attempts if one}
        # Before the next fence, which takes the place of this one.
        self._delete(name for name, number in numbers.items() if number == state.fence)
        left = [name for name, number in numbers.items() if number > state.commits]
        if not left:
            return state
        self.commit(state, state.newest, ())  # a fence
        now = self._loaded()
        self._delete(left)
        return now

    def write_files(self, state: TableState, rows: DataFrame) -> list[DataFile]:
        """Step 3. Returns the files that have rows, synced to disk."""
        attempt = f"{state.commits + 1:010d}-{uuid4().hex[:HEX_DIGITS]}"
        directories = self.partition_by
        if self.log.keeps_partitions:
            # Spark leaves out of the files what it puts into the names of directories: put copies there.
            copies = {_free_name(f"by_{name}", rows.columns): name for name in directories}
            rows = rows.withColumns({copy: F.col(quoted(name)) for copy, name in copies.items()})
            directories = tuple(copies)
        write_parquet(rows, f"{self.root}/{DATA}/{attempt}", directories)
        written = []
        for name, size in self.files.data_files(f"{self.root}/{DATA}/{attempt}"):
            path = f"{DATA}/{attempt}/{name}"
            count = self.files.rows(f"{self.root}/{path}")
            if count:  # Spark writes a file without rows if the batch is empty
                self.files.sync(f"{self.root}/{path}")
                written.append(DataFile(path, count, size))
        if not written:
            self._delete([attempt])
        self.files.sync_names(self.root, [file.path for file in written])
        return written

    def commit(self, state: TableState, after: Manifest, written: Sequence[DataFile]) -> None:
        """Step 4. Raises: ArchiveError."""
        for _ in range(COMMITS_MAX):
            try:
                names = self.log.commit(state, after, written)
            except ArchiveError as error:
                state = self._unless_stale(state, after, written, error)
            else:
                self._sync(names)
                return
        raise ArchiveError(
            f"{self.root}: another program has changed the table {COMMITS_MAX} times in a row while a batch"
            " was committed. Run the pipeline again when it has finished"
        )

    def _unless_stale(
        self, state: TableState, after: Manifest, written: Sequence[DataFile], error: ArchiveError
    ) -> TableState:
        """The newest version after a commit has failed, to try it again. Raises: ArchiveError."""
        log.info("%s", error)
        now = self.load((after.query,))
        if now is None or now.commits != state.commits:
            self._discard(written, now)
            raise ArchiveError(
                f"{self.root}: another driver has written to the table while this one was writing batch"
                f" {after.batch}. Run one driver at a time"
            ) from error
        if not isinstance(error, Conflict):
            raise error
        return now

    def _discard(self, written: Sequence[DataFile], now: TableState | None) -> None:
        """Delete the attempt of a stale driver, unless `now` names it: then its commit was made after all."""
        named = "" if now is None else "\n".join(file.path for file in self.log.files(now))
        attempts = {file.path.split("/")[1] for file in written}
        self._delete(name for name in attempts if f"/{DATA}/{name}/" not in named)

    def _delete(self, attempts: Iterable[str]) -> None:
        for name in attempts:
            self.files.delete(f"{self.root}/{DATA}/{name}")

    def _sync(self, names: Sequence[str]) -> None:
        for name in names:
            self.files.sync(f"{self.root}/{name}")
        self.files.sync_names(self.root, names)

    def _loaded(self) -> TableState:
        state = self.log.load()
        assert state is not None
        return state

    def _check_empty(self) -> None:
        others = sorted(set(self.files.names(self.root)) - self.log.own_names)
        if others:
            raise ArchiveError(
                f"{self.root} has no {self.log.format} table but is not empty ({', '.join(others[:3])}):"
                " another program has written there. Archive into another directory"
            )


def _free_name(name: str, columns: Sequence[str]) -> str:
    taken = {one.lower() for one in columns}
    while name.lower() in taken:
        name += "_"
    return name
