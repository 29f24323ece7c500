"""Batch reads of files through Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, fill
from tests.support.servers.redis_server import redis_program_or_none, running_redis

pytest.importorskip("pyspark", reason=NO_PYSPARK)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A snapshot of Redis with a stream, a group and pending entries."""
    if redis_program_or_none() is None:
        pytest.skip("no redis-server on PATH")
    with running_redis("--dir", str(tmp_path)) as server:
        fill(server.client, "s", 5)
        server.client.xgroup_create("s", "g", "0")
        server.client.xreadgroup("g", "c", {"s": ">"}, count=2)
        server.client.save()
    return tmp_path / "dump.rdb"


def test_entries_groups_and_pending_entries_are_read_from_a_snapshot(
    spark: Any, dump: Path
) -> None:
    def read(**options: str) -> Any:
        return spark.read.format("penstock").options(path=str(dump.parent / "*.rdb"), **options)

    assert [row.v for row in read().schema("v int").load().collect()] == [0, 1, 2, 3, 4]
    assert [row.fields for row in read(stream="s").load().collect()][1] == {"v": "1"}
    assert read(stream="t*").load().collect() == []
    assert [row.consumer for row in read(what="pending").load().collect()] == ["c", "c"]
    assert [(row.group, row.pending) for row in read(what="groups").load().collect()] == [("g", 2)]


def test_a_missing_path_is_named(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"option path: .*nothing"):
        spark.read.format("penstock").option("path", str(tmp_path / "nothing*")).load().collect()


def test_a_directory_without_data_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="holds neither a log nor a snapshot of a server"):
        spark.read.format("penstock").option("path", str(tmp_path)).load().collect()
