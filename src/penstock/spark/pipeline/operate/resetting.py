"""Forgets outputs of a pipeline, so that the next run makes them again from the entries that the source has.

Only files of the lake are deleted: tables, checkpoints and states. Output streams and the tables of databases
keep what they have, since others may use them; the notes say so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import uuid4

from penstock.errors import PenstockError
from penstock.spark.lake.local_files import TextFiles
from penstock.spark.lake.lock import held
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import CHECKPOINTS, lake_path
from penstock.spark.pipeline.joined_state import JoinedStates, ids_of_section
from penstock.spark.pipeline.outputs import STREAM_SUFFIX, PipelineOutput, outputs_of


class ResetRefused(PenstockError):
    """The output cannot be reset."""


@dataclass(slots=True)
class ResetPlan:
    """The paths that a reset deletes, the streams and sections that it forgets, and notes for the user."""

    paths: list[str] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def plan_reset(pipeline: Pipeline, files: TextFiles, name: str | None) -> ResetPlan:
    """What a reset of one output, or of all, deletes. Raises: ResetRefused."""
    outputs = outputs_of(pipeline)
    wanted = outputs if name is None else _named(outputs, name)
    plan = ResetPlan()
    checkpoints = lake_path(pipeline, CHECKPOINTS)
    if name is None:
        plan.paths += [f"{checkpoints}/{one}" for one in files.names(checkpoints)]
    for output in wanted:
        if output.folder:
            parent, _, last = output.folder.rpartition("/")
            plan.paths += [output.folder, f"{parent}/_{last}.tmp"]
        if name is not None:
            plan.paths += [output.former]
            states = [f"{output.name}.joined-", f"{output.name}.begun."]
            if output.stream and output.aggregate is None:
                plan.streams.append(output.name)
                del states[0]  # `reset` replaces it
            plan.paths += [
                f"{checkpoints}/{one}"
                for one in files.names(checkpoints)
                if one.startswith(tuple(states))
            ]
        if output.section is not None:
            plan.sections.append(output.name)
        plan.notes += _notes(output)
    main = {output.checkpoint for output in outputs if output.aggregate is None}
    kept = set() if name is None else main
    paths = dict.fromkeys(plan.paths)
    plan.paths = [one for one in paths if one not in kept and files.exists(one)]
    return plan


def reset(pipeline: Pipeline, files: TextFiles, plan: ResetPlan) -> None:
    """Delete what a plan lists. Raises: ResetRefused, if the pipeline runs."""
    checkpoints = lake_path(pipeline, CHECKPOINTS)
    busy = ResetRefused(f"{pipeline.name} is running: stop it first, with penstock pipeline stop")
    with held(checkpoints, busy):
        states = JoinedStates(files, checkpoints)
        replaced = {name: ids_of_section(states.read(name)) for name in plan.sections}
        for path in plan.paths:
            files.delete(path)
        for name in plan.streams:
            states.write(name, {"reset": uuid4().hex[:8]})
        for name, ids in replaced.items():
            states.write(name, {"replaced": ids})


def _named(outputs: list[PipelineOutput], name: str) -> list[PipelineOutput]:
    """The output, and those that are made of it."""
    found = next((one for one in outputs if one.name == name), None)
    if found is None:
        known = ", ".join(one.name for one in outputs)
        raise ResetRefused(f"there is no output {name}; there are {known}")
    if name.endswith(STREAM_SUFFIX):
        table = name.removesuffix(STREAM_SUFFIX)
        raise ResetRefused(f"{name} has the windows of {table}: reset {table}")
    if found.aggregate is None or not found.folder:
        return [found]
    return [one for one in outputs if one.checkpoint == found.checkpoint]


def _notes(output: PipelineOutput) -> list[str]:
    if output.stream:
        text = (
            f"the stream {output.stream} keeps its entries, and gets them again: delete it first if they"
            " must not be there twice"
        )
        return [text]
    section = output.section
    if section is not None and section.table:
        text = (
            f"the table {section.table} of {output.name} keeps its rows, and gets them again: empty it first"
            " if they must not be there twice"
        )
        return [text]
    if section is not None:
        return [f"{section.call} gets all rows again"]
    return []
