"""Finds the SQL of a file that cannot be evaluated for a row, after a batch has failed.

Most SQL gives null for values that do not fit, so the row is rejected. Some functions fail instead, such as
url_decode or element_at with the index 0. Spark's error does not say which expression it was. So the rows are
kept, and each expression is evaluated alone over them, until one fails:

    [columns]       each with those above it, which it may use
    [valid]
    delete_when     of [[table]], over valid rows
    measures        of the aggregate that has failed, over valid rows

A measure may fail only for a whole window, whose other rows came in earlier batches. It is named if nothing
else fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.errors import PenstockError
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.toml_lines import KeyPath
from penstock.spark.pipeline.definition.toml_table import Problem
from penstock.spark.pipeline.outputs import PipelineOutput
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.rows.lookups import table_of
from penstock.spark.runtime.causes import cause_of

# A value that does not fit (22), or a result that is too large (54).
_CAUSED_BY_VALUES = re.compile("SQLSTATE: (22|54)")
_REMEDY = "use a function that gives null for such a value, as the try_ functions do"

Read = Callable[[], DataFrame]
Evaluated = Iterator[tuple[KeyPath, DataFrame]]


def failed_sql(
    pipeline: Pipeline, error: Exception, entries: Read, output: PipelineOutput | None = None
) -> Problem | None:
    """The first expression that fails for one of the entries, with its line; None if there is none.

    `entries` are as the source gives them. `output` is the table of an aggregate that has failed.
    """

    def read() -> DataFrame:
        found = entries()
        plain = replace(pipeline, columns={}, lookups=())
        return frames.rows_of(found, plain, frames.members_of(found.sparkSession, pipeline))

    def evaluated(rows: DataFrame) -> Evaluated:
        get = partial(table_of, rows.sparkSession)
        names = list(pipeline.columns)
        for count, name in enumerate(names, 1):
            known = replace(pipeline, columns={one: pipeline.columns[one] for one in names[:count]})
            yield ("columns", name), frames.with_columns(rows, known, get).select(F.col(name))
        whole = frames.with_columns(rows, pipeline, get)
        for name, sql in pipeline.valid.items():
            yield ("valid", name), whole.select(F.expr(sql))
        valid = frames.silver(whole, pipeline)
        for at, table in enumerate(pipeline.tables):
            if table.delete_when:
                yield ("table", at, "delete_when"), valid.select(F.expr(table.delete_when))
        yield from _measures(output, valid)

    return _first_failing(pipeline, error, read, evaluated, output)


def failed_measure(
    pipeline: Pipeline, error: Exception, silver: Read, output: PipelineOutput
) -> Problem | None:
    """The measure of an aggregate that fails for rows of silver, with its line."""
    return _first_failing(pipeline, error, silver, partial(_measures, output), output)


def _measures(output: PipelineOutput | None, valid: DataFrame) -> Evaluated:
    aggregate = None if output is None else output.aggregate
    if output is None or aggregate is None:
        return
    for name, sql in aggregate.measures.items():
        made = frames.windows(valid, replace(aggregate, measures={name: sql}))
        yield (*output.path, "measures", name), made


def _first_failing(
    pipeline: Pipeline,
    error: Exception,
    read: Read,
    evaluated: Callable[[DataFrame], Evaluated],
    output: PipelineOutput | None,
) -> Problem | None:
    if not _is_of_values(error):
        return None
    # If the rows cannot be read again, the error itself is reported.
    with suppress(PenstockError, OSError, PySparkException, Py4JError):
        rows = read().persist(StorageLevel.MEMORY_AND_DISK)
        try:
            for path, made in evaluated(rows):
                found = _failure_or_none(made)
                if found is not None:
                    return _problem(pipeline, path, found) if _is_of_values(found) else None
        finally:
            rows.unpersist()
        if output is not None and output.aggregate is not None:
            return _problem(pipeline, (*output.path, "measures"), error)
    return None


def _failure_or_none(rows: DataFrame) -> Exception | None:
    try:
        rows.write.format("noop").mode("overwrite").save()
    except (PySparkException, Py4JError) as error:
        return error
    return None


def _is_of_values(error: Exception) -> bool:
    return _CAUSED_BY_VALUES.search(str(error)) is not None


def _problem(pipeline: Pipeline, path: KeyPath, error: Exception) -> Problem:
    return pipeline.problem(path, f"{path[-1]} fails for a row: {cause_of(error)}; {_REMEDY}")
