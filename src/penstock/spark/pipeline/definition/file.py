"""Reads a pipeline from a TOML file. docs/pipeline.md describes every key.

    [source]       url, stream or streamPattern, group, starting, max_entries; the rest in [source.options]
    [schema]       column = "spark type", or {type, default}
    [payload]      field, format = "json", schema = {member = "spark type"}
    [columns]      column = "SQL expression"
    [valid]        name = "SQL condition"
    [archive]      path, format, partition_by, trim = "never|archived|acked"; catalog = {property = "value"}
    [reject]       stream
    [dedup]        key, within                  (shaping.py has these three)
    [[lookup]]     name, path or jdbc, on, columns ...
    [[table]]      name, key, order_by ...
    [[aggregate]]  name, time, window, watermark, group_by, measures, path, stream
    [[output]]     name, from, call, jdbc, table, options (output_section.py)
    [metrics]      stream

`read_pipeline` does not stop at the first mistake. It returns the pipeline as far as it can be read, and all
problems with their lines. rules.py checks keys against each other. check.py lets Spark check types and SQL.

`${NAME}` and `${NAME:-default}` in urls, options and paths are replaced from the environment, so that a file
need not contain a password. Problems never quote a value that may contain one.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from penstock.client.address import split_urls
from penstock.errors import PenstockError
from penstock.spark.lake.formats import FORMATS as TABLE_FORMATS
from penstock.spark.lake.formats import PARQUET
from penstock.spark.lake.local_files import has_scheme
from penstock.spark.option_reader import OptionError
from penstock.spark.pipeline.definition.columns import read_schema
from penstock.spark.pipeline.definition.output_section import OutputSection, SectionReader
from penstock.spark.pipeline.definition.shaping import Dedup, Lookup, ShapeReader, UpsertTable
from penstock.spark.pipeline.definition.toml_lines import KeyLines, KeyPath
from penstock.spark.pipeline.definition.toml_table import Problem, Problems, Table
from penstock.spark.place import CONNECTION, Place
from penstock.spark.source.options import NAMES, parse_options

METRICS_STREAM = "penstock:metrics"
TIME_DEFAULT = "_timestamp"
TRIMS = ("never", "archived", "acked")
FORMATS = ("json",)
SECTIONS = (
    "source",
    "schema",
    "payload",
    "columns",
    "valid",
    "archive",
    "reject",
    "dedup",
    "lookup",
    "table",
    "aggregate",
    "output",
    "metrics",
)

_OWN_KEYS = {
    "url": "url",
    "stream": "stream",
    "streamPattern": "streamPattern",
    "group": "group",
    "startingOffsets": "starting",
    "maxEntriesPerTrigger": "max_entries",
}
_REFUSED = {
    **dict.fromkeys(("mode", "consumer", "claimIdleMs"), "all outputs read the same entries"),
    **dict.fromkeys(("endingOffsets", "endingTimestamp"), "it has no end; --once stops at the end"),
    "onParseError": "rows that do not parse are rejected",
}
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_LOGIN_PART = re.compile(r"(\w+://)(.*)(@.*)", re.S)
_STAND_IN_URL = "redis://127.0.0.1"  # in place of a wrong one, so that the rest can be checked


@dataclass(frozen=True, slots=True)
class Source:
    """The options of the data source, as for `format("penstock")`."""

    options: Mapping[str, str] = field(repr=False)

    @property
    def place(self) -> Place:
        """The servers. Raises: OptionError."""
        return parse_options({**self.login, "stream": "any"}).place

    @property
    def login(self) -> dict[str, str]:
        """The url and login: the options that a sink shares with the source."""
        return {name: value for name, value in self.options.items() if name in CONNECTION}

    @property
    def sink_login(self) -> dict[str, str]:
        """The url and login of the sink. Of several servers, the first."""
        login = self.login
        if not self.place.cluster:
            login["url"] = split_urls(login["url"])[0]
        return login


@dataclass(frozen=True, slots=True)
class Payload:
    """The section [payload]: a field with JSON, and the types of its members."""

    field: str
    schema: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Archive:
    """The section [archive]."""

    path: str
    partition_by: tuple[str, ...] = ("day",)
    trim: str = "never"
    format: str = PARQUET
    catalog: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One section [[aggregate]]: measures by time window and group."""

    name: str
    window: str
    watermark: str
    measures: Mapping[str, str]
    time: str = TIME_DEFAULT
    group_by: tuple[str, ...] = ()
    path: str = ""
    stream: str = ""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A whole file. An empty string means that the key is not set."""

    name: str
    file: str
    source: Source
    schema: Mapping[str, str]
    valid: Mapping[str, str]
    archive: Archive
    payload: Payload | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)  # of columns of [schema]
    reject: str = ""
    dedup: Dedup | None = None
    lookups: tuple[Lookup, ...] = ()
    tables: tuple[UpsertTable, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    sections: tuple[OutputSection, ...] = ()
    metrics: str = METRICS_STREAM
    lines: KeyLines = field(default_factory=KeyLines, repr=False, compare=False)

    @property
    def scalars(self) -> tuple[str, ...]:
        """The columns of [schema], [columns] and the lookups."""
        looked_up = (name for one in self.lookups for name in one.columns)
        return (*self.schema, *self.columns, *looked_up)

    @property
    def decides_rows(self) -> bool:
        """Whether `main` decides about rows by more than the entry. Aggregates then read silver."""
        return self.dedup is not None or bool(self.lookups)

    def problem(self, path: KeyPath, text: str) -> Problem:
        """A problem, with the line of its key."""
        return Problem(self.file, self.lines.of(path), text)


class PipelineFileError(PenstockError):
    """The file has problems. The text has one per line."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def read_pipeline(file: str | Path) -> tuple[Pipeline | None, list[Problem]]:
    """The pipeline, and its problems. There is no pipeline if the file is not TOML. Raises: OSError."""
    file = Path(file)
    try:
        text = file.read_bytes().decode()
        values = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        return None, [Problem(str(file), line, "a TOML file must be UTF-8, and this byte is not")]
    except tomllib.TOMLDecodeError as error:
        return None, [_syntax_problem(file, text, str(error))]
    problems = Problems(str(file), KeyLines(text.replace("\r\n", "\n")))
    pipeline = _Draft(file, problems).pipeline(values)
    return pipeline, problems.found


def load_pipeline(file: str | Path) -> Pipeline:
    """A pipeline without problems in its file. SQL is not checked. Raises: PipelineFileError, OSError."""
    pipeline, problems = read_pipeline(file)
    if pipeline is None or problems:
        raise PipelineFileError(problems)
    return pipeline


def _syntax_problem(file: Path, text: str, message: str) -> Problem:
    at = re.search(r"\(at line (\d+), column \d+\)", message)
    line = int(at[1]) if at else text.rstrip().count("\n") + 1
    what = re.sub(r"\s*\(at .*\)", "", message)
    return Problem(str(file), line, f"not TOML: {what}")


class _Draft:
    """Reads one file."""

    def __init__(self, file: Path, problems: Problems) -> None:
        self._file = file
        self._problems = problems
        self._option_paths: dict[str, KeyPath] = {
            name: ("source", key) for name, key in _OWN_KEYS.items()
        }

    def pipeline(self, values: dict[str, Any]) -> Pipeline:
        top = Table(self._problems, (), values, SECTIONS)
        for section in ("source", "schema", "archive"):
            if section not in values and not (section == "schema" and "payload" in values):
                self._problems.add((), f"[{section}] is missing")
        aggregates = top.tables("aggregate")
        schema, defaults = read_schema(top, self._problems)
        shape = ShapeReader(self._problems, self._place, self._from_environment)
        return Pipeline(
            name=self._file.stem,
            file=str(self._file),
            source=self._source(top),
            schema=schema,
            defaults=defaults,
            valid=top.table("valid").texts("a SQL condition"),
            archive=self._archive(top),
            payload=self._payload(top),
            columns=top.table("columns").texts("a SQL expression"),
            reject=self._reject(top),
            dedup=shape.dedup(top),
            lookups=shape.lookups(top),
            tables=shape.tables(top),
            aggregates=tuple(self._aggregate(*one) for one in enumerate(aggregates)),
            sections=self._sections(top),
            metrics=self._metrics(top),
            lines=self._problems.lines,
        )

    def _payload(self, top: Table) -> Payload | None:
        if "payload" not in top.values:
            return None
        table = top.table("payload", ("field", "format", "schema"))
        table.choice("format", FORMATS)
        members = table.table("schema").texts('a Spark type: "string", "array<int>"')
        if not members:
            self._problems.add(table.path, "[payload] needs schema = {member = type}")
        return Payload(table.text("field", needed=True), members)

    def _source(self, top: Table) -> Source:
        table = top.table("source", (*_OWN_KEYS.values(), "options"))
        options: dict[str, str] = {}
        url = table.text("url", needed="source" in top.values)
        if url:
            options["url"] = self._from_environment(("source", "url"), url)
        for name in ("streamPattern", "group"):
            if table.text(name):
                options[name] = table.text(name)
        streams = table.names("stream")
        if streams:
            options["stream"] = json.dumps(streams)
        if "source" in top.values and bool(streams) == ("streamPattern" in options):
            self._problems.add(("source",), "[source] needs either stream or streamPattern")
        limit = table.whole("max_entries", smallest=1)
        if limit is not None:
            options["maxEntriesPerTrigger"] = str(limit)
        further = self._further(table)
        if not any(name.lower() == "startingtimestamp" for name in further):
            options["startingOffsets"] = table.text_or_object("starting", "earliest")
        elif "starting" in table.values:
            self._problems.add(
                ("source", "starting"), "set either starting or startingTimestamp, not both"
            )
        options.update(further)
        if "source" in top.values:
            self._check_options(options)
        return Source(options)

    def _further(self, table: Table) -> dict[str, str]:
        """[source.options]: the options of the source without a key of their own."""
        own = {name.lower(): key for name, key in _OWN_KEYS.items()}
        refused = {name.lower(): why for name, why in _REFUSED.items()}
        found = {}
        for name, value in table.table("options").words().items():
            path = ("source", "options", name)
            if name.lower() in own:
                self._problems.add(path, f"set {name} in [source], as {own[name.lower()]}")
            elif name.lower() in refused:
                why = refused[name.lower()]
                self._problems.add(path, f"a pipeline does not allow the option {name}: {why}")
            else:
                known = next((one for one in NAMES if one.lower() == name.lower()), name)
                self._option_paths[known] = path
                found[known] = self._from_environment(path, value)
        return found

    def _check_options(self, options: dict[str, str]) -> None:
        """Report all options that the source refuses: drop the wrong one, and check the rest again."""
        left = {"url": _STAND_IN_URL, **options}
        if "stream" not in left and "streamPattern" not in left:
            left["stream"] = "any"  # a missing stream is reported already
        if "stream" in left:
            left.pop("streamPattern", None)
        for _ in range(len(left)):
            try:
                parse_options(left)
                return
            except OptionError as error:
                path = self._option_paths.get(error.name, ("source",))
                self._problems.add(path, str(error))
                if error.name == "url":
                    left["url"] = _STAND_IN_URL
                elif left.pop(error.name, None) is None:
                    return

    def _archive(self, top: Table) -> Archive:
        table = top.table("archive", ("path", "format", "partition_by", "trim", "catalog"))
        path = table.text("path", needed="archive" in top.values)
        return Archive(
            path=self._place(("archive", "path"), path),
            partition_by=table.names("partition_by", ("day",)),
            trim=table.choice("trim", TRIMS),
            format=table.choice("format", TABLE_FORMATS),
            catalog={
                name: self._from_environment(("archive", "catalog", name), value)
                for name, value in table.table("catalog").words().items()
            },
        )

    def _reject(self, top: Table) -> str:
        return top.table("reject", ("stream",)).text("stream", needed="reject" in top.values)

    def _metrics(self, top: Table) -> str:
        stream = top.table("metrics", ("stream",)).text("stream") or METRICS_STREAM
        return "" if stream == "none" else stream

    def _aggregate(self, number: int, table: Table) -> Aggregate:
        table.only("name", "time", "window", "watermark", "group_by", "measures", "path", "stream")
        measures = table.table("measures").texts("a SQL aggregate: sum(qty)")
        if not measures:
            self._problems.add(table.path, "an aggregate needs measures = {name = SQL}")
        return Aggregate(
            name=table.text("name", needed=True),
            window=table.text("window", needed=True),
            watermark=table.text("watermark", needed=True),
            measures=measures,
            time=table.text("time") or TIME_DEFAULT,
            group_by=table.names("group_by"),
            path=self._place(("aggregate", number, "path"), table.text("path")),
            stream=table.text("stream"),
        )

    def _sections(self, top: Table) -> tuple[OutputSection, ...]:
        reader = SectionReader(self._problems, self._from_environment, self._place)
        return tuple(reader.read(one) for one in top.tables("output"))

    def _place(self, path: KeyPath, text: str) -> str:
        """A path of the lake. It is relative to the file, not to the current directory."""
        place = self._from_environment(path, text)
        if not place or has_scheme(place):
            return place.rstrip("/")
        return os.path.normpath(self._file.absolute().parent / Path(place).expanduser())

    def _from_environment(self, path: KeyPath, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            name, default = found.groups()
            if name in os.environ or default is not None:
                return os.environ.get(name, default or "")
            self._problems.add(
                path, f"the variable {name} is not set: set it, or write ${{{name}:-default}}"
            )
            return ""

        def url(part: str) -> str:
            login = _LOGIN_PART.fullmatch(part)
            if login is None:
                return _VARIABLE.sub(value, part)
            # A password in the environment is not escaped, but in a url its / ? # @ must be.
            safe = _VARIABLE.sub(lambda found: quote(value(found), safe=""), login[2])
            return login[1] + safe + _VARIABLE.sub(value, login[3])

        if path[-1] == "url":
            return ",".join(url(part) for part in split_urls(text))
        return _VARIABLE.sub(value, text)
