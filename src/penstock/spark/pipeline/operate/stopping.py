"""Asks a running pipeline to stop, by a file in the lake.

The run looks for the file once a second, finishes as with SIGTERM, and notes its end in the history. This
works from another machine, if both see the lake.
"""

from __future__ import annotations

import time

from penstock.errors import PenstockError
from penstock.spark.lake.local_files import TextFiles
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import RUNS, lake_path
from penstock.spark.pipeline.operate.history import RunRecord, ask_to_stop, runs_of
from penstock.spark.pipeline.operate.status import is_running_or_none

LOOK_SECONDS = 0.2


class NotStopped(PenstockError):
    """The pipeline does not run, or did not stop in time."""


def stop_pipeline(pipeline: Pipeline, files: TextFiles, seconds_max: float) -> RunRecord:
    """Ask the running pipeline to stop, and wait for its end. Returns the run. Raises: NotStopped."""
    directory = lake_path(pipeline, RUNS)
    newest = runs_of(files, directory, 1)
    if is_running_or_none(pipeline) is False or not newest:
        raise NotStopped(f"{pipeline.name} is not running")
    run = newest[0]
    if run.outcome:
        if is_running_or_none(pipeline) is None:
            raise NotStopped(f"{pipeline.name} is not running: its last run has {run.outcome}")
        raise NotStopped(f"{pipeline.archive.path} is in use, but not by a run: try again")
    ask_to_stop(files, directory, run)
    until = time.monotonic() + seconds_max
    while time.monotonic() < until:
        now = next((one for one in runs_of(files, directory) if one.name == run.name), run)
        if now.outcome and not is_running_or_none(pipeline):
            return now
        if is_running_or_none(pipeline) is False:
            raise NotStopped(f"{pipeline.name} ended without a record: it was killed")
        time.sleep(LOOK_SECONDS)
    raise NotStopped(
        f"{pipeline.name} is asked to stop, but still runs after {seconds_max:g} s: process {run.pid} on"
        f" {run.host}"
    )
