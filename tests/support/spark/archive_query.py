"""Archives a stream, here or in a process that can be killed: `python -m ... URL FOLDER`."""

from __future__ import annotations

import sys
from typing import Any

from penstock.spark import archive_writer, build_session

SETTINGS = {"spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "2"}


def archive_all(spark: Any, url: str, folder: str) -> None:
    """Archive the existing entries of the stream s into FOLDER/lake, in small batches."""
    frame = (
        spark.readStream.format("penstock")
        .options(url=url, stream="s", startingOffsets="earliest", maxEntriesPerTrigger=500)
        .schema("_id string, _timestamp timestamp, v int")
        .load()
    )
    query = (
        frame.writeStream.foreachBatch(archive_writer(f"{folder}/lake"))
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    archive_all(build_session("archive", "local[2]", "OFF", SETTINGS), *sys.argv[1:])
