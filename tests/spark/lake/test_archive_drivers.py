"""The archive with stale drivers, the number of listings, and the order of syncs."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK
from tests.spark.lake.test_archive import QUERY, frame_of, manifest, query_id
from tests.support.campaign import cells

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("duckdb")
archive = pytest.importorskip("penstock.spark.lake.archive")
manifests = pytest.importorskip("penstock.spark.lake.manifest")
lakes = pytest.importorskip("tests.support.spark.lake")

CHANGES = 9  # of one batch with two files


class OvertakenFiles(lakes.FailingFiles):  # type: ignore[name-defined, misc]
    """Lets another driver act before the n-th change, then continues, as a stale driver does."""

    def __init__(self, spark: Any, act_at: int, act: Callable[[], None]) -> None:
        super().__init__(spark)
        self.act_at, self.act = act_at, act

    def _is_last(self) -> bool:
        self.changes += 1
        if self.changes == self.act_at:
            self.act()
        return False


class UncommittedFiles(lakes.FailingFiles):  # type: ignore[name-defined, misc]
    """Stops before the commit of a batch."""

    def rename(self, path: str, target: str) -> None:
        if "/_manifest/" in target:
            raise lakes.Crash(target)
        super().rename(path, target)


@pytest.mark.parametrize("is_killed", cells([False, True]))
def test_a_stale_driver_commits_nothing_that_another_has_undone(
    spark: Any, tmp_path: Path, is_killed: bool
) -> None:
    for act_at in range(1, CHANGES + 1):
        lake = tmp_path / str(act_at) / "lake"
        writer = archive.ArchiveWriter(str(lake))
        frame = frame_of(spark, range(4)).coalesce(1)

        def overtake(lake: Path = lake, frame: Any = frame) -> None:
            kind = UncommittedFiles if is_killed else lakes.FailingFiles
            with suppress(lakes.Crash):
                archive.ArchiveWriter(str(lake), files_of=kind)(frame, 0)

        def old_files(one: Any, at: int = act_at, act: Any = overtake) -> Any:
            return OvertakenFiles(one, at, act)

        with query_id(spark, QUERY):
            # Before its claim it cannot be undone, and after its commit it must not be.
            is_safe = act_at == CHANGES or (is_killed and act_at < 3)
            with nullcontext() if is_safe else pytest.raises(manifests.ArchiveError):
                archive.ArchiveWriter(str(lake), files_of=old_files)(frame, 0)
            writer(frame, 0)
            writer(frame_of(spark, range(4, 8)).coalesce(1), 1)
        assert lakes.seen_without_spark(lake) == Counter(range(8)), act_at
        named = [file["path"] for batch in (0, 1) for file in manifest(lake, batch)["files"]]
        assert sorted(lake / path for path in named) == lakes.files_seen(lake)
        assert not list(lake.glob("_intent/*.json"))


def test_a_driver_whose_parquet_was_deleted_commits_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    frame = frame_of(spark, range(4)).coalesce(1)
    write_parquet = archive.write_parquet

    def overtaken(whole: Any, *place: Any) -> None:
        monkeypatch.setattr(archive, "write_parquet", write_parquet)
        with pytest.raises(lakes.Crash):
            archive.ArchiveWriter(str(lake), files_of=UncommittedFiles)(frame, 0)
        write_parquet(whole.where("v > 1"), *place)  # written by tasks that end after the deletion

    monkeypatch.setattr(archive, "write_parquet", overtaken)
    with query_id(spark, QUERY):
        with pytest.raises(manifests.ArchiveError, match="another driver has started batch 0"):
            archive.archive_writer(str(lake))(frame, 0)
        archive.archive_writer(str(lake))(frame, 0)
    assert lakes.seen(spark, lake) == Counter(range(4))
    assert not list(lake.glob("_intent/*.json"))


def write(spark: Any, lake: Path) -> None:
    with query_id(spark, QUERY):
        archive.archive_writer(str(lake))(frame_of(spark, range(4)), 0)


def test_an_intent_left_by_a_copying_rename_undoes_nothing_committed(
    spark: Any, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    write(spark, lake)
    left = lake / f"_intent/batch-{QUERY}-0123abcd.json"
    left.write_text(json.dumps(manifest(lake, 0)))
    write(spark, lake)
    assert not left.exists()
    assert lakes.seen(spark, lake) == Counter(range(4))


def test_manifests_are_listed_once_in_a_run_and_again_after_a_failure(
    spark: Any, tmp_path: Path
) -> None:
    listed: list[str] = []
    stop_at: list[int | None] = [None]

    class Listing(lakes.FailingFiles):  # type: ignore[name-defined, misc]
        def names(self, directory: str) -> list[str]:
            listed.append(directory.rpartition("/")[2])
            found: list[str] = super().names(directory)
            return found

    writer = archive.ArchiveWriter(
        str(tmp_path / "lake"), files_of=lambda one: Listing(one, stop_at[0])
    )
    with query_id(spark, QUERY):
        for batch in range(3):
            writer(frame_of(spark, range(batch * 4, batch * 4 + 4)), batch)
        assert listed.count("_manifest") == 1
        stop_at[0] = 1
        with pytest.raises(lakes.Crash):
            writer(frame_of(spark, range(12, 16)), 3)
        stop_at[0] = None
        writer(frame_of(spark, range(12, 16)), 3)
    assert listed.count("_manifest") == 2
    assert lakes.seen(spark, tmp_path / "lake") == Counter(range(16))


def test_a_batch_is_synced_before_it_is_committed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, str]] = []
    lake = tmp_path / "lake"

    def note(opened: int) -> None:
        done.append(("sync", str(Path(f"/proc/self/fd/{opened}").readlink())))

    class Renaming(lakes.FailingFiles):  # type: ignore[name-defined, misc]
        def rename(self, path: str, target: str) -> None:
            super().rename(path, target)
            done.append((path.removeprefix("file:"), target.removeprefix("file:")))

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "fdatasync", note)
    with query_id(spark, QUERY):
        archive.ArchiveWriter(str(lake), files_of=Renaming)(frame_of(spark, range(4)), 0)
    renames = [at for at, (what, _) in enumerate(done) if what != "sync"]
    intent, *files, commit = renames
    assert done[commit][1] == str(lake / "_manifest/0000000000.json")
    for at in (intent, *files):
        source, target = done[at]
        assert ("sync", source) in done[:at]
        assert ("sync", str(Path(target).parent)) in done[at:commit]
    assert ("sync", f"{Path(done[files[0]][0]).parent}/.{Path(done[files[0]][0]).name}.crc") in done
    assert ("sync", str(lake)) in done[files[-1] : commit]
    assert ("sync", str(lake / "_manifest")) in done[commit:]
