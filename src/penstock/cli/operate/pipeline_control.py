"""`penstock pipeline status`, `stop` and `reset`.

A lake on a local disk is read without Spark's Java. For other storage a session is started.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.commands.pipeline import PipelineFile, read_pipeline_file
from penstock.cli.connect import Json
from penstock.cli.spark_session import quiet_session
from penstock.cli.terminal.outcome import Failure, example
from penstock.cli.terminal.output import Stdout, TableColumn
from penstock.errors import PenstockError
from penstock.human.show import harmless, json_line

if TYPE_CHECKING:
    from penstock.spark.lake.local_files import TextFiles
    from penstock.spark.pipeline.definition.file import Pipeline
    from penstock.spark.pipeline.operate.history import RunRecord
    from penstock.spark.pipeline.operate.resetting import ResetPlan
    from penstock.spark.pipeline.operate.status import OutputStatus, PipelineStatus

STATUS_EPILOG = example(
    "penstock pipeline status orders.toml",
    "penstock pipeline status orders.toml --runs 20",
    "penstock pipeline status orders.toml --json | jq '.outputs[] | {output, lag}'",
)
STOP_EPILOG = example(
    "penstock pipeline stop orders.toml",
    "penstock pipeline stop orders.toml --timeout 300",
)
RESET_EPILOG = example(
    "penstock pipeline reset orders.toml --output silver",
    "penstock pipeline reset orders.toml --yes          all outputs, without a question",
)
OUTPUTS = (
    TableColumn("output"),
    TableColumn("position"),
    TableColumn("rows", numeric=True),
    TableColumn("batch", numeric=True),
    TableColumn("last batch"),
    TableColumn("lag", numeric=True),
)
RUNS = (
    TableColumn("start"),
    TableColumn("end"),
    TableColumn("outcome"),
    TableColumn("batches", numeric=True),
    TableColumn("rows", numeric=True),
    TableColumn("error"),
)
NONE = "-"
STREAMS_SHOWN_MAX = 3


def status(
    file: PipelineFile,
    runs: Annotated[
        int, typer.Option(metavar="N", min=0, max=50, help="How many of the last runs to show.")
    ] = 5,
    json: Json = False,
) -> None:
    """Show whether a pipeline runs, how far its outputs are, and its last runs.

    Rows are those of the current run, or of the last one. The lag is counted now; it is unknown if the server
    cannot be reached. A pipeline on storage without locks (hdfs, s3a) is running if its last run has no end.
    """
    pipeline = read_pipeline_file(file, json)
    from penstock.spark.pipeline.operate.status import status_of

    with _files(pipeline) as files:
        found = status_of(pipeline, files, runs)
    output = Stdout()
    if json:
        output.line(json_line(found.to_json()))
        return
    output.line(harmless(_headline(found)))
    output.table(OUTPUTS, [_output_row(one) for one in found.outputs])
    if runs and found.runs:
        output.line("")
        output.table(RUNS, [_run_row(one) for one in found.runs[:runs]])


def stop(
    file: PipelineFile,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="How long to wait for the end.")
    ] = 120,
) -> None:
    """Ask a running pipeline to stop, and wait until it has.

    The request is a file in the lake, so this works from every machine that sees the lake. The pipeline ends
    as with SIGTERM; the next run continues. The exit code is 1 if it does not run, or does not stop in time.
    """
    pipeline = read_pipeline_file(file, False)
    from penstock.spark.pipeline.operate.stopping import NotStopped, stop_pipeline

    with _files(pipeline) as files:
        try:
            run = stop_pipeline(pipeline, files, timeout)
        except NotStopped as error:
            raise Failure(str(error)) from None
    Stdout().line(harmless(f"{pipeline.name}: {run.outcome} at {run.end}, {_rows(run):,} rows"))


def reset(
    file: PipelineFile,
    output: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this output. The default is all.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Forget one output, or all of them: the next run makes them again.

    Deletes tables, checkpoints and states in the lake, and lists them first. The source is not touched;
    entries that it no longer has are not written again. Output streams and tables of databases keep what they
    have. With an aggregate, its outputs are forgotten too. Refused while the pipeline runs.
    """
    pipeline = read_pipeline_file(file, False)
    from penstock.spark.pipeline.operate.resetting import ResetRefused, plan_reset
    from penstock.spark.pipeline.operate.resetting import reset as delete

    with _files(pipeline) as files:
        try:
            if not yes:
                _refuse_while_running(pipeline)
            plan = plan_reset(pipeline, files, output)
            _show(plan)
            if not yes and not typer.confirm("Delete these?", err=True):
                raise Failure("nothing was deleted")
            delete(pipeline, files, plan)
        except ResetRefused as error:
            raise Failure(str(error)) from None
    count = len(plan.paths)
    Stdout().line(f"{count} {'path' if count == 1 else 'paths'} deleted")


def _refuse_while_running(pipeline: Pipeline) -> None:
    """Before the question: an answer takes time. The reset itself takes the lock."""
    from penstock.spark.pipeline.operate.resetting import ResetRefused
    from penstock.spark.pipeline.operate.status import is_running_or_none

    if is_running_or_none(pipeline):
        raise ResetRefused(
            f"{pipeline.name} is running: stop it first, with penstock pipeline stop"
        )


def _show(plan: ResetPlan) -> None:
    output = Stdout()
    for path in plan.paths:
        output.line(harmless(f"delete {path}"))
    for name in plan.streams:
        output.line(harmless(f"forget the position of {name}"))
    for note in plan.notes:
        output.line(harmless(f"note: {note}"))
    output.flush()


@contextmanager
def _files(pipeline: Pipeline) -> Iterator[TextFiles]:
    """The files of the lake. Errors that happen while they are used become a Failure."""
    from penstock.spark.lake.local_files import LocalFiles, is_local

    if is_local(pipeline.archive.path):
        try:
            yield LocalFiles()
        except (PenstockError, OSError) as error:
            raise Failure(str(error)) from None
        return
    from penstock.spark.lake.files import LakeFiles

    with quiet_session(pipeline.name, "local[1]", {}) as spark:
        yield LakeFiles(spark)


def _headline(found: PipelineStatus) -> str:
    last = found.runs[0] if found.runs else None
    if found.is_running and last is not None:
        return f"{found.pipeline}: running since {last.start}, process {last.pid} on {last.host}"
    if last is None:
        state = "running" if found.is_running else "not running"
        return f"{found.pipeline}: {state}, and there is no record of a run"
    if found.is_running is None:
        return f"{found.pipeline}: last run {last.outcome} ({found.lake} has no locks)"
    error = f": {last.error}" if last.error else ""
    return f"{found.pipeline}: not running; the last run {_how(last)}{error}"


def _how(run: RunRecord) -> str:
    return f"was killed, started {run.start}" if not run.end else f"{run.outcome} at {run.end}"


def _output_row(one: OutputStatus) -> tuple[str, ...]:
    position = one.position or {}
    shown = [f"{name} {at}" for name, at in list(position.items())[:STREAMS_SHOWN_MAX]]
    if len(position) > STREAMS_SHOWN_MAX:
        shown.append(f"and {len(position) - STREAMS_SHOWN_MAX} more")
    return (
        harmless(one.output),
        harmless(", ".join(shown)) or NONE,
        _number(one.rows),
        _number(one.batch),
        one.at or NONE,
        _number(one.lag),
    )


def _run_row(one: RunRecord) -> tuple[str, ...]:
    batches = sum(numbers["batches"] for numbers in one.outputs.values())
    error = one.error or NONE
    return (
        one.start,
        one.end or NONE,
        one.outcome,
        f"{batches:,}",
        f"{_rows(one):,}",
        harmless(error),
    )


def _rows(run: RunRecord) -> int:
    return sum(numbers["rows"] for numbers in run.outputs.values())


def _number(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"
