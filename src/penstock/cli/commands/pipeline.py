"""`penstock pipeline`: drafts, checks or runs a Spark pipeline described by a TOML file.

Spark is imported on first use, so that other commands start without it.
"""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from penstock.cli.connect import URL_DEFAULT, Json, MetricsBind, ServerConnection, Url
from penstock.cli.spark_session import need_spark, quiet_session
from penstock.cli.terminal.outcome import BAD_FILE, BadFile, Failure, example, say
from penstock.cli.terminal.output import Stdout, TableColumn
from penstock.cli.terminal.pipeline_display import BatchLines, Display, LiveTable, NoDisplay
from penstock.client.replies import Fields, entries
from penstock.errors import ConfigError
from penstock.human.show import harmless, json_line
from penstock.metrics.listener import BIND_DEFAULT

if TYPE_CHECKING:
    from penstock.cli.pipeline_metrics import PipelineMetrics
    from penstock.spark.pipeline.definition.file import Pipeline
    from penstock.spark.pipeline.definition.toml_table import Problem
    from penstock.spark.pipeline.progress import BatchRecord
    from penstock.spark.pipeline.run import Summary

NEW_EPILOG = example(
    "penstock pipeline new orders > orders.toml",
    "penstock pipeline new orders --out orders.toml --sample 10000",
    "penstock pipeline new events --url redis://host:6379",
)
RUN_EPILOG = example(
    "penstock pipeline run orders.toml                  until Ctrl-C or SIGTERM",
    "penstock pipeline run orders.toml --once           process existing entries, then stop",
    "penstock pipeline run orders.toml --from-archive   first compute silver and aggregates again",
    "penstock pipeline run orders.toml --json | jq .rows",
    "penstock pipeline run orders.toml --metrics 9101   for Prometheus",
    "penstock pipeline run orders.toml --master spark://host:7077 --conf spark.executor.memory=2g",
)
CHECK_EPILOG = example(
    "penstock pipeline check orders.toml",
    "penstock pipeline check orders.toml --offline      without connecting to the server",
    "penstock pipeline check orders.toml --json | jq -r '.problems[].text'",
)
COLUMNS = (
    TableColumn("output"),
    TableColumn("batches", numeric=True),
    TableColumn("read", numeric=True),
    TableColumn("written", numeric=True),
    TableColumn("late", numeric=True),
    TableColumn("lag", numeric=True),
)
NONE = "-"
SAMPLE_MAX = 100_000

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Draft, check, run and control a Spark pipeline.",
    epilog=example(
        "penstock pipeline new orders             draft a file from the entries of a stream",
        "penstock pipeline check orders.toml      find problems before running it",
        "penstock pipeline run orders.toml        run it until Ctrl-C",
        "penstock pipeline status orders.toml     show how far it is",
    ),
)

PipelineFile = Annotated[str, typer.Argument(metavar="FILE", show_default=False)]
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark master. The default is local[*]: this machine."),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A Spark setting. May be given several times."),
]


@app.command(epilog=NEW_EPILOG)
def new(
    stream: Annotated[str, typer.Argument(metavar="STREAM", show_default=False)],
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write to a new file instead of stdout.")
    ] = None,
    sample: Annotated[
        int, typer.Option(metavar="N", min=1, max=SAMPLE_MAX, help="Entries to look at.")
    ] = 1000,
    url: Url = URL_DEFAULT,
) -> None:
    """Draft the file of a pipeline for a stream: types of fields, members of JSON payloads.

    The types are guessed from the first and the last entries. Spark is not needed. User and password in the
    URL are not written into the file.
    """
    from penstock.cli.pipeline_draft import Draft

    with ServerConnection(url) as server:
        found = _sample(server, stream, sample)
    if not found:
        raise Failure(f"{stream}: there are no entries to look at")
    text = Draft(stream, without_login(url), found).text
    if out is None:
        Stdout().line(text.rstrip("\n"))
        return
    try:
        with Path(out).open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise BadFile(f"{out}: {error.strerror or error}") from None
    say(f"{out} is written, from {len(found):,} entries; next: penstock pipeline check {out}")


def _sample(server: ServerConnection, stream: str, count: int) -> list[Fields]:
    """The fields of the first and the last entries, each once."""
    half = (count + 1) // 2
    commands = (("XRANGE", stream, "-", "+"), ("XREVRANGE", stream, "+", "-"))
    found = {
        entry.id: entry.fields
        for command in commands
        for entry in entries(server.ask(*command, "COUNT", half, about=stream.encode()))
    }
    return [found[entry_id] for entry_id in sorted(found)][:count]


def without_login(url: str) -> str:
    """A URL without user, password and query."""
    return re.sub(r"//[^/]*@", "//", url).partition("?")[0]


@app.command(epilog=RUN_EPILOG)
def run(
    file: PipelineFile,
    once: Annotated[
        bool, typer.Option("--once", help="Process the entries that exist now, then stop.")
    ] = False,
    from_archive: Annotated[
        bool,
        typer.Option(
            "--from-archive", help="First compute silver and the aggregates again from bronze."
        ),
    ] = False,
    master: Master = None,
    json: Json = False,
    conf: Conf = None,
    metrics: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            help="Serve /metrics for Prometheus, /healthz and /readyz; 0 for any port.",
        ),
    ] = None,
    metrics_bind: MetricsBind = BIND_DEFAULT,
) -> None:
    """Run all outputs of a pipeline, with exactly-once results.

    Outputs continue from where they stopped. The file is checked first; nothing starts if it has a problem.
    Without --once the pipeline runs until Ctrl-C or SIGTERM, which stop it cleanly. If an output fails, all
    stop; run the command again to resume.

    --from-archive computes silver and the aggregates from all of bronze, with the present definition, and
    replaces their tables. Then the pipeline continues where bronze ends. Rejects, and windows that a stream
    has already, are not sent again.

    With --json, print one object per batch and, at the end, one with the summary.
    """
    pipeline = _load(file, json, offline=False)
    settings = _settings(conf or [])
    from penstock.spark.pipeline.definition.file import PipelineFileError
    from penstock.spark.pipeline.outputs import queries_of
    from penstock.spark.pipeline.run import (
        PipelineFailed,
        rebuild_pipeline,
        run_pipeline,
        summary_json,
    )

    output = Stdout()
    with (
        _metrics(pipeline, metrics, metrics_bind) as served,
        quiet_session(pipeline.name, master, settings) as spark,
        _stop_signals() as stop,
    ):
        try:
            with _display(output, json, pipeline.name) as display:

                def take(record: BatchRecord) -> None:
                    if served is not None:
                        served.take(record)
                    display.show(record)

                if from_archive:
                    if served is not None:
                        served.waits_for = "the tables are computed from the archive"
                    rebuild_pipeline(pipeline, spark, display.note, stop)
                if served is not None:
                    queries = queries_of(pipeline)
                    served.begin(
                        {one.name: query.name for query in queries for one in query.outputs}
                    )
                summary = run_pipeline(pipeline, spark, once, take, stop)
        except PipelineFileError as error:
            _refuse(error.problems, json)
        except PipelineFailed as error:
            raise Failure(str(error)) from None
    if json:
        output.line(json_line({"summary": summary_json(summary)}))
    else:
        _show_summary(summary, pipeline, output)


@app.command(epilog=CHECK_EPILOG)
def check(
    file: PipelineFile,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not connect to the server.")
    ] = False,
    json: Json = False,
) -> None:
    """Find the problems of a pipeline without running it. The exit code is 2 if there are any.

    Every problem is reported with its line. Found at once, without Spark: syntax, keys, outputs that collide,
    a lake that cannot be written, a server that cannot be reached, a login that is refused, keys that do not
    hold streams. If there are none of these, Spark starts and checks types, SQL, durations and the lake.
    """
    pipeline = _load(file, json, offline)
    from penstock.spark.pipeline.check import check_pipeline
    from penstock.spark.pipeline.run import pipeline_session

    with quiet_session(pipeline.name, "local[1]", {}) as spark:
        problems = check_pipeline(pipeline, pipeline_session(spark), offline)
    if problems:
        _refuse(problems, json)
    if not offline:
        _note_missing(pipeline)
    output = Stdout()
    if json:
        output.line(json_line({"file": file, "problems": []}))
    else:
        output.line(f"{harmless(file)}: no problems")


def _note_missing(pipeline: Pipeline) -> None:
    from penstock.spark.pipeline.server_check import missing_streams

    for name in missing_streams(pipeline):
        say(f"the stream {harmless(name)} does not exist yet")


def _read(file: str) -> tuple[Pipeline | None, list[Problem]]:
    from penstock.spark.pipeline.definition.file import read_pipeline

    try:
        return read_pipeline(file)
    except OSError as error:
        raise BadFile(f"{file}: {error.strerror or error}") from None


def read_pipeline_file(file: str, json: bool) -> Pipeline:
    """A pipeline to look at, not to run: its SQL and its servers are not checked."""
    pipeline, problems = _read(file)
    if pipeline is not None:
        from penstock.spark.pipeline.definition.rules import rule_problems

        problems = [*problems, *rule_problems(pipeline)]
    if pipeline is None or problems:
        _refuse(problems, json, "correct the file first")
    need_spark()
    return pipeline


def _load(file: str, json: bool, offline: bool) -> Pipeline:
    """A pipeline without the problems that can be found before Spark is imported."""
    pipeline, problems = _read(file)
    if pipeline is not None:
        from penstock.spark.pipeline.definition.rules import rule_problems

        problems = [*problems, *rule_problems(pipeline)]
    # A file with a mistake is reported even if its server does not answer for a long time.
    if pipeline is not None and not problems and not offline:
        from penstock.spark.pipeline.server_check import server_problems

        problems = server_problems(pipeline)
    if pipeline is None or problems:
        _refuse(problems, json, "types and SQL are checked once there are none of these")
    need_spark()
    return pipeline


def _refuse(problems: list[Problem], json: bool, note: str = "nothing was run") -> NoReturn:
    """Print the problems to stdout, and their number with a note to stderr."""
    output = Stdout()
    problems = sorted(set(problems))
    if json:
        listed = [{"line": one.line, "text": one.text} for one in problems]
        output.line(json_line({"file": problems[0].file, "problems": listed}))
    else:
        for problem in problems:
            output.line(harmless(str(problem)))
        output.flush()
        say(f"{len(problems)} problem{'s' if len(problems) > 1 else ''}; {note}")
    raise typer.Exit(BAD_FILE)


def _settings(pairs: list[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name.strip() and equals):
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="'--conf'")
        settings[name.strip()] = value.strip()
    return settings


@contextmanager
def _display(output: Stdout, json: bool, name: str) -> Iterator[Display]:
    display: Display = NoDisplay()
    if json:
        display = BatchLines(output)
    elif sys.stderr.isatty():
        display = LiveTable(name)
    with display:
        yield display


@contextmanager
def _metrics(pipeline: Pipeline, port: int | None, bind: str) -> Iterator[PipelineMetrics | None]:
    """What counts the batches for Prometheus; None without a port."""
    if port is None:
        yield None
        return
    from penstock.cli.pipeline_metrics import LagWatch, PipelineMetrics
    from penstock.spark.connection import QUICK
    from penstock.spark.pipeline.progress import Metrics
    from penstock.spark.source.options import parse_options

    options = parse_options(pipeline.source.options)
    server = Metrics(options.place, "", "", QUICK)
    lags = LagWatch(server.lag_or_none, partial(server.end_or_none, options), server.close)
    try:
        made = PipelineMetrics(pipeline.name, port, bind, lags)
    except ConfigError as error:
        raise Failure(str(error)) from None
    with made:
        say(f"metrics: http://{bind}:{made.port}/metrics")
        yield made


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set. A second Ctrl-C raises KeyboardInterrupt."""
    stop = threading.Event()

    def ask(number: int, _frame: object) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show_summary(summary: Summary, pipeline: Pipeline, output: Stdout) -> None:
    rows = []
    for name, one in summary.outputs.items():
        numbers = (one.batches, one.read, one.rows, one.late, one.lag)
        rows.append((name, *(NONE if number is None else f"{number:,}" for number in numbers)))
    output.table(COLUMNS, rows)
    pending = "" if summary.pending is None else f", {summary.pending:,} pending"
    trimmed = f", {summary.trimmed:,} trimmed" if summary.trimmed else ""
    dropped = sum(one.duplicates for one in summary.outputs.values())
    duplicates = f", {dropped:,} duplicates" if dropped else ""
    output.line(
        f"{summary.seconds:.1f} s{pending}{trimmed}{duplicates}; lake: {pipeline.archive.path}"
    )
