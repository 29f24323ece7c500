"""Builds a quiet Spark session that starts quickly, for the command line, scripts and tests."""

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
    "spark.sql.session.timeZone": "UTC",  # like ids and the lake
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The compiled code of queries. One pipeline has about 80 pieces, so Spark's 100 are too few for two of
    # them, or for one with more outputs: each batch would compile again.
    "spark.sql.codegen.cache.maxEntries": "1000",
}


def build_session(
    name: str = "penstock",
    master: str | None = None,
    log_level: str = "ERROR",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session with the source "penstock" registered, on this machine unless `master` is set."""
    if log_level.upper() not in LOG_LEVELS:
        raise ValueError(f"log level {log_level!r}; allowed are {', '.join(LOG_LEVELS)}")
    provide_java()
    is_local = (master or MASTER_DEFAULT).startswith("local")
    # Local workers run the Python of this process, which has penstock. Nodes of a cluster have their own.
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Executors of a local-cluster write their logs to SPARK_HOME.
    if is_local and not (master or "").startswith("local-cluster"):
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
    """Suppress the traceback that Spark prints if Java ends while it reports a metric."""
    server: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda _request, _address: None
