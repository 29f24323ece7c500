"""Tasks that Spark retries, in a separate session because local[2] does not retry."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker

ROWS = 20_000
PROGRAM = f"""
import sys

from pyspark import TaskContext
from penstock.spark import build_session

def failing(batches):
    for number, batch in enumerate(batches):
        yield batch
        if number == 3 and TaskContext.get().attemptNumber() == 0:
            raise OSError("the first attempt fails")

settings = {{"spark.sql.execution.arrow.maxRecordsPerBatch": "1000", "spark.driver.memory": "512m"}}
spark = build_session("retry", "local[2,3]", "OFF", settings)
frame = spark.range({ROWS}, numPartitions=3).selectExpr("id as v").mapInArrow(failing, "v long")
options = {{"url": sys.argv[1], "stream": "out"}}
frame.write.format("penstock").mode("append").options(**options).save()
"""


def test_only_the_attempt_that_succeeds_is_appended(penstock: Broker) -> None:
    pytest.importorskip("pyspark", reason=NO_PYSPARK)
    command = [sys.executable, "-c", PROGRAM, penstock.options["url"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = [int(fields[b"v"]) for _, fields in penstock.client.xrange("out")]
    assert found == list(range(ROWS))
    for key in penstock.client.scan_iter(match="penstock:staging:*"):
        assert penstock.client.ttl(key) > 0
