"""What may stand side by side in a pipeline: names, places and streams that must differ.

All of it is decided by the file alone, without Spark and without a server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from penstock.spark.pipeline.file import Aggregate, Pipeline
from penstock.spark.pipeline.toml_lines import KeyPath
from penstock.spark.pipeline.toml_table import Problem
from penstock.spark.source.options import parse_options

BRONZE, SILVER, REJECT, GOLD = "bronze", "silver", "reject", "gold"
CHECKPOINTS = "_checkpoints"
OWN_COLUMNS = ("_stream", "_id", "_timestamp", "_corrupt", "_deliveries", "fields")
WINDOW_COLUMNS = ("window", "window_start", "window_end", "day")

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_NAME_FORM = "letters, digits, _ and -"


def lake_path(pipeline: Pipeline, *parts: str) -> str:
    """A place in the lake."""
    return "/".join((pipeline.archive.path, *parts))


def gold_path(pipeline: Pipeline, aggregate: Aggregate) -> str:
    """Where an aggregate is kept."""
    return aggregate.path or lake_path(pipeline, GOLD, aggregate.name)


def rule_problems(pipeline: Pipeline) -> list[Problem]:
    """Everything that does not go together."""
    found = [
        *_column_problems(pipeline),
        *_name_problems(pipeline),
        *_path_problems(pipeline),
        *_stream_problems(pipeline),
        *_place_problems(pipeline),
        *_loss_problems(pipeline),
    ]
    return [pipeline.problem(path, text) for path, text in found]


Found = Iterator[tuple[KeyPath, str]]


def _column_problems(pipeline: Pipeline) -> Found:
    seen: dict[str, str] = {}
    for column in pipeline.schema:
        if column.lower() in OWN_COLUMNS:
            yield ("schema", column), f"{column} is the source's own column: leave it out"
        elif column.lower() in seen:
            text = f"{column} and {seen[column.lower()]} are the same column to Spark"
            yield ("schema", column), text
        seen[column.lower()] = column
    known = ("day", *pipeline.schema)
    for column in pipeline.archive.partition_by:
        path = ("archive", "partition_by")
        if column not in known:
            yield path, _unknown_column(column, known)
        elif column.startswith(("_", ".")):
            yield path, f"{column}: readers skip directories that begin with {column[0]!r}"
    for at, aggregate in enumerate(pipeline.aggregates):
        known = ("_stream", "_timestamp", *pipeline.schema)
        for key, columns in (("group_by", aggregate.group_by), ("time", (aggregate.time,))):
            for column in columns:
                if column not in known:
                    yield ("aggregate", at, key), _unknown_column(column, known)
        yield from _made_problems(at, aggregate)


def _made_problems(at: int, aggregate: Aggregate) -> Found:
    """The columns that an aggregate makes; to Spark, names that differ in case are one."""
    made = set(WINDOW_COLUMNS)
    for name in aggregate.group_by:
        if name.lower() in made:
            text = f"the aggregate has a column {name} already: give the schema's another name"
            yield ("aggregate", at, "group_by"), text
        made.add(name.lower())
    for name in aggregate.measures:
        if name.lower() in made:
            path = ("aggregate", at, "measures", name)
            yield path, f"the aggregate has a column {name} already: name the measure otherwise"
        made.add(name.lower())


def _unknown_column(column: str, known: tuple[str, ...]) -> str:
    return f"there is no column {column}; there are {', '.join(known)}"


def _name_problems(pipeline: Pipeline) -> Found:
    for name in pipeline.valid:
        if not _NAME.fullmatch(name):
            yield ("valid", name), f"a condition's name has {_NAME_FORM}: rejects carry it"
    names = [BRONZE, SILVER, REJECT]
    for at, aggregate in enumerate(pipeline.aggregates):
        path = ("aggregate", at, "name")
        if aggregate.name and not _NAME.fullmatch(aggregate.name):
            yield path, f"an aggregate's name has {_NAME_FORM}: a folder is named so"
        elif aggregate.name.startswith("_"):
            yield path, f"{aggregate.name}: readers skip directories that begin with '_'"
        elif aggregate.name.lower() in names:
            yield path, f"there is an output {aggregate.name} already"
        names.append(aggregate.name.lower())


def _path_problems(pipeline: Pipeline) -> Found:
    """Two outputs in one folder, or one inside the other: who reads the outer reads both."""
    if not pipeline.archive.path:
        return
    taken = {lake_path(pipeline, name): name for name in (BRONZE, SILVER, CHECKPOINTS)}
    for at, aggregate in enumerate(pipeline.aggregates):
        if not aggregate.name or (not aggregate.path and aggregate.name in taken.values()):
            continue  # the name alone is the problem, and reported
        place = gold_path(pipeline, aggregate)
        for other, owner in taken.items():
            if f"{place}/".startswith(f"{other}/") or f"{other}/".startswith(f"{place}/"):
                yield ("aggregate", at, "path"), f"{place} collides with {owner}, in {other}"
        taken.setdefault(place, aggregate.name)


def _stream_problems(pipeline: Pipeline) -> Found:
    """What is written must not be read again, and an output has its stream for itself."""
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
            yield path, f"{stream} is another output's stream already"
        seen.add(stream)


def sources_of(pipeline: Pipeline) -> tuple[tuple[str, ...], str]:
    """The streams that are read, and their pattern, even if other options are wrong."""
    wanted = ("stream", "streamPattern")
    given = {name: pipeline.source.options.get(name, "") for name in wanted}
    if bool(given["stream"]) == bool(given["streamPattern"]):
        return (), ""
    options = parse_options({"url": "redis://127.0.0.1", **{k: v for k, v in given.items() if v}})
    return options.streams, options.pattern


def _loss_problems(pipeline: Pipeline) -> Found:
    """A trim takes all that lies below an output's end, also what lies before its beginning."""
    options = pipeline.source.options
    begins = options.get("startingOffsets") == "earliest"
    if pipeline.archive.trim != "never" and not begins:
        text = "trim would take entries that no output has: with it, starting must be earliest"
        yield ("archive", "trim"), text


def _place_problems(pipeline: Pipeline) -> Found:
    """Folders of this machine that cannot be written to; nothing is made to find out."""
    places: list[tuple[KeyPath, str]] = [(("archive", "path"), pipeline.archive.path)]
    for at, aggregate in enumerate(pipeline.aggregates):
        places.append((("aggregate", at, "path"), aggregate.path))
    for path, place in places:
        if not place or "://" in place:
            continue
        above = Path(place)
        while not above.exists() and above != above.parent:
            above = above.parent
        if not above.is_dir():
            yield path, f"{above} is no directory"
        elif not os.access(above, os.W_OK | os.X_OK):
            yield path, f"{above} cannot be written to"
