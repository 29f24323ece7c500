"""Chooses the Python that Spark starts for its workers.

Spark runs a data source in Python workers, and also plans a query in one. It starts them with PYSPARK_PYTHON,
or with the `python3` on PATH if that variable is not set. In a virtual environment that is not activated,
`python3` is the system's Python, which does not have penstock: workers fail with ModuleNotFoundError.

On a local master the driver's own Python is right, so `use_driver_python` sets it. On a cluster the nodes may
keep Python elsewhere, so it only warns.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from pyspark.sql import SparkSession

SETTINGS = ("spark.pyspark.python", "spark.pyspark.driver.python")


class WorkerPythonUnknown(UserWarning):
    """Spark's workers run on other machines, and nothing says which Python they start."""


def use_driver_python(spark: SparkSession) -> None:
    """Make the workers of a local session run this Python, unless the user has chosen another one."""
    context: Any = getattr(spark, "sparkContext", None)  # Spark Connect has none
    if context is None or os.environ.get("PYSPARK_PYTHON") or _is_set(context):
        return
    if context.master.startswith("local"):
        # The session has already read PYSPARK_PYTHON. Sources registered from now on use this attribute.
        context.pythonExec = sys.executable
        return
    warnings.warn(
        f"PYSPARK_PYTHON is not set: the driver and the executors of {context.master} start the python3 on"
        " their PATH, which must have penstock installed. Before you build the session, set PYSPARK_PYTHON"
        " to a Python that has it on every node",
        WorkerPythonUnknown,
        stacklevel=3,
    )


def _is_set(context: Any) -> bool:
    conf = context.getConf()
    return any(conf.contains(name) for name in SETTINGS)
