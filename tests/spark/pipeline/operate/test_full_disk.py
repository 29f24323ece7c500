"""A pipeline whose lake is on a full disk says so on one line, and continues when there is space again."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.test_run import TEXT, accounted, add, pipeline_of

pytest.importorskip("pyspark", reason=NO_PYSPARK)

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


def test_a_full_disk_is_one_line_and_the_pipeline_continues_after_it(
    spark: Any, penstock: Broker, pipeline_of: Any, small_disk: Path
) -> None:
    text = TEXT.replace('path = "lake"', f'path = "{small_disk}/lake"')
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
    assert accounted(spark, small_disk / "lake", penstock) == (9, 9, 0)
