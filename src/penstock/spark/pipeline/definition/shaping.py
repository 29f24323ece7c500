"""The sections that shape rows: [dedup], [[lookup]] and [[table]].

[dedup]     key, within
[[lookup]]  name, on, columns, types, required, refresh; path and format, or jdbc and table; options
[[table]]   name, key, order_by, delete_when, buckets, path
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.spark.pipeline.definition.toml_lines import KeyPath
from penstock.spark.pipeline.definition.toml_table import Problems, Table

LOOKUP_FORMATS = ("parquet", "csv", "json")
ORDER_DEFAULT = "_id"
BUCKETS_DEFAULT = 16
BUCKETS_MAX = 1024

Resolve = Callable[[KeyPath, str], str]


@dataclass(frozen=True, slots=True)
class Dedup:
    """The section [dedup]: of the rows with the same key within a time, only the first is kept."""

    key: tuple[str, ...]
    within_ms: int


@dataclass(frozen=True, slots=True)
class Lookup:
    """One section [[lookup]]: columns of a static table. `on` and `columns` map our names to the table's."""

    name: str
    on: Mapping[str, str]
    columns: Mapping[str, str]
    types: Mapping[str, str]
    path: str = ""
    format: str = LOOKUP_FORMATS[0]
    jdbc: str = field(default="", repr=False)
    table: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    required: bool = False
    refresh_ms: int | None = None

    @property
    def flag(self) -> str:
        """The column that tells whether a row has found its match."""
        return f"_lookup_{self.name}"


@dataclass(frozen=True, slots=True)
class UpsertTable:
    """One section [[table]]: one row for each key, the newest."""

    name: str
    key: tuple[str, ...]
    order_by: str = ORDER_DEFAULT
    delete_when: str = ""
    buckets: int = BUCKETS_DEFAULT
    path: str = ""


@dataclass(frozen=True, slots=True)
class ShapeReader:
    """Reads these sections. `place` resolves a path, `resolve` replaces variables of the environment."""

    problems: Problems
    place: Resolve
    resolve: Resolve

    def dedup(self, top: Table) -> Dedup | None:
        """The section [dedup], or None."""
        if "dedup" not in top.values:
            return None
        table = top.table("dedup", ("key", "within"))
        return Dedup(self._key(table, "[dedup]"), table.duration("within", needed=True) or 0)

    def lookups(self, top: Table) -> tuple[Lookup, ...]:
        """All sections [[lookup]]."""
        return tuple(self._lookup(table) for table in top.tables("lookup"))

    def tables(self, top: Table) -> tuple[UpsertTable, ...]:
        """All sections [[table]]."""
        return tuple(self._table(table) for table in top.tables("table"))

    def _lookup(self, table: Table) -> Lookup:
        table.only(
            *("name", "path", "format", "jdbc", "table", "options", "on", "columns", "types"),
            *("required", "refresh"),
        )
        path, jdbc = table.text("path"), table.text("jdbc")
        if bool(path) == bool(jdbc):
            self.problems.add(table.path, "[[lookup]] needs either path or jdbc")
        for key, needs in (("format", "path"), ("table", "jdbc")):
            if key in table.values and needs not in table.values:
                self.problems.add((*table.path, key), f"{key} is only for a lookup with {needs}")
        on, columns = table.pairs("on"), table.pairs("columns")
        for key, found in (("on", on), ("columns", columns)):
            if not found and not table.values.get(key):  # otherwise it is reported
                self.problems.add(table.path, f"[[lookup]] needs {key}, with at least one column")
        options = {
            name: self.resolve((*table.path, "options", name), value)
            for name, value in table.table("options").words().items()
        }
        return Lookup(
            name=table.text("name", needed=True),
            on=on,
            columns=columns,
            types=table.table("types").texts('a Spark type: "int", "decimal(10,2)"'),
            path=self.place((*table.path, "path"), path),
            format=table.choice("format", LOOKUP_FORMATS),
            jdbc=self.resolve((*table.path, "jdbc"), jdbc),
            table=table.text("table", needed=bool(jdbc)),
            options=options,
            required=table.flag("required"),
            refresh_ms=table.duration("refresh"),
        )

    def _table(self, table: Table) -> UpsertTable:
        table.only("name", "key", "order_by", "delete_when", "buckets", "path")
        buckets = table.whole("buckets", smallest=1)
        if buckets is not None and buckets > BUCKETS_MAX:
            self.problems.add((*table.path, "buckets"), f"buckets must be at most {BUCKETS_MAX}")
        return UpsertTable(
            name=table.text("name", needed=True),
            key=self._key(table, "[[table]]"),
            order_by=table.text("order_by") or ORDER_DEFAULT,
            delete_when=table.text("delete_when"),
            buckets=buckets or BUCKETS_DEFAULT,
            path=self.place((*table.path, "path"), table.text("path")),
        )

    def _key(self, table: Table, section: str) -> tuple[str, ...]:
        key = table.names("key")
        if not key and "key" not in table.values:
            self.problems.add(table.path, f"{section} needs key")
        elif not key:
            self.problems.add((*table.path, "key"), f"{section} needs at least one column as key")
        return key
