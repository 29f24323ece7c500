"""Checks the keys of a pipeline against each other: columns, names, paths and streams.

These checks need only the file, no Spark and no server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase

from penstock.spark.lake.formats import DELTA, ICEBERG, NAMESPACE, missing_library
from penstock.spark.lake.local_files import is_local, local_path
from penstock.spark.pipeline.definition.file import Aggregate, Payload, Pipeline
from penstock.spark.pipeline.definition.names import NAME, NAME_FORM, unknown_column
from penstock.spark.pipeline.definition.output_section import section_problems
from penstock.spark.pipeline.definition.shaping import UpsertTable
from penstock.spark.pipeline.definition.shaping_rules import columns_of_lookups, shape_problems
from penstock.spark.pipeline.definition.toml_lines import KeyPath
from penstock.spark.pipeline.definition.toml_table import Problem
from penstock.spark.source.options import parse_options

BRONZE, SILVER, REJECT, GOLD = "bronze", "silver", "reject", "gold"
TABLES = "tables"
MAIN = "main"  # the query that writes bronze, silver and rejects
CHECKPOINTS = "_checkpoints"
RUNS = "_runs"  # the history
PAYLOAD_PROBLEM = "_payload_problem"
DUPLICATE = "_duplicate"
OWN_COLUMNS = (
    *("_stream", "_id", "_timestamp", "_corrupt", "_deliveries", "fields", "_raw"),
    *(PAYLOAD_PROBLEM, DUPLICATE),
)
WINDOW_COLUMNS = ("window", "window_start", "window_end", "day")


def lake_path(pipeline: Pipeline, *parts: str) -> str:
    """A path in the lake."""
    return "/".join((pipeline.archive.path, *parts))


def gold_path(pipeline: Pipeline, aggregate: Aggregate) -> str:
    """The path of an aggregate's table."""
    return aggregate.path or lake_path(pipeline, GOLD, aggregate.name)


def table_path(pipeline: Pipeline, table: UpsertTable) -> str:
    """The path of an upsert table."""
    return table.path or lake_path(pipeline, TABLES, table.name)


def rule_problems(pipeline: Pipeline) -> list[Problem]:
    """The problems that all rules find."""
    found = [
        *_column_problems(pipeline),
        *shape_problems(pipeline),
        *_name_problems(pipeline),
        *_path_problems(pipeline),
        *_stream_problems(pipeline),
        *_place_problems(pipeline),
        *_format_problems(pipeline),
        *_loss_problems(pipeline),
    ]
    return [pipeline.problem(path, text) for path, text in found]


Found = Iterator[tuple[KeyPath, str]]


def _column_problems(pipeline: Pipeline) -> Found:
    named: list[tuple[KeyPath, str]] = [(("schema", one), one) for one in pipeline.schema]
    if pipeline.payload is not None:
        named.append((("payload", "field"), pipeline.payload.field))
        yield from _member_problems(pipeline.payload)
    named += [(("columns", one), one) for one in pipeline.columns]
    named += columns_of_lookups(pipeline)
    seen: dict[str, str] = {}
    for place, column in named:
        if column.lower() in OWN_COLUMNS or column.lower().startswith(("_lookup_", "_key_")):
            yield place, f"{column} is a column of the source itself: {_instead(place)}"
        elif column.lower() in seen:
            yield place, f"{column} and {seen[column.lower()]} are the same column to Spark"
        seen[column.lower()] = column
    known = ("day", *pipeline.scalars)
    for column in pipeline.archive.partition_by:
        path = ("archive", "partition_by")
        if column not in known:
            yield path, unknown_column(column, known)
        elif column.startswith(("_", ".")):
            yield path, f"{column}: readers skip directories that start with {column[0]!r}"
    for at, aggregate in enumerate(pipeline.aggregates):
        known = ("_stream", "_timestamp", *pipeline.scalars)
        for key, columns in (("group_by", aggregate.group_by), ("time", (aggregate.time,))):
            for column in columns:
                if column not in known:
                    yield ("aggregate", at, key), unknown_column(column, known)
        yield from _made_problems(at, aggregate)


def _made_problems(at: int, aggregate: Aggregate) -> Found:
    """Column names that an aggregate would have twice. Spark ignores case."""
    made = set(WINDOW_COLUMNS)
    for name in aggregate.group_by:
        if name.lower() in made:
            text = f"the aggregate already has a column {name}: rename it in [schema]"
            yield ("aggregate", at, "group_by"), text
        made.add(name.lower())
    for name in aggregate.measures:
        if name.lower() in made:
            path = ("aggregate", at, "measures", name)
            yield path, f"the aggregate already has a column {name}: rename the measure"
        made.add(name.lower())


def _instead(path: KeyPath) -> str:
    return "remove it" if path[0] == "schema" else "use another name"


def _member_problems(payload: Payload) -> Found:
    seen: dict[str, str] = {}
    for name in payload.schema:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            yield ("payload", "schema", name), f"{name} and {other} are the same name to Spark"


def _name_problems(pipeline: Pipeline) -> Found:
    for name in pipeline.valid:
        if not NAME.fullmatch(name):
            yield ("valid", name), f"the name of a condition may have {NAME_FORM}"
    names = [BRONZE, SILVER, REJECT, MAIN]
    for path, what, name, _ in _named_outputs(pipeline):
        if name and not NAME.fullmatch(name):
            yield (*path, "name"), f"the name of {what} may have {NAME_FORM}"
        elif name.startswith("_"):
            yield (*path, "name"), f"{name}: readers skip directories that start with '_'"
        elif name.lower() in names:
            yield (*path, "name"), f"there is already an output {name}"
        names.append(name.lower())
    aggregates = [one.name for one in pipeline.aggregates]
    yield from section_problems(pipeline.sections, names, aggregates)


def _named_outputs(pipeline: Pipeline) -> Iterator[tuple[KeyPath, str, str, str]]:
    """The aggregates and tables: key, kind, name, and the path if it is set."""
    for at, one in enumerate(pipeline.aggregates):
        yield ("aggregate", at), "an aggregate", one.name, one.path
    for at, table in enumerate(pipeline.tables):
        yield ("table", at), "a table", table.name, table.path


def _path_problems(pipeline: Pipeline) -> Found:
    """Outputs in the same directory, or one inside the other: a reader of the outer one would read both."""
    if not pipeline.archive.path:
        return
    taken = {lake_path(pipeline, name): name for name in (BRONZE, SILVER, CHECKPOINTS, RUNS)}
    places = [gold_path(pipeline, one) for one in pipeline.aggregates]
    places += [table_path(pipeline, one) for one in pipeline.tables]
    for place, (path, _, name, own) in zip(places, _named_outputs(pipeline), strict=True):
        if not name or (not own and name in taken.values()):
            continue  # the name itself is wrong, and reported
        for other, owner in taken.items():
            if f"{place}/".startswith(f"{other}/") or f"{other}/".startswith(f"{place}/"):
                yield (*path, "path"), f"{place} collides with {owner}, in {other}"
        taken.setdefault(place, name)


def _stream_problems(pipeline: Pipeline) -> Found:
    """Output streams that the source reads, or that two outputs share."""
    outputs: list[tuple[KeyPath, str]] = [(("reject", "stream"), pipeline.reject)]
    for at, aggregate in enumerate(pipeline.aggregates):
        outputs.append((("aggregate", at, "stream"), aggregate.stream))
    outputs.append((("metrics", "stream"), pipeline.metrics))
    streams, pattern = sources_of(pipeline)
    seen: set[str] = set()
    for path, stream in outputs:
        if not stream:
            continue
        if stream in streams or (pattern and fnmatchcase(stream, pattern.replace("[^", "[!"))):
            yield path, f"{stream} is read by [source]: the pipeline would read what it writes"
        if stream in seen:
            yield path, f"{stream} is already the stream of another output"
        seen.add(stream)


def sources_of(pipeline: Pipeline) -> tuple[tuple[str, ...], str]:
    """The streams and the pattern of the source, even if other options are wrong."""
    wanted = ("stream", "streamPattern")
    given = {name: pipeline.source.options.get(name, "") for name in wanted}
    if bool(given["stream"]) == bool(given["streamPattern"]):
        return (), ""
    options = parse_options({"url": "redis://127.0.0.1", **{k: v for k, v in given.items() if v}})
    return options.streams, options.pattern


def _format_problems(pipeline: Pipeline) -> Found:
    """A format whose library is missing, or that cannot be used with this path or catalog."""
    archive = pipeline.archive
    missing = missing_library(archive.format)
    if missing is not None:
        yield ("archive", "format"), f"the format {archive.format} {missing}"
    if archive.format == DELTA and archive.path.startswith("hdfs:"):
        yield (
            ("archive", "path"),
            "the format delta cannot be written to hdfs: use iceberg or parquet",
        )
    if archive.format == ICEBERG and not is_local(archive.path) and not archive.catalog:
        text = "an Iceberg lake that is not on this machine needs a catalog: set [archive.catalog]"
        yield ("archive", "path"), text
    if archive.catalog and archive.format != ICEBERG:
        yield ("archive", "catalog"), f"the format {archive.format} has no catalog: remove it"
    namespace = archive.catalog.get("namespace", NAMESPACE)
    if not all(NAME.fullmatch(part) for part in namespace.split(".")):
        yield ("archive", "catalog", "namespace"), f"a namespace may have {NAME_FORM}, and dots"


def _loss_problems(pipeline: Pipeline) -> Found:
    """Trimming without reading from the beginning: it would remove entries that no output has read."""
    options = pipeline.source.options
    begins = options.get("startingOffsets") == "earliest"
    if pipeline.archive.trim != "never" and not begins:
        text = "trim would remove entries that no output has read: set starting to earliest"
        yield ("archive", "trim"), text


def _place_problems(pipeline: Pipeline) -> Found:
    """Local directories that cannot be written to. The check creates nothing."""
    places: list[tuple[KeyPath, str]] = [(("archive", "path"), pipeline.archive.path)]
    for above, _, _, own in _named_outputs(pipeline):
        places.append(((*above, "path"), own))
    for path, place in places:
        if not place or not is_local(place):
            continue
        there = local_path(place)
        while not there.exists() and there != there.parent:
            there = there.parent
        if not there.is_dir():
            yield path, f"{there} is not a directory"
        elif not os.access(there, os.W_OK | os.X_OK):
            yield path, f"{there} cannot be written to"
