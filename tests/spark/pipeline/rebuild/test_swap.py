"""A swap of directories: all new or all old, at whichever step it is killed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("duckdb")

from penstock.spark.lake.files import temporary_of
from penstock.spark.pipeline.definition.file import Archive, Pipeline, Source
from penstock.spark.pipeline.rebuild.swap import Swap, new_of
from tests.support.spark.lake import Crash, FailingFiles

NAMES = ("silver", "gold/minute", "gold/fresh")


def pipeline_at(lake: Path) -> Pipeline:
    return Pipeline("shop", "shop.toml", Source({}), {}, {}, Archive(str(lake)))


def roots_of(lake: Path) -> list[str]:
    return [f"file:{lake}/{name}" for name in NAMES]


def contents(lake: Path) -> dict[str, str]:
    return {
        name: (lake / name / "file").read_text()
        for name in NAMES
        if (lake / name / "file").exists()
    }


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two directories and a new one, each with a new version."""
    for name, root in zip(NAMES, roots_of(tmp_path / "lake"), strict=True):
        for place, text in ((tmp_path / "lake" / name, "old"), (Path(new_of(root)[5:]), "new")):
            if text == "new" or name != "gold/fresh":
                place.mkdir(parents=True)
                (place / "file").write_text(text)
    return tmp_path / "lake"


def test_killed_at_any_step_it_is_undone_or_finished(
    spark: Any, lake: Path, tmp_path: Path
) -> None:
    old = contents(lake)
    assert old == {"silver": "old", "gold/minute": "old"}
    outcomes = []
    stop_at = 0
    while True:
        stop_at += 1
        place = tmp_path / f"stopped-{stop_at}" / "lake"
        shutil.copytree(lake, place)
        try:
            Swap(FailingFiles(spark, stop_at), pipeline_at(place)).commit(roots_of(place))
        except Crash:
            pass
        else:
            break
        again = Swap(FailingFiles(spark), pipeline_at(place))
        is_new = again.is_interrupted
        if is_new:
            again.finish()
        again.discard(roots_of(place))
        is_new = is_new or contents(place) != old
        assert contents(place) == (dict.fromkeys(NAMES, "new") if is_new else old), stop_at
        assert not again.is_interrupted
        assert not list(place.rglob("new")) + list(place.rglob("old"))
        outcomes.append(is_new)
    assert outcomes == sorted(outcomes)
    assert (outcomes[0], outcomes[-1]) == (False, True)
    assert stop_at > 10


def test_unfinished_batches_of_new_versions_are_deleted(spark: Any, lake: Path) -> None:
    unfinished = Path(temporary_of(new_of(roots_of(lake)[0]))[5:])
    (unfinished / "batch").mkdir(parents=True)
    (unfinished / "batch" / "file").write_text("half of a part")
    Swap(FailingFiles(spark), pipeline_at(lake)).discard(roots_of(lake))
    assert not list((lake / "_silver.tmp").iterdir())
    assert contents(lake) == {"silver": "old", "gold/minute": "old"}
