"""A session with two executor processes, run by test_executors.py: a process has one master for all its life.

    python -m tests.spark.on_executors FOLDER   < {"name": {options of the source}, ...}

It prints what it found as JSON. Everything that Spark writes down (event log, logs of the driver and of the
executors, plans, errors) is left in FOLDER, for the test to look for what must not be there.
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
        "spark.eventLog.compress": "false",  # what is compressed cannot be searched
        "spark.eventLog.dir": events.as_uri(),
        "spark.driver.extraJavaOptions": quick,
        "spark.executor.extraJavaOptions": quick,
        "spark.executor.memory": "512m",
        # Both executors get work, however fast the first one is there.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.task.maxFailures": "1",
    }


def spark_home(folder: Path) -> Path:
    """Spark's own folder, by links: executors write their logs to `work` in there, and nowhere else."""
    folder.mkdir()
    for part in ("bin", "jars", "python"):
        (folder / part).symlink_to(Path(pyspark.__file__).parent / part)
    return folder


def found_in(spark: Any, options: dict[str, str], folder: Path) -> dict[str, Any]:
    """Rows of a batch and of a query, what explain shows, and the text of an error in a task."""
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
