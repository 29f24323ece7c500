"""Finds problems of sections [[output]] before a run: functions, JDBC drivers, databases and their tables."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.spark.lake.files import LakeFiles
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import CHECKPOINTS, lake_path
from penstock.spark.pipeline.definition.toml_table import Problem
from penstock.spark.pipeline.joined_state import JoinedStates, ids_of_section
from penstock.spark.pipeline.outputs import outputs_of
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.targets.calls import load_function
from penstock.spark.pipeline.targets.jdbc import JdbcTarget
from penstock.spark.pipeline.targets.output_error import OutputError


def target_problems(pipeline: Pipeline, spark: SparkSession, is_offline: bool) -> list[Problem]:
    """Functions that cannot be imported, and databases that cannot be written to."""
    found = []
    states = JoinedStates(LakeFiles(spark), lake_path(pipeline, CHECKPOINTS))
    for output in outputs_of(pipeline):
        section = output.section
        if section is None:
            continue
        if section.call:
            try:
                load_function(pipeline, section)
            except OutputError as error:
                found.append(pipeline.problem((*output.path, "call"), f"{section.call}: {error}"))
        elif not is_offline:
            rows = frames.no_rows(spark, pipeline)
            if output.aggregate is None:
                made = frames.silver(rows, pipeline)
            else:
                made = frames.aggregate(rows, pipeline, output.aggregate)
            target = JdbcTarget(spark, section)
            own = ids_of_section(states.read(output.name))
            problem = target.problem_or_none(made) or target.owner_problem_or_none(own)
            if problem is not None:
                found.append(pipeline.problem((*output.path, problem[0]), problem[1]))
    return found
