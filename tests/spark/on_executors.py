"""Runs a session with two executor processes, for test_executors.py. A process cannot change its master.

    python -m tests.spark.on_executors FOLDER   < {"name": {options of the source}, ...}

It prints its results as JSON. Everything that Spark writes (event log, logs of the driver and the executors,
plans, errors) stays in FOLDER, where the test searches for passwords.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pyspark

from penstock.spark.runtime.session import build_session

MASTER = "local-cluster[2,1,1024]"
SCHEMA = "_id string, _stream string, v int"


def settings(folder: Path) -> dict[str, str]:
    events = folder / "events"
    events.mkdir()
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",  # so that it can be searched
        "spark.eventLog.dir": events.as_uri(),
        "spark.driver.extraJavaOptions": quick,
        "spark.executor.extraJavaOptions": quick,
        "spark.executor.memory": "512m",
        # Wait for both executors, so that both get tasks.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.task.maxFailures": "1",
    }


def spark_home(folder: Path) -> Path:
    """A SPARK_HOME of links. Executors write their logs to its directory `work`."""
    folder.mkdir()
    for part in ("bin", "jars", "python"):
        (folder / part).symlink_to(Path(pyspark.__file__).parent / part)
    return folder


def found_in(spark: Any, options: dict[str, str], folder: Path) -> dict[str, Any]:
    """The rows of a batch and of a query, the output of explain, and the error of a task."""
    frame = spark.read.format("penstock").options(**options).schema(SCHEMA).load()
    lake = folder / "lake"
    query = (
        spark.readStream.format("penstock")
        .options(**options, startingOffsets="earliest", maxEntriesPerTrigger=300)
        .schema(SCHEMA)
        .load()
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(lake))
    )
    query.awaitTermination()
    strict = frame.sparkSession.read.format("penstock").options(**options, onParseError="fail")
    try:
        strict.schema("v boolean").load().collect()
        error = ""
    except Exception as failed:  # noqa: BLE001  its text is what is wanted
        error = str(failed)
    return {
        "batch": [tuple(row) for row in frame.collect()],
        "query": [tuple(row) for row in spark.read.schema(SCHEMA).parquet(str(lake)).collect()],
        "plan": frame._jdf.queryExecution().toString(),
        "error": error,
    }


def main() -> None:
    folder = Path(sys.argv[1])
    os.environ["SPARK_HOME"] = str(spark_home(folder / "home"))
    places = json.load(sys.stdin)
    spark = build_session("executors", MASTER, "INFO", settings(folder))
    found = {}
    for name, options in places.items():
        (folder / name).mkdir()
        found[name] = found_in(spark, options, folder / name)
        (folder / name / "plan.txt").write_text(found[name].pop("plan"))
        (folder / name / "error.txt").write_text(found[name].pop("error"))
    spark.stop()
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
