"""Tables in the format Iceberg, by the library pyiceberg. Spark writes the data files, this adds them.

    TABLE/metadata/00007-....metadata.json        one file for each version; others list the data files
    TABLE/data/0000000007-9b2e4d10/by_day=2026-11-16/part-00000-....parquet
    LAKE/_catalog.db                              which version of which table is the newest

Iceberg needs a catalog. By default it is a SQLite file in the lake; [archive.catalog] names another one. The
tables are NAMESPACE.bronze, NAMESPACE.silver and NAMESPACE.AGGREGATE there.

A commit sets the table property `penstock.state` together with the files. It has query, batch, position, the
number of commits, the fence, and the columns as Spark wrote them. Properties of snapshots would be lost when
snapshots expire.

A commit is tried once, on the snapshot that was loaded: if pyiceberg repeated it, two drivers could commit
the same batch. A batch without rows makes a snapshot, too, so that it conflicts with others.

pyiceberg takes the partition of a file from the statistics of its columns, so the files keep these columns.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.table import Table, TableProperties
from pyiceberg.transforms import IdentityTransform
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from penstock.spark.lake.compaction import plan_merges
from penstock.spark.lake.formats import (
    CATALOG_FILE,
    CATALOG_NAME,
    ICEBERG,
    ICEBERG_METADATA,
    NAMESPACE,
)
from penstock.spark.lake.manifest import ArchiveError, DataFile, Manifest
from penstock.spark.lake.table_formats.table_log import (
    COMMITS_MAX,
    NO_BATCH,
    Conflict,
    Rewrite,
    TableFile,
    TableState,
    first_line,
    not_ours,
    plain_path,
)

STATE = "penstock.state"
LEVELS_MAX = 3  # how far above a table the catalog may be: LAKE/gold/NAME

_SCHEME = "file:"
# Iceberg has no integers of 8 and 16 bits. In a type, not in the name of a field.
_SMALL = re.compile(r"(?<![^:<,])(tinyint|smallint)(?![^,>])")

_CREATION = threading.Lock()  # the queries of a pipeline would create the catalog's tables at once
_PROPERTIES = {
    # A table of a stream has many small commits: keep its metadata small.
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    TableProperties.MANIFEST_MERGE_ENABLED: "true",
}


@dataclass(frozen=True, slots=True)
class TableName:
    """A table in a catalog. `properties` are those of pyiceberg's load_catalog."""

    name: str
    properties: Mapping[str, str] = field(repr=False)
    catalog: str = CATALOG_NAME
    namespace: str = NAMESPACE

    @property
    def identifier(self) -> tuple[str, ...]:
        """The name of the table for pyiceberg."""
        return (*self.namespace.split("."), self.name)

    @property
    def file(self) -> Path | None:
        """The file of a SQLite catalog."""
        kind, _, path = self.properties.get("uri", "").partition(":///")
        return Path(path) if kind == "sqlite" else None


def local_catalog(lake: str) -> dict[str, str]:
    """The properties of the catalog in a lake on this machine."""
    path = plain_path(lake)
    uri = f"sqlite:///{path}/{CATALOG_FILE}"
    return {"type": "sql", "uri": uri, "warehouse": f"{_SCHEME}//{path}"}


def find_table(root: str) -> TableName | None:
    """The table in a directory of this machine, by a catalog in a directory above it."""
    path = Path(plain_path(root)).absolute()
    for lake in list(path.parents)[:LEVELS_MAX]:
        if (lake / CATALOG_FILE).is_file():
            properties = local_catalog(str(lake))
            for one in _tables_of(properties):
                if plain_path(one.location()) == str(path):
                    return TableName(one.name()[-1], properties)
    return None


def _tables_of(properties: Mapping[str, str]) -> Iterator[Table]:
    catalog = load_catalog(CATALOG_NAME, **properties)
    try:
        for identifier in catalog.list_tables(NAMESPACE):
            yield catalog.load_table(identifier)
    finally:
        catalog.close()


class IcebergLog:
    """The log of one table."""

    format = ICEBERG
    own_names = frozenset({ICEBERG_METADATA})
    keeps_partitions = True

    def __init__(self, root: str, table: TableName) -> None:
        path = plain_path(root)
        # Hadoop writes file:/lake, other programs expect three slashes.
        self.root = f"{_SCHEME}//{path}" if path.startswith("/") else root
        self._name = table
        self._opened: Catalog | None = None
        self._shown = f"{'.'.join(table.identifier)} in {root}"

    def load(self) -> TableState | None:
        """The newest version, or None."""
        file = self._name.file
        if file is not None and not file.is_file():
            return None  # opening the catalog would create it
        with _errors_of(self._shown):
            try:
                table = self._catalog().load_table(self._name.identifier)
            except NoSuchTableError:
                return None
        return self._state(table)

    def create(self, first: Manifest) -> None:
        """Create a table without rows."""
        state = {"query": first.query, "commits": 0, "batch": NO_BATCH, "position": {}}
        state["schema"] = first.schema
        with _errors_of(self._shown):
            catalog = self._catalog()
            catalog.create_namespace_if_not_exists(self._name.identifier[:-1])
            made = catalog.create_table_transaction(
                self._name.identifier,
                _arrow(first.schema),
                location=self.root,
                properties={STATE: json.dumps(state), **_PROPERTIES},
            )
            with made as transaction, transaction.update_spec() as spec:
                for name in first.partition_by:
                    spec.add_identity(name)

    def commit(self, before: TableState, after: Manifest, files: Sequence[DataFile]) -> list[str]:
        """Add files, batch and position to the version `before`."""
        state = {"query": after.query, "commits": before.commits + 1, "batch": after.batch}
        state |= {"position": dict(after.position), "fence": before.fence_after(after)}
        state["schema"] = after.schema
        table: Table = before.version
        with _errors_of(self._shown), table.transaction() as transaction:
            if after.schema != before.newest.schema:
                with transaction.update_schema() as columns:
                    columns.union_by_name(_arrow(after.schema))
            transaction.set_properties({STATE: json.dumps(state)})
            paths = [f"{self.root}/{file.path}" for file in files]
            transaction.add_files(paths, check_duplicate_files=False)
        return self._written(table)

    def files(self, state: TableState) -> list[TableFile]:
        """The data files of a version."""
        table: Table = state.version
        with _errors_of(self._shown):
            tasks = list(table.scan().plan_files())
        if any(task.delete_files for task in tasks):
            raise ArchiveError(
                f"{self._shown}: rows are marked as deleted by delete files, which penstock cannot read."
                " Rewrite the data files first"
            )
        return [
            TableFile(
                task.file.file_path,
                _partition_of(table, task.file),
                task.file.record_count,
                task.file.file_size_in_bytes,
            )
            for task in tasks
        ]

    def compact(self, state: TableState, target_bytes: int, rewrite: Rewrite) -> None:
        """Merge small files. The old ones stay for readers of older snapshots, until these expire."""
        plan = plan_merges(self.files(state), target_bytes).values()
        merges = [merge for merges in plan for merge in merges]
        if not merges:
            return
        old = {file.path for merge in merges for file in merge}
        new = [f"{self.root}/{rewrite(merge).path}" for merge in merges]
        for _ in range(COMMITS_MAX):
            now = self.load()
            if now is not None:
                with suppress(Conflict):  # the query has committed a batch
                    self._replace(now.version, old, new)
                    return
        raise ArchiveError(
            f"{self._shown}: the table changes faster than it can be compacted; nothing was changed"
        )

    def _replace(self, table: Table, old: set[str], new: Sequence[str]) -> None:
        """Replace data files by others with the same rows, in one commit."""
        with _errors_of(self._shown):
            found = [task.file for task in table.scan().plan_files() if task.file.file_path in old]
            if len(found) < len(old):
                raise ArchiveError(
                    f"{self._shown}: another compaction is running; nothing was changed"
                )
            made = [parquet_file_to_data_file(table.io, table.metadata, path) for path in new]
            with (
                table.transaction() as transaction,
                transaction.update_snapshot().overwrite() as snapshot,
            ):
                for file in found:
                    snapshot.delete_data_file(file)
                for file in made:
                    snapshot.append_data_file(file)

    def _catalog(self) -> Catalog:
        if self._opened is None:
            if self._name.file is not None:
                self._name.file.parent.mkdir(parents=True, exist_ok=True)
            with _CREATION:
                self._opened = load_catalog(self._name.catalog, **self._name.properties)
        return self._opened

    def _state(self, table: Table) -> TableState:
        text = table.properties.get(STATE)
        if text is None:
            raise not_ours(self._shown, f"it has no property {STATE}")
        if plain_path(table.location()) != plain_path(self.root):
            raise ArchiveError(
                f"{self._shown}: the catalog has a table of this name in {table.location()}. Set another"
                " namespace in [archive.catalog]"
            )
        state = json.loads(text)
        _check_columns(self._shown, state["schema"], table)
        newest = Manifest(
            state["query"],
            state["batch"],
            _partition_by(self._shown, table),
            state["schema"],
            position=state["position"],
        )
        once = {**table.properties, TableProperties.COMMIT_NUM_RETRIES: "0"}
        table.metadata = table.metadata.model_copy(update={"properties": once})
        return TableState(newest, state["commits"], table, state.get("fence", 0))

    def _written(self, table: Table) -> list[str]:
        """The files of the metadata that the last commit has written."""
        snapshot = table.current_snapshot()
        assert snapshot is not None
        lists = [
            one.manifest_path
            for one in snapshot.manifests(table.io)
            if one.added_snapshot_id == snapshot.snapshot_id
        ]
        paths = [*lists, snapshot.manifest_list, table.metadata_location]
        own = f"{self.root}/"
        return [path.removeprefix(own) for path in paths if path.startswith(own)]


@contextmanager
def _errors_of(shown: str) -> Iterator[None]:
    """Turn errors of pyiceberg, its catalog and its files into ours."""
    try:
        yield
    except (CommitFailedException, TableAlreadyExistsError) as error:
        raise Conflict(f"{shown}: {first_line(error)}") from error
    except ArchiveError:
        raise
    except Exception as error:  # each catalog has its own
        raise ArchiveError(f"{shown}: pyiceberg fails: {first_line(error)}") from error


def _arrow(schema: Mapping[str, Any]) -> Any:
    return to_arrow_schema(StructType.fromJson(dict(schema)), timezone="UTC")


def _partition_by(shown: str, table: Table) -> tuple[str, ...]:
    fields = table.spec().fields
    if any(not isinstance(one.transform, IdentityTransform) for one in fields):
        raise ArchiveError(
            f"{shown}: another program has changed the partitioning to {table.spec()}. Change it back, or"
            " archive into another directory"
        )
    return tuple(str(table.schema().find_column_name(one.source_id)) for one in fields)


def _check_columns(shown: str, schema: Mapping[str, Any], table: Table) -> None:
    """Check that each column still has the type that penstock gave it. Raises: ArchiveError."""
    found = from_arrow_schema(table.schema().as_arrow(), prefer_timestamp_ntz=True)
    theirs = {one.name: one.dataType.simpleString() for one in found}
    for one in StructType.fromJson(dict(schema)):
        was, now = one.dataType.simpleString(), theirs.get(one.name)
        if now is None or _SMALL.sub("int", was) != now:
            what = "dropped or renamed" if now is None else f"changed to {now}"
            raise ArchiveError(
                f"{shown}: another program has {what} column {one.name}, which was {was}. Change it back, or"
                " archive into another directory"
            )


def _partition_of(table: Table, file: Any) -> dict[str, str]:
    """The partition of a file, as text."""
    spec = table.specs()[file.spec_id]
    kinds = spec.partition_type(table.schema()).fields
    return {
        one.name: one.transform.to_human_string(kind.field_type, file.partition[at])
        for at, (one, kind) in enumerate(zip(spec.fields, kinds, strict=True))
    }
