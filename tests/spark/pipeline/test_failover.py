"""A pipeline runs while the primary of its stream is killed and Sentinels choose another one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK
from tests.support.failover.campaign import running_column
from tests.support.failover.clients import GROUP, NEAR, Client
from tests.support.failover.columns import ACK, Column
from tests.support.replication.sentinels import PENSTOCK
from tests.support.servers.programs import REDIS_7_0

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.pipeline.definition.file import Pipeline, PipelineFileError, load_pipeline
from penstock.spark.pipeline.progress import BatchRecord
from penstock.spark.pipeline.run import PipelineFailed, run_pipeline

DEADLINE_SECONDS = 300
STRICT_TRIO = Column(PENSTOCK, ACK, "trio")
TEXT = """
[source]
url = "{url}"
stream = "orders"
group = "lake"

[schema]
token = "string"

[valid]
not_seven = "token not like '%7'"

[archive]
path = "lake"

[reject]
stream = "rejected"
"""


class Supervised(threading.Thread):
    """A pipeline that is started again when it fails, as systemd or Kubernetes does."""

    def __init__(self, pipeline: Pipeline, spark: Any) -> None:
        super().__init__(daemon=True)
        self._pipeline = pipeline
        self._spark = spark
        self._ends = threading.Event()
        self.rows = 0
        self.failures: list[str] = []

    def run(self) -> None:
        while not self._ends.is_set():
            try:
                run_pipeline(self._pipeline, self._spark, False, self._watch, self._ends)
            except (PipelineFailed, PipelineFileError) as error:
                self.failures.append(str(error))

    def stop(self) -> None:
        self._ends.set()
        self.join()

    def _watch(self, record: BatchRecord) -> None:
        if record.output == "bronze":
            self.rows += record.rows

    def goes_on(self) -> None:
        """Wait until it has written more rows."""
        before = self.rows
        until = time.monotonic() + DEADLINE_SECONDS
        while self.rows == before:
            assert time.monotonic() < until, self.failures
            time.sleep(0.05)


@contextmanager
def running(*threads: Any) -> Iterator[None]:
    """Start threads, and stop them in reverse order."""
    for one in threads:
        one.start()
    try:
        yield
    finally:
        for one in reversed(threads):
            one.stop()


def test_every_entry_is_written_once_though_the_primary_is_killed(
    spark: Any, tmp_path: Path
) -> None:
    REDIS_7_0.need()
    with running_column(STRICT_TRIO, tmp_path) as group:
        file = tmp_path / "shop.toml"
        file.write_text(TEXT.replace("{url}", group.url))
        pipeline = load_pipeline(file)
        old = group.primary()
        with old.client() as client:
            client.xgroup_create("orders", GROUP, mkstream=True)
        producer = Client(group, NEAR, "orders", waits=False)
        supervised = Supervised(pipeline, spark)
        with running(supervised, producer):
            supervised.goes_on()
            old.server.kill()
            new = group.wait_for_primary_other_than(old)
            group.heal()
            supervised.goes_on()
        run_pipeline(pipeline, spark, once=True)
        with group.primary().client() as client:
            stream = {entry.decode(): fields[b"token"] for entry, fields in client.xrange("orders")}
            rejected = [fields[b"_source_id"].decode() for _, fields in client.xrange("rejected")]
        assert new is not old
    bronze = ids(spark, tmp_path / "lake" / "bronze")
    silver = ids(spark, tmp_path / "lake" / "silver")
    assert sorted(bronze) == sorted(stream), "every entry that is there, once"
    assert sorted(silver + rejected) == sorted(bronze), "valid or rejected, once"
    assert rejected
    told = {entry.decode(): token for token, entry in producer.acknowledged.items()}
    assert told.items() <= stream.items(), "every entry that was acknowledged"


def ids(spark: Any, folder: Path) -> list[str]:
    return [row._id for row in spark.read.parquet(str(folder)).select("_id").collect()]
