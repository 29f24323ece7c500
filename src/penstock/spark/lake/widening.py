"""Widens the columns of a lake: rewrites its files with wider types.

A column may change to a type that holds all its values (columns.py has the rules). Few readers accept files
with two types of one column, so all files get the new type before a batch writes it:

    1  write the intent, _intent/widening.json
    2  rewrite the files that have an older type, several small ones into one, as a compaction does
    3  commit them; the base manifest has the new schema
    4  delete the intent

Killed at any step, the next call continues with the files that still have an older type: each file has its
own schema in its footer. Until then the lake has files of both types, which Spark can read with the schema of
the newest manifest. A column that is only new needs none of this.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from penstock.spark.lake.columns import has_other_types, merged_schema
from penstock.spark.lake.compaction import (
    COMMIT_SECONDS,
    TARGET_BYTES,
    Compaction,
    Merge,
    OnBytes,
    load_finished,
    plan_merges,
)
from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.lock import held
from penstock.spark.lake.manifest import (
    INTENTS,
    VERSION,
    ArchiveError,
    DataFile,
    Lake,
    load_newest_or_none,
)

INTENT = f"{INTENTS}/widening.json"


def widen(
    files: LakeFiles,
    spark: SparkSession,
    path: str,
    made: StructType,
    on_bytes: OnBytes | None = None,
) -> bool:
    """Give the lake the types of `made` where they are wider. Returns whether files had to be rewritten.

    `on_bytes` is called after each new file with the bytes done, the total bytes, and the files done.
    Raises: ArchiveError, TypeConflict.
    """
    root = files.qualify(path)
    newest = load_newest_or_none(files, root)
    if newest is None:
        return False
    schema = merged_schema(newest.schema, made)
    if not has_other_types(newest.schema, schema) and not files.exists(f"{root}/{INTENT}"):
        return False
    _Widening(files, spark, path).widen(schema, on_bytes)
    return True


class _Widening(Compaction):
    """A compaction of the files with an older type."""

    def widen(self, schema: StructType, on_bytes: OnBytes | None) -> None:
        busy = ArchiveError(f"{self._root}: a compaction is running; nothing was changed")
        with held(self._root, busy):
            if not self._files.exists(f"{self._root}/{INTENT}"):
                self._files.write(f"{self._root}/{INTENT}", json.dumps({"version": VERSION}))
            self._rewrite(schema, on_bytes)
            self._files.delete(f"{self._root}/{INTENT}")

    def _rewrite(self, schema: StructType, on_bytes: OnBytes | None) -> None:
        lake = _with_schema(load_finished(self._files, self._root), json.loads(schema.json()))
        assert lake.newest is not None
        self._files.delete(self._temporary)
        older = [file for file in lake.files if self._is_older(file, schema)]
        total = sum(file.bytes for file in older)
        merged, since = list[Merge](), time.monotonic()
        for merge in _plan(older):
            merged.append(self._merge(merge, lake.newest))
            self._done_bytes += sum(file.bytes for file in merge)
            self._done_files += len(merge)
            if on_bytes is not None:
                on_bytes(self._done_bytes, total, self._done_files)
            if time.monotonic() - since >= COMMIT_SECONDS:
                lake, merged, since = self._commit(lake, merged), [], time.monotonic()
        self._commit(lake, merged, is_needed=True)  # even without files: it has the schema

    def _is_older(self, file: DataFile, schema: StructType) -> bool:
        return has_other_types(self._files.schema(f"{self._root}/{file.path}"), schema)


def _with_schema(lake: Lake, schema: dict[str, Any]) -> Lake:
    """The lake as if its newest batch had this schema."""
    *before, newest = lake.manifests
    return Lake((*before, replace(newest, schema=schema)))


def _plan(files: Sequence[DataFile]) -> list[tuple[DataFile, ...]]:
    """Which files to rewrite together: small ones as in a compaction, all others alone."""
    merges = [one for some in plan_merges(files, TARGET_BYTES).values() for one in some]
    planned = {file.path for merge in merges for file in merge}
    return [*merges, *((file,) for file in files if file.path not in planned)]
