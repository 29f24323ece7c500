"""Outputs that continue a former layout, join later, or are ahead of their query after a crash."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.test_run import (
    AGGREGATE,
    TEXT,
    accounted,
    add,
    pipeline_of,
    rejected,
    rows,
)

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.lake.archive import ArchiveWriter
from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.local_files import LocalFiles
from penstock.spark.lake.manifest import ArchiveError, load_lake
from penstock.spark.lake.upsert import UpsertWriter
from penstock.spark.pipeline.joined_state import JoinedStates
from penstock.spark.pipeline.joining import join_outputs
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.run import PipelineFailed, pipeline_session, run_pipeline
from penstock.spark.pipeline.targets import batches
from penstock.spark.source.planning import DataLoss
from tests.support.campaign import cells
from tests.support.spark.databases import wait_until
from tests.support.spark.former_pipeline import run_former

__all__ = ["pipeline_of"]  # the fixture

REJECT = '\n[reject]\nstream = "rejected"\n'
STREAM = 'stream = "minutes"\n'


def windows(spark: Any, lake: Path) -> list[tuple[Any, int]]:
    """The windows of the table, each once."""
    found = [(row.window_start, row.orders) for row in rows(spark, lake / "gold" / "minute")]
    assert len(found) == len(set(found))
    return sorted(found)


def streamed(broker: Broker) -> list[int]:
    """The measure `orders` of the windows in the stream."""
    return sorted(int(fields[b"orders"]) for _, fields in broker.client.xrange("minutes"))


@pytest.mark.parametrize("trim", cells(["archived", "never"]))
def test_a_lake_of_the_former_layout_continues(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path, trim: str
) -> None:
    lake = tmp_path / "lake"
    pipeline = pipeline_of(penstock, TEXT + AGGREGATE, trim=trim)
    session = pipeline_session(spark)
    everything = {"bronze", "silver", "reject", "minute", "minute.stream"}
    add(penstock, 0)
    add(penstock, 0.5, qty="x")
    run_former(pipeline, session, everything)
    if trim == "archived":
        penstock.client.xtrim("orders", maxlen=0, approximate=False)
    add(penstock, 3)
    add(penstock, 3.1, qty="y")
    run_former(pipeline, session, {"bronze", "reject", "minute.stream"})  # others are killed
    add(penstock, 6)
    add(penstock, 6.2)
    run_former(pipeline, session, {"bronze", "minute"})
    add(penstock, 12, qty="z")
    add(penstock, 13)
    for _ in range(2):
        run_pipeline(pipeline, spark, once=True)
        assert accounted(lake, penstock) == (8, 5, 3)
    assert [orders for _, orders in windows(spark, lake)] == [1, 1, 2]
    assert streamed(penstock) == [1, 1, 2]
    newest = load_lake(LakeFiles(spark), str(lake / "silver")).newest
    assert newest is not None
    last = penstock.client.xinfo_stream("orders")["last-generated-id"].decode()
    assert newest.position == {"orders": last}


def test_new_outputs_catch_up_and_join(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    whole = TEXT + AGGREGATE
    bare = whole.replace(REJECT, "").replace(STREAM, "")
    steps = [bare, whole, bare, whole]
    for step, text in enumerate(steps):
        add(penstock, step * 5)
        add(penstock, step * 5 + 0.1, qty="x")
        run_pipeline(pipeline_of(penstock, text), spark, once=True)
        if text == whole:
            done = 2 * (step + 1)
            assert accounted(lake, penstock) == (done, step + 1, step + 1)
            assert (
                streamed(penstock) == [orders for _, orders in windows(spark, lake)] == [1] * step
            )
    times = [one["_source_id"] for one in rejected(penstock)]
    assert times == sorted(times)


def test_an_output_that_returns_is_refused_if_it_misses_trimmed_entries(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    bare = TEXT.replace(REJECT, "")
    steps = [(TEXT, "archived"), (bare, "never"), (TEXT, "never"), (bare, "archived")]
    for step, (text, trim) in enumerate(steps):
        add(penstock, step)
        add(penstock, step, qty="x")
        run_pipeline(pipeline_of(penstock, text, trim), spark, once=True)
        if text == TEXT:  # the trim has ended where the output had ended
            assert accounted(tmp_path / "lake", penstock) == (
                2 * step + 2,
                step + 1,
                step + 1,
            )
    assert penstock.client.xlen("orders") == 0
    add(penstock, 4, qty="x")
    with pytest.raises(DataLoss, match="output reject: stream orders: up to 2 entries after"):
        run_pipeline(pipeline_of(penstock), spark, once=True)
    allowed = TEXT + '\n[source.options]\nfailOnDataLoss = "false"\n'
    run_pipeline(pipeline_of(penstock, allowed), spark, once=True)
    assert len(rejected(penstock)) == 4


LATEST = TEXT.replace('group = "lake"', 'group = "lake"\nstarting = "latest"')


@pytest.mark.parametrize("starting", cells(["former", "latest"]))
def test_a_first_batch_that_is_repeated_starts_where_it_started(
    spark: Any,
    penstock: Broker,
    pipeline_of: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    starting: str,
) -> None:
    text = TEXT
    add(penstock, 0)
    add(penstock, 0, qty="x")
    if starting == "former":
        run_former(pipeline_of(penstock), pipeline_session(spark), {"bronze", "silver", "reject"})
        add(penstock, 1)
    else:
        text = LATEST
    with monkeypatch.context() as patch, adding(penstock):
        fail_after(patch, "bronze")
        with pytest.raises(PipelineFailed, match="stopped by the test"):
            run_pipeline(pipeline_of(penstock, text), spark, once=False)
    run_pipeline(pipeline_of(penstock, text), spark, once=True)
    count, _, refused = accounted(tmp_path / "lake", penstock)
    everything = penstock.client.xlen("orders")
    if starting == "former":
        assert (count, refused) == (everything, 1)
    else:
        assert 0 < count <= everything - 2


def test_an_aggregate_whose_first_batch_is_repeated_has_all_rows_of_silver(
    spark: Any,
    penstock: Broker,
    pipeline_of: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = tmp_path / "lake"
    add(penstock, 0)
    pipeline = pipeline_of(penstock, LATEST + AGGREGATE)

    def fail_after_main(_frame: Any) -> Any:
        wait_until((lake / "_checkpoints" / "main" / "commits" / "0").exists)
        raise RuntimeError("stopped by the test")

    with monkeypatch.context() as patch, adding(penstock):
        patch.setattr(frames, "with_day", fail_after_main)
        with pytest.raises(PipelineFailed, match="stopped by the test"):
            run_pipeline(pipeline, spark, once=False)
    add(penstock, 30)  # closes the windows before it
    run_pipeline(pipeline, spark, once=True)
    _, silver, _ = accounted(lake, penstock)
    assert sum(orders for _, orders in windows(spark, lake)) == silver - 1 > 0


def test_a_run_that_is_killed_before_its_first_batch_keeps_the_start(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    add(penstock, 0)
    pipeline = pipeline_of(penstock, LATEST.replace(REJECT, ""))
    join_outputs(pipeline, pipeline_session(spark))
    for minutes in (1, 2):
        add(penstock, minutes)
    run_pipeline(pipeline, spark, once=True)
    assert accounted(tmp_path / "lake", penstock) == (2, 2, 0)


def test_another_start_holds_until_the_first_batch(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    add(penstock, 0, qty="x")
    join_outputs(pipeline_of(penstock, LATEST), pipeline_session(spark))
    add(penstock, 1)
    for text in (TEXT, LATEST):
        run_pipeline(pipeline_of(penstock, text), spark, once=True)
        assert accounted(tmp_path / "lake", penstock) == (2, 1, 1)


def test_a_checkpoint_that_is_older_than_an_output_is_refused(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    checkpoints = tmp_path / "lake" / "_checkpoints"
    pipeline = pipeline_of(penstock, TEXT + AGGREGATE)
    for minutes in (0, 5):
        add(penstock, minutes)
    run_pipeline(pipeline, spark, once=True)
    shutil.copytree(checkpoints, tmp_path / "backup")
    add(penstock, 10)
    run_pipeline(pipeline, spark, once=True)
    add(penstock, 15)
    for query, says in (("minute", "has batches up to"), ("main", "output bronze has entries of")):
        shutil.rmtree(checkpoints / query)
        shutil.copytree(tmp_path / "backup" / query, checkpoints / query)
        with pytest.raises(ArchiveError, match=f"{says}.* the checkpoint is older than the lake"):
            run_pipeline(pipeline, spark, once=True)


def test_a_damaged_state_is_named(tmp_path: Path) -> None:
    (tmp_path / "reject.joined-0.json").touch()
    with pytest.raises(ArchiveError, match=r"reject\.joined-0\.json is damaged"):
        JoinedStates(LocalFiles(), str(tmp_path)).read("reject")


@contextmanager
def adding(broker: Broker) -> Iterator[None]:
    """Add entries all the time."""
    ends = threading.Event()

    def add_some() -> None:
        minutes = 2.0
        while not ends.wait(0.05):
            add(broker, minutes)
            minutes += 0.001

    thread = threading.Thread(target=add_some)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def fail_after(patch: pytest.MonkeyPatch, after: str) -> None:
    """Fail once the output has its batch, before the next one gets it."""
    if after == "reject":
        real_append = batches.append

        def append(*words: Any) -> int:
            real_append(*words)
            raise RuntimeError("stopped by the test")

        patch.setattr(batches, "append", append)
        return
    if after == "latest":
        real_upsert = UpsertWriter.write

        def write(self: UpsertWriter, *words: Any) -> int:
            real_upsert(self, *words)
            raise RuntimeError("stopped by the test")

        patch.setattr(UpsertWriter, "write", write)
        return
    real = ArchiveWriter.append

    def archive(self: ArchiveWriter, *words: Any) -> int:
        made = real(self, *words)
        if self._path.endswith(after):
            raise RuntimeError("stopped by the test")
        return made

    patch.setattr(ArchiveWriter, "append", archive)
