"""Checks [dedup], [[lookup]] and [[table]] against the other sections. It needs only the file."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.spark.lake.formats import PARQUET
from penstock.spark.lake.local_files import is_local
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.names import NAME, NAME_FORM, unknown_column
from penstock.spark.pipeline.definition.toml_lines import KeyPath

Found = Iterator[tuple[KeyPath, str]]


def shape_problems(pipeline: Pipeline) -> Found:
    """Unknown columns, names that occur twice, and lakes that aggregates cannot read."""
    known = ("_stream", *pipeline.scalars)
    if pipeline.dedup is not None:
        yield from _unknown(("dedup", "key"), pipeline.dedup.key, known)
    yield from _lookup_problems(pipeline)
    for at, table in enumerate(pipeline.tables):
        yield from _unknown(("table", at, "key"), table.key, known)
        order = ("_id", "_timestamp", *pipeline.scalars)
        yield from _unknown(("table", at, "order_by"), (table.order_by,), order)
    yield from _format_problems(pipeline)
    place = pipeline.archive.path
    if pipeline.decides_rows and pipeline.aggregates and not is_local(place):
        text = (
            f"with {'[dedup]' if pipeline.dedup else '[[lookup]]'}, aggregates read silver, which must be"
            " in a directory of this machine: use a local or mounted path"
        )
        yield ("archive", "path"), text


def _format_problems(pipeline: Pipeline) -> Found:
    """Sections that need the manifests of Parquet tables."""
    needs = (
        f"needs Parquet tables, and the format is {pipeline.archive.format}: archive into another directory"
        ' with format = "parquet", or remove the section'
    )
    if pipeline.archive.format == PARQUET:
        return
    if pipeline.dedup is not None:
        yield ("dedup",), f"[dedup] {needs}"
    if pipeline.lookups and pipeline.aggregates:
        yield ("lookup", 0), f"[[lookup]] with an aggregate {needs}"
    if pipeline.tables:
        yield ("table", 0), f"[[table]] {needs}"


def columns_of_lookups(pipeline: Pipeline) -> list[tuple[KeyPath, str]]:
    """The columns that lookups add, each with its place in the file."""
    return [
        (("lookup", at, "columns", name), name)
        for at, one in enumerate(pipeline.lookups)
        for name in one.columns
    ]


def _lookup_problems(pipeline: Pipeline) -> Found:
    seen: set[str] = set()
    before: list[str] = []
    for at, one in enumerate(pipeline.lookups):
        path: KeyPath = ("lookup", at)
        if one.name and not NAME.fullmatch(one.name):
            yield (*path, "name"), f"the name of a lookup may have {NAME_FORM}"
        elif one.name in seen:
            yield (*path, "name"), f"there is already a lookup {one.name}"
        seen.add(one.name)
        known = ("_stream", *pipeline.schema, *pipeline.columns, *before)
        yield from _unknown((*path, "on"), tuple(one.on), known)
        for name in one.types:
            if name not in one.columns:
                yield (*path, "types", name), f"{name} is not in columns of this lookup"
        before += one.columns


def _unknown(path: KeyPath, columns: tuple[str, ...], known: tuple[str, ...]) -> Found:
    for column in columns:
        if column not in known:
            yield path, unknown_column(column, known)
