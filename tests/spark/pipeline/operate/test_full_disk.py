"""A pipeline whose disk or server is full says so on one line, and continues when there is space again."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline import test_formats
from tests.spark.pipeline.test_run import TEXT, accounted, add, pipeline_of
from tests.support.campaign import cells

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.lake.formats import DELTA, ICEBERG, PARQUET
from penstock.spark.pipeline.run import PipelineFailed, run_pipeline

__all__ = ["pipeline_of"]  # the fixture

MEGABYTE = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(words, check=False).returncode:
        pytest.skip("no file system can be mounted: that takes root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("form", cells([PARQUET, DELTA, ICEBERG]))
def test_a_full_disk_is_one_line_and_the_pipeline_continues_after_it(
    spark: Any, penstock: Broker, pipeline_of: Any, small_disk: Path, form: str
) -> None:
    text = TEXT.replace('path = "lake"', f'path = "{small_disk}/lake"\nformat = "{form}"')
    add(penstock, 0)
    run_pipeline(pipeline_of(penstock, text), spark, once=True)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - MEGABYTE))
    for minute in range(1, 9):
        add(penstock, minute, note=secrets.token_hex(MEGABYTE // 4))
    with pytest.raises(PipelineFailed) as caught:
        run_pipeline(pipeline_of(penstock, text), spark, once=True)
    assert caught.value.output == "bronze"
    assert "No space left on device" in str(caught.value)
    assert "\n" not in str(caught.value)
    filler.unlink()
    run_pipeline(pipeline_of(penstock, text), spark, once=True)
    if form == PARQUET:
        assert accounted(small_disk / "lake", penstock) == (9, 9, 0)
    else:
        assert test_formats.accounted(spark, small_disk, form, penstock) == (9, 9, 0)
        attempts = [*small_disk.glob("lake/bronze/data/*")]
        assert len(attempts) == 2, "nothing of the attempt that failed"


def test_a_server_without_memory_is_one_line_and_the_pipeline_continues_after_it(
    spark: Any, server: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    pipeline = pipeline_of(server)
    add(server, 0)
    add(server, 0, qty="x")
    run_pipeline(pipeline, spark, once=True)
    add(server, 1)
    add(server, 1, qty="x")
    server.client.config_set("maxmemory", "1")
    try:
        with pytest.raises(PipelineFailed) as caught:
            run_pipeline(pipeline, spark, once=True)
    finally:
        server.client.config_set("maxmemory", "0")
    assert caught.value.output == "reject"
    assert "command not allowed when used memory" in str(caught.value)
    assert "\n" not in str(caught.value)
    run_pipeline(pipeline, spark, once=True)
    assert accounted(tmp_path / "lake", server) == (4, 2, 2)
