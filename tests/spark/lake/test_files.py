"""File operations of a lake: results, errors and concurrent writers."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("duckdb")
local_files = pytest.importorskip("penstock.spark.lake.local_files")
run = pytest.importorskip("penstock.spark.pipeline.run")
lake_files = pytest.importorskip("penstock.spark.lake.files")
hadoop_files = pytest.importorskip("penstock.spark.lake.hadoop_files")
manifests = pytest.importorskip("penstock.spark.lake.manifest")
lakes = pytest.importorskip("tests.support.spark.lake")


@pytest.fixture
def hadoop(spark: Any) -> Any:
    return hadoop_files.HadoopFiles(spark)


@pytest.fixture(params=["local", "hadoop"])
def files(request: pytest.FixtureRequest, spark: Any) -> Any:
    """The files of a local lake, and the same through Hadoop."""
    if request.param == "local":
        return lake_files.LakeFiles(spark)
    return request.getfixturevalue("hadoop")


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


RELEASE = "m\n"  # py4j sends it for a freed object, from a thread of its own


def calls_to_java(spark: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls from now on."""
    client = spark._jvm._gateway_client
    calls: list[str] = []
    send = client.send_command

    def counted(command: str, *words: Any, **options: Any) -> Any:
        if not command.startswith(RELEASE):
            calls.append(command)
        return send(command, *words, **options)

    monkeypatch.setattr(client, "send_command", counted)
    return calls


def test_listing_a_thousand_names_takes_few_calls_to_java(
    spark: Any, hadoop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1000):
        (tmp_path / f"{number:010d}.json").touch()
    calls = calls_to_java(spark, monkeypatch)
    assert len(hadoop.names(hadoop.qualify(str(tmp_path)))) == 1000
    assert 0 < len(calls) < 200


def test_files_on_a_local_disk_take_no_call_to_java(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{lake_files.LakeFiles(spark).qualify(str(tmp_path))}/file"
    calls = calls_to_java(spark, monkeypatch)
    local = lake_files.LakeFiles(spark)
    local.write(path, "text")
    local.rename(path, f"{path}-moved")
    assert local.read(f"{path}-moved") == "text"
    assert local.names(str(tmp_path)) == ["file-moved"]
    assert local.delete(f"{path}-moved")
    assert calls == []


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


def test_a_deletion_says_whether_something_was_there(files: Any, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/file").touch()
    (tmp_path / "inner/.file.crc").touch()
    path = files.qualify(str(tmp_path / "inner"))
    for one in (f"{path}/file", path):
        assert files.delete(one)
        assert not files.delete(one)
    assert not list(tmp_path.iterdir())


def test_a_refused_deletion_is_an_error(hadoop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    standing_in(hadoop, monkeypatch)
    assert not hadoop.delete("gone")
    with pytest.raises(manifests.ArchiveError, match="stays cannot be deleted"):
        hadoop.delete("stays")


def test_a_file_that_cannot_be_written_is_closed(
    hadoop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = standing_in(hadoop, monkeypatch)
    with pytest.raises(BrokenPipeError):
        hadoop.create("file", "text")
    assert system.is_closed


def test_each_way_reads_what_the_other_has_written(spark: Any, hadoop: Any, tmp_path: Path) -> None:
    """Hadoop compares the checksum that it has written, so it must not outlive its file."""
    local = lake_files.LakeFiles(spark)
    path = f"{local.qualify(str(tmp_path))}/file"
    assert path == f"{hadoop.qualify(str(tmp_path))}/file"
    for writer, reader in ((hadoop, local), (local, hadoop), (hadoop, hadoop)):
        writer.create(path, "größer" * len(path))
        assert reader.read(path) == "größer" * len(path)
        local.rename(path, f"{path}-moved")
        assert reader.read(f"{path}-moved") == "größer" * len(path)
        assert local.names(str(tmp_path)) == hadoop.names(str(tmp_path)) == ["file-moved"]
        local.delete(f"{path}-moved")
        assert not list(tmp_path.iterdir())


def test_an_operation_that_the_disk_refuses_is_an_error(files: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    inside = f"{files.qualify(str(tmp_path))}/file/inside"
    with pytest.raises(manifests.ArchiveError, match="file/inside"):
        files.create(inside, "")
    with pytest.raises(manifests.ArchiveError, match="file/inside"):
        files.rename(inside, f"{inside}-moved")
    assert not files.exists(inside)
    assert files.names(inside) == []
    with pytest.raises(FileNotFoundError):
        files.read(inside)


@pytest.mark.parametrize(
    "path", ["/a//b/", "/a/./b", "/a/c/../b", "file:/a/b", "file:" + "///a/b/", "/a b/%20"]
)
def test_a_path_is_qualified_as_hadoop_does_it(spark: Any, hadoop: Any, path: str) -> None:
    assert lake_files.LakeFiles(spark).qualify(path) == hadoop.qualify(path)


def test_a_killed_concurrent_writer_leaves_the_file_intact(spark: Any, tmp_path: Path) -> None:
    class Beside(lake_files.LakeFiles):  # type: ignore[name-defined, misc]
        def rename(self, path: str, target: str) -> None:
            with pytest.raises(lakes.Crash):
                lakes.FailingFiles(spark, 1).write(target, "a text of another length")
            super().rename(path, target)

    files = Beside(spark)
    files.write(f"{files.qualify(str(tmp_path))}/file", "text")
    assert (tmp_path / "file").read_text() == "text"


@pytest.mark.parametrize(
    ("path", "here", "with_hdfs"),
    [
        ("/lake", True, False),
        ("lake:/a", False, False),
        ("lake", True, False),
        ("file:/lake", True, True),
        ("file:" + "///lake", True, True),
        ("hdfs:/lake", False, False),
        ("hdfs://host/lake", False, False),
        ("s3a://bucket/lake", False, False),
    ],
)
def test_which_paths_are_on_this_machine(path: str, here: bool, with_hdfs: bool) -> None:
    assert local_files.is_local(path) == here
    assert local_files.is_local(path, "hdfs://host") == with_hdfs


def test_a_path_of_a_pipeline_without_a_scheme_is_on_this_machine(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_files, "_default_of", lambda context: "hdfs://nowhere:1")
    assert not lake_files.LakeFiles(spark)._is_local(str(tmp_path))
    files = lake_files.LakeFiles(run.pipeline_session(spark))
    files.write(f"{tmp_path}/file", "text")
    assert (tmp_path / "file").read_text() == "text"


@pytest.mark.parametrize("scheme", ["", "file:"])
@pytest.mark.parametrize("kind", ["lake", "local"])
def test_a_small_file_and_its_name_are_synced(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    scheme: str,
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(
        os, "fdatasync", lambda opened: synced.append(Path(f"/proc/self/fd/{opened}").readlink())
    )
    monkeypatch.setattr(os, "fsync", os.fdatasync)
    files = local_files.LocalFiles()
    if kind == "lake":
        files = lake_files.LakeFiles(request.getfixturevalue("spark"))
    files.write(f"{scheme}{tmp_path}/states/a.json", "{}")
    first, second = synced
    assert (first.parent.name, first.name[:8], second) == (
        "states",
        "_a.json.",
        tmp_path / "states",
    )


def test_an_operation_that_the_system_refuses_is_an_error_of_the_lake(tmp_path: Path) -> None:
    local = local_files.LocalFiles()
    for refused in (local.exists, local.data_files, local.names, local.read, local.delete):
        with pytest.raises(manifests.ArchiveError, match="File name too long"):
            refused(f"{tmp_path}/{'x' * 300}")


def test_a_directory_that_an_old_executor_fills_again_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = local_files.LocalFiles()
    (tmp_path / "inner").mkdir()
    refusals = 2
    delete = shutil.rmtree

    def rmtree(place: Path) -> None:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        delete(place)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    assert local.delete(f"{tmp_path}/inner")
    (tmp_path / "inner").mkdir()
    refusals = 3
    with pytest.raises(manifests.ArchiveError, match=r"cannot delete .*inner: Directory not empty"):
        local.delete(f"{tmp_path}/inner")


def test_a_failed_sync_is_an_error(spark: Any, tmp_path: Path) -> None:
    files = lake_files.LakeFiles(spark)
    with pytest.raises(manifests.ArchiveError, match="cannot sync"):
        files.sync(files.qualify(str(tmp_path / "nowhere")))
    files.sync("hdfs://nowhere/file")  # not a local path
