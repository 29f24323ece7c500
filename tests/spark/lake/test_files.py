"""File operations of a lake: results, errors and concurrent writers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("duckdb")
lake_files = pytest.importorskip("penstock.spark.lake.files")
manifests = pytest.importorskip("penstock.spark.lake.manifest")
lakes = pytest.importorskip("tests.support.spark.lake")


@pytest.fixture
def files(spark: Any) -> Any:
    return lake_files.LakeFiles(spark)


class Standing:
    """A fake of Hadoop's file system with one stream."""

    is_closed = False

    def delete(self, place: str, recursive: bool) -> bool:
        return False

    def exists(self, place: str) -> bool:
        return place != "gone"

    def create(self, place: str, overwrite: bool) -> Standing:
        return self

    def write(self, data: bytearray) -> None:
        raise BrokenPipeError

    def close(self) -> None:
        self.is_closed = True


def standing_in(files: Any, monkeypatch: pytest.MonkeyPatch) -> Standing:
    system = Standing()
    monkeypatch.setattr(files, "_at", lambda path: (system, path))
    return system


def test_names_with_special_characters_are_in_order(files: Any, tmp_path: Path) -> None:
    names = ["a b", "a,b", "a\nb", "a\\b", "b%20[0]{1}*?", "day=1", "\u00fc\U0001f40b"]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "inner").mkdir()
    root = files.qualify(str(tmp_path))
    assert files.names(root) == sorted([*names, "inner"])
    assert files.names(f"{root}/inner") == files.names(f"{root}/nowhere") == []


def test_listing_a_thousand_names_takes_few_calls_to_java(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1000):
        (tmp_path / f"{number:010d}.json").touch()
    client = files._jvm._gateway_client
    calls: list[str] = []
    send = client.send_command

    def counted(command: str, *words: Any, **options: Any) -> Any:
        calls.append(command)
        return send(command, *words, **options)

    monkeypatch.setattr(client, "send_command", counted)
    assert len(files.names(files.qualify(str(tmp_path)))) == 1000
    assert 0 < len(calls) < 200


def test_data_files_have_their_paths_and_sizes(files: Any, tmp_path: Path) -> None:
    for name, size in {"day=2/b.parquet": 3, "day=1/x=1/a.parquet": 2, "c.parquet": 1}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(bytes(size))
    (tmp_path / "day=2/_SUCCESS").touch()
    root = files.qualify(str(tmp_path))
    assert files.data_files(root) == [
        *(("c.parquet", 1), ("day=1/x=1/a.parquet", 2), ("day=2/b.parquet", 3))
    ]
    assert files.data_files(f"{root}/nowhere") == []


def test_a_refused_deletion_is_an_error(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/file").touch()
    path = files.qualify(str(tmp_path / "inner"))
    assert files.delete(path)
    assert not files.delete(path)
    standing_in(files, monkeypatch)
    assert not files.delete("gone")
    with pytest.raises(manifests.ArchiveError, match="stays cannot be deleted"):
        files.delete("stays")


def test_a_file_that_cannot_be_written_is_closed(
    files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = standing_in(files, monkeypatch)
    with pytest.raises(BrokenPipeError):
        files.create("file", "text")
    assert system.is_closed


def test_a_killed_concurrent_writer_leaves_the_file_intact(spark: Any, tmp_path: Path) -> None:
    class Beside(lake_files.LakeFiles):  # type: ignore[name-defined, misc]
        def rename(self, path: str, target: str) -> None:
            with pytest.raises(lakes.Crash):
                lakes.FailingFiles(spark, 1).write(target, "a text of another length")
            super().rename(path, target)

    files = Beside(spark)
    files.write(f"{files.qualify(str(tmp_path))}/file", "text")
    assert (tmp_path / "file").read_text() == "text"


def test_a_failed_sync_is_an_error(files: Any, tmp_path: Path) -> None:
    with pytest.raises(manifests.ArchiveError, match="cannot sync"):
        files.sync(files.qualify(str(tmp_path / "nowhere")))
    files.sync("hdfs://nowhere/file")  # not a local path
