"""The tables of lookups, pinned: a batch that is repeated gets the same table, whatever has changed since.

Some outputs may have a batch when the driver is killed, and others not. If the repeated batch got another
table, an entry could be valid for one output and rejected for another. So a copy of the table is in the lake:

    LAKE/_checkpoints/_lookups/NAME/0000000012-5f0c11aa/*.parquet    for batch 12 of `main` and those after

The table is copied at the first batch of a run, and again after `refresh`, but never for a batch that an
earlier run may have begun, unless the file defines the lookup differently now: the copy may lack columns. The
name of a copy ends with a hash of `on`, `columns` and `types`. A copy is written under another name and
renamed, so it is complete. Copies that no batch can use again are deleted.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from hashlib import sha256
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from penstock.spark.lake.files import LakeFiles, literal, write_parquet
from penstock.spark.lake.local_files import HEX_DIGITS
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import CHECKPOINTS, lake_path
from penstock.spark.pipeline.definition.shaping import Lookup
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.rows.lookups import (
    Kinds,
    LookupFailed,
    cause_without_url,
    check_unique,
    table_of,
)
from penstock.spark.runtime.causes import cause_of

FOLDER = "_lookups"  # no output has such a name

_COPY = re.compile(r"\d{10}(-[0-9a-f]{8})?")  # an earlier version wrote no hash

Clock = Callable[[], float]


class PinnedLookups:
    """Adds the columns of lookups to the batches of one run. `begun` is the last batch of earlier runs."""

    def __init__(self, pipeline: Pipeline, begun: int, clock: Clock = time.monotonic) -> None:
        self._pipeline = pipeline
        self._begun = begun
        self._clock = clock
        self._read_at: dict[str, float] = {}
        self._tables: dict[str, tuple[str, DataFrame]] = {}  # by name: path and copy

    def joined(self, rows: DataFrame, batch: int) -> DataFrame:
        """The rows of a batch with [columns] and the columns of all lookups."""

        def get(lookup: Lookup, kinds: Kinds) -> DataFrame:
            return self._table(rows, lookup, kinds, batch)

        made = frames.with_columns(rows, self._pipeline, get)
        self._begun = max(self._begun, batch)
        return made

    def _table(self, rows: DataFrame, lookup: Lookup, kinds: Kinds, batch: int) -> DataFrame:
        files = LakeFiles(rows.sparkSession)
        folder = files.qualify(lake_path(self._pipeline, CHECKPOINTS, FOLDER, lookup.name))
        copies = [name for name in files.names(folder) if _COPY.fullmatch(name)]
        newest, ending = f"{batch:010d}-{_hash_of(lookup)}", f"-{_hash_of(lookup)}"
        usable = [name for name in copies if name.endswith(ending) and name <= newest]
        if not usable or (batch > self._begun and self._is_due(lookup)):
            _copy(files, rows, (lookup, kinds), f"{folder}/{newest}")
            self._read_at[lookup.name] = self._clock()
            usable.append(newest)
        name = max(usable)
        for old in copies:
            if old != name:
                files.delete(f"{folder}/{old}")
        return self._kept(rows, lookup, f"{folder}/{name}")

    def _is_due(self, lookup: Lookup) -> bool:
        """Whether a table must be read again."""
        read_at = self._read_at.get(lookup.name)
        if read_at is None or lookup.refresh_ms is None:
            return read_at is None
        return (self._clock() - read_at) * 1000 >= lookup.refresh_ms

    def _kept(self, rows: DataFrame, lookup: Lookup, path: str) -> DataFrame:
        """The copy, in memory for the batches to come."""
        known = self._tables.get(lookup.name)
        if known is not None and known[0] == path:
            return known[1]
        if known is not None:
            known[1].unpersist()
        table = rows.sparkSession.read.parquet(literal(path)).persist()
        self._tables[lookup.name] = (path, table)
        return table


def _hash_of(lookup: Lookup) -> str:
    """A hash of what decides which columns a copy has."""
    text = json.dumps([list(one.items()) for one in (lookup.on, lookup.columns, lookup.types)])
    return sha256(text.encode()).hexdigest()[:HEX_DIGITS]


def _copy(files: LakeFiles, rows: DataFrame, wanted: tuple[Lookup, Kinds], path: str) -> None:
    """Copy the table as it is now. Raises: LookupFailed."""
    lookup, kinds = wanted
    above, _, name = path.rpartition("/")
    unfinished = f"{above}/_{name}.{uuid4().hex[:HEX_DIGITS]}"
    for left in files.names(above):
        if left.startswith("_"):
            files.delete(f"{above}/{left}")  # of a run that was killed
    try:
        table = table_of(rows.sparkSession, lookup, kinds)
        check_unique(table, lookup)
        write_parquet(table, unfinished, ())
    except (PySparkException, Py4JError) as error:
        cause = cause_without_url(cause_of(error), lookup)
        raise LookupFailed(f"lookup {lookup.name}: {cause}") from None
    written = [file for file, _ in files.data_files(unfinished)]
    for file in written:
        files.sync(f"{unfinished}/{file}")
    files.sync_names(unfinished, written)
    files.rename(unfinished, path)
    files.sync_names(above, [name])
