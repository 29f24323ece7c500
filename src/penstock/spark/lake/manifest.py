"""Manifests: JSON files that list the contents of a lake, batch by batch. Reading them needs no Spark.

    orders/
      day=2026-11-16/0000000007-5f0c11aa-9b2e4d10-00000.parquet
      _manifest/0000000007.json                  one per batch: query, files, rows, bytes, schema
      _manifest/base-0000000002-0000000006.json  the whole lake up to batch 6, after 2 compactions
      _intent/batch-*.json, _intent/compaction-*.json  work in progress; see archive.py, compaction.py
    _orders.tmp/                                 next to the lake: Parquet that is being written

Some readers of Parquet skip names that start with an underscore. Others (DuckDB, polars) read `**/*.parquet`
and skip nothing. So unfinished files are next to the lake, and only data files inside it end in .parquet.

A batch is part of the lake once its manifest exists. Batch numbers increase, so the newest manifest tells
which batches are done, their query, and the columns. A batch of a pipeline also has its position: the last id
of each source stream. A base replaces all manifests up to its batch. Of
several bases the one with the highest generation is valid.

1 is the only version so far. Later versions must read it: tests/fixtures/lake has one file of each kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.errors import PenstockError

VERSION = 1
MANIFESTS = "_manifest"
INTENTS = "_intent"
DATA_SUFFIX = ".parquet"

# A compaction may replace manifests while they are read, but only once in a while.
TRIES_MAX = 10

_BATCH = re.compile(r"(\d+)\.json")
_BASE = re.compile(r"base-(\d+)-(\d+)\.json")


class ArchiveError(PenstockError):
    """The lake must not be written to. The text says what was found and what to do."""


class Files(Protocol):
    """The file operations that reading manifests needs. A path is the lake's path and a name below it."""

    def names(self, directory: str) -> list[str]:
        """The names in a directory. Empty if the directory does not exist."""

    def read(self, path: str) -> str:
        """The text of a file. Raises: FileNotFoundError."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file. Its path is relative to the lake."""

    path: str
    rows: int
    bytes: int

    @property
    def partition(self) -> str:
        """Its directory, such as `day=2026-11-16`; empty for the lake's root."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One batch. If `generation` is not 0 it is a base: all batches up to and including this one."""

    query: str
    batch: int
    partition_by: tuple[str, ...]
    schema: Mapping[str, Any]  # as Spark writes it, partition columns included
    files: tuple[DataFile, ...] = ()
    generation: int = 0
    position: Mapping[str, str] = field(default_factory=dict)  # the last id of each source stream
    keyed: Mapping[str, Any] = field(default_factory=dict)  # of an upsert table: key and buckets

    @property
    def name(self) -> str:
        """Its path relative to the lake."""
        if self.generation:
            return f"{MANIFESTS}/base-{self.generation:010d}-{self.batch:010d}.json"
        return f"{MANIFESTS}/{self.batch:010d}.json"

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """The contents of its file."""
        made = {
            "version": VERSION,
            "query": self.query,
            "batch": self.batch,
            "generation": self.generation,
            "rows": self.rows,
            "bytes": self.bytes,
            "partition_by": list(self.partition_by),
            "files": [file_json(file) for file in self.files],
            "schema": self.schema,
        }
        added = {"position": dict(self.position), "keyed": dict(self.keyed)}
        return made | {name: value for name, value in added.items() if value}


@dataclass(frozen=True, slots=True)
class Lake:
    """All valid manifests, oldest first: a base if there is one, then the batches after it."""

    manifests: tuple[Manifest, ...] = ()

    @property
    def newest(self) -> Manifest | None:
        return self.manifests[-1] if self.manifests else None

    @property
    def generation(self) -> int:
        """The number of compactions so far."""
        return self.manifests[0].generation if self.manifests else 0

    @property
    def files(self) -> list[DataFile]:
        return [file for manifest in self.manifests for file in manifest.files]


def file_json(file: DataFile) -> dict[str, Any]:
    """A file as JSON in manifests and intents."""
    return {"path": file.path, "rows": file.rows, "bytes": file.bytes}


def parse_file(given: Mapping[str, Any]) -> DataFile:
    """The reverse of `file_json`."""
    return DataFile(str(given["path"]), int(given["rows"]), int(given["bytes"]))


def parse_versioned(text: str, path: str) -> dict[str, Any]:
    """A JSON object of this version. Raises: ArchiveError."""
    try:
        given = json.loads(text)
        version = given["version"]
    except (ValueError, KeyError, TypeError):
        raise damaged(path) from None
    if version != VERSION:
        raise ArchiveError(
            f"{path} has version {version!r}, and this penstock reads version {VERSION}: use the penstock"
            " that wrote it"
        )
    return dict(given)


def parse_manifest(given: Mapping[str, Any], path: str) -> Manifest:
    """The reverse of `Manifest.to_json`. Raises: ArchiveError."""
    try:
        return Manifest(
            str(given["query"]),
            int(given["batch"]),
            tuple(map(str, given["partition_by"])),
            dict(given["schema"]),
            tuple(parse_file(file) for file in given["files"]),
            int(given["generation"]),
            {str(name): str(at) for name, at in given.get("position", {}).items()},
            dict(given.get("keyed", {})),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise damaged(path) from None


def damaged(path: str) -> ArchiveError:
    """The error for a file that cannot be parsed."""
    return ArchiveError(f"{path} is damaged: restore it, or archive into another directory")


def load_lake(files: Files, root: str) -> Lake:
    """All manifests. Cost: one read for each batch since the last compaction."""
    return _again_if_replaced(lambda: _load(files, root, newest_only=False))


def load_newest_or_none(files: Files, root: str) -> Manifest | None:
    """The manifest of the last batch, or the base if no batch follows it. Cost: one listing."""
    return _again_if_replaced(lambda: _load(files, root, newest_only=True)).newest


def _load(files: Files, root: str, newest_only: bool) -> Lake:
    base, batches = order_names(files.names(f"{root}/{MANIFESTS}"))
    wanted = ([base] if base else []) + batches
    if newest_only:
        wanted = wanted[-1:]
    found = []
    for name in wanted:
        path = f"{root}/{MANIFESTS}/{name}"
        found.append(parse_manifest(parse_versioned(files.read(path), path), path))
    return Lake(tuple(found))


def order_names(names: Iterable[str]) -> tuple[str | None, list[str]]:
    """The valid base, and the batches after it in order."""
    bases, batches = {}, {}
    for name in names:
        if found := _BASE.fullmatch(name):
            bases[int(found[1])] = (name, int(found[2]))
        elif found := _BATCH.fullmatch(name):
            batches[int(found[1])] = name
    base, covered = bases[max(bases)] if bases else (None, -1)
    return base, [batches[number] for number in sorted(batches) if number > covered]


def superseded(names: Iterable[str], base: Manifest) -> list[str]:
    """The manifests that a base replaces."""
    old = []
    for name in names:
        if found := _BASE.fullmatch(name):
            if int(found[1]) < base.generation:
                old.append(name)
        elif (found := _BATCH.fullmatch(name)) and int(found[1]) <= base.batch:
            old.append(name)
    return old


def _again_if_replaced(load: Any) -> Lake:
    for _ in range(TRIES_MAX):
        try:
            lake: Lake = load()
        except FileNotFoundError:
            continue
        return lake
    raise ArchiveError(
        "the manifests change faster than they can be read: is a compaction running?"
    )
