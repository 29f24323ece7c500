"""penstock for Spark: the data source "penstock", the Parquet archive and pipelines.

    import penstock.spark
    penstock.spark.register(spark)
    spark.read.format("penstock").option("url", "redis://127.0.0.1:6379").option("stream", "orders").load()

pyspark is imported on first use, so options, offsets and plans work without it.

    source/        spark.read and spark.readStream
    sink/          df.write and df.writeStream
    lake/          the archive as Parquet
    pipeline/      pipelines from TOML files
    runtime/       Java, SPARK_HOME, sessions, workers, errors
    place          the servers that the options name
    connection     connections to servers, and which server has a stream
    option_reader  reads options and reports wrong ones
    replay         writes old entries to a stream again
    replay_parts   the position of a replay
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "register": "penstock.spark.source.data_source",
    "read_stream": "penstock.spark.source.data_source",
    "write_stream": "penstock.spark.source.data_source",
    "PenstockSource": "penstock.spark.source.data_source",
    "build_session": "penstock.spark.runtime.session",
    "archive_writer": "penstock.spark.lake.archive",
    "compact": "penstock.spark.lake.compaction",
    "trim_archived": "penstock.spark.lake.trimming",
    "load_pipeline": "penstock.spark.pipeline.definition.file",
    "run_pipeline": "penstock.spark.pipeline.run",
    "rebuild_pipeline": "penstock.spark.pipeline.run",
    "ProgressListener": "penstock.spark.pipeline.progress",
}

__all__ = [
    "PenstockSource",
    "ProgressListener",
    "archive_writer",
    "build_session",
    "compact",
    "load_pipeline",
    "read_stream",
    "rebuild_pipeline",
    "register",
    "run_pipeline",
    "trim_archived",
    "write_stream",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
