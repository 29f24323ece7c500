"""Finds the SQL of a file that cannot be evaluated for a row, after a batch of `main` has failed.

Most SQL gives null for values that do not fit, so the row is rejected. Some functions fail instead, such as
url_decode or element_at with the index 0. Spark's error does not say which expression it was. So each one is
evaluated alone over the rows of the batch, until one fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.errors import PenstockError
from penstock.spark.lake.files import LakeFiles
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.toml_lines import KeyPath
from penstock.spark.pipeline.definition.toml_table import Problem
from penstock.spark.pipeline.positions import Checkpoint, after, ids_of
from penstock.spark.pipeline.rows import frames
from penstock.spark.runtime.causes import cause_of

_CAUSED_BY_VALUES = re.compile(
    "SQLSTATE: (22|54)"
)  # a value that does not fit, or a result that is too large
_REMEDY = "use a function that gives null for such a value, as the try_ functions do"


def failed_sql(
    pipeline: Pipeline, spark: SparkSession, checkpoint: str, batch: int, error: Exception
) -> Problem | None:
    """The first expression that fails for a row of the batch, with its line; None if there is none."""
    if not _CAUSED_BY_VALUES.search(str(error)):
        return None
    with suppress(PenstockError, OSError):  # the source cannot be read: report the error itself
        log = Checkpoint(LakeFiles(spark), checkpoint)
        before, planned = log.batch(batch - 1), log.batch(batch)
        if planned is not None:
            since = {} if before is None else after(ids_of(before.end))
            for path, rows in _expressions(pipeline, spark, since, ids_of(planned.end)):
                try:
                    rows.write.format("noop").mode("overwrite").save()
                except (PySparkException, Py4JError) as found:
                    if not _CAUSED_BY_VALUES.search(str(found)):
                        return None
                    text = f"{path[-1]} fails for a row: {cause_of(found)}; {_REMEDY}"
                    return pipeline.problem(path, text)
    return None


def _expressions(
    pipeline: Pipeline, spark: SparkSession, since: dict[str, str], until: dict[str, str]
) -> Iterator[tuple[KeyPath, DataFrame]]:
    """Each column and each condition with a DataFrame that evaluates it. A column may use those before it."""
    names = list(pipeline.columns)
    for count, name in enumerate(names, 1):
        known = {one: pipeline.columns[one] for one in names[:count]}
        rows = frames.stored_rows(spark, replace(pipeline, columns=known), since, until)
        yield ("columns", name), rows.select(F.col(name))
    rows = frames.stored_rows(spark, pipeline, since, until)
    for name, sql in pipeline.valid.items():
        yield ("valid", name), rows.select(F.expr(sql))
