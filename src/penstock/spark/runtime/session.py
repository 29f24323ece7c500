"""A local session that is quiet and quick to start, for the command line and for tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.runtime.java import provide_java
from penstock.spark.runtime.spark_home import provide_home
from penstock.spark.source.data_source import register

MASTER_DEFAULT = "local[*]"
LOG_LEVELS = ("ALL", "DEBUG", "ERROR", "FATAL", "INFO", "OFF", "TRACE", "WARN")

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",  # ids and lake are in UTC; what is shown should be too
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def build_session(
    name: str = "penstock",
    master: str | None = None,
    log_level: str = "ERROR",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session that knows the source "penstock", on this machine unless a master is named."""
    if log_level.upper() not in LOG_LEVELS:
        raise ValueError(f"log level {log_level!r}; allowed are {', '.join(LOG_LEVELS)}")
    provide_java()
    is_local = (master or MASTER_DEFAULT).startswith("local")
    # Workers run the Python of this process, which has penstock; on a cluster its nodes may have their own.
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if is_local and not (master or "").startswith(
        "local-cluster"
    ):  # its executors log into SPARK_HOME
        provide_home()
    builder = SparkSession.builder.appName(name)
    chosen = {**_QUIET, "spark.log.level": log_level.upper(), **(settings or {})}
    builder = builder.master(master or MASTER_DEFAULT)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    _hush(spark)
    register(spark)
    return spark


def _hush(spark: SparkSession) -> None:
    """A Java that ends while it reports a metric is no news: Spark would print a traceback on stderr."""
    server: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda _request, _address: None
