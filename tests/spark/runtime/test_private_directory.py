"""A temporary directory that no other user can have prepared."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import pytest

from penstock.cli.spark_session import _stderr_to, _warnings_afterwards
from penstock.spark.runtime import java
from penstock.spark.runtime.private_directory import (
    ForeignDirectory,
    fault_or_none,
    private_directory,
)
from tests.spark.conftest import NO_PYSPARK
from tests.spark.runtime.test_java import make_java


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shared temporary directory."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tmp_path.chmod(0o1777)
    return tmp_path


def prepare_link(usual: Path, theirs: Path) -> None:
    usual.symlink_to(theirs)


def prepare_file(usual: Path, theirs: Path) -> None:
    usual.write_text("")


def prepare_open(usual: Path, theirs: Path) -> None:
    usual.mkdir()
    usual.chmod(0o777)


def prepare_dangling(usual: Path, theirs: Path) -> None:
    usual.symlink_to(theirs / "nothing")


TRAPS = [prepare_link, prepare_file, prepare_open, prepare_dangling]


def test_a_private_directory_is_used_again(shared: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = private_directory("x")
        assert private_directory("x") == first
    assert first == shared / f"penstock-x-{os.getuid()}"
    assert first.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("prepare", TRAPS)
def test_a_directory_that_others_may_have_prepared_is_not_used(
    shared: Path, prepare: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert callable(prepare)
    usual = shared / f"penstock-x-{os.getuid()}"
    theirs = tmp_path_factory.mktemp("theirs")
    prepare(usual, theirs)
    with pytest.warns(ForeignDirectory, match="using .* instead") as said:
        made = private_directory("x")
    assert str(usual) in str(said[0].message)
    assert made != usual
    assert fault_or_none(made) is None
    assert list(theirs.iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_not_used(shared: Path) -> None:
    usual = shared / "penstock-x-0"
    usual.mkdir(mode=0o700)
    os.chown(usual, 12345, 12345)
    with pytest.warns(ForeignDirectory, match="belongs to another user"):
        assert private_directory("x") != usual


def test_spark_is_not_started_from_a_link_of_another_user(
    shared: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = pytest.importorskip("penstock.spark.runtime.spark_home", reason=NO_PYSPARK)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    theirs = tmp_path_factory.mktemp("theirs")
    (shared / f"penstock-spark-{os.getuid()}").symlink_to(theirs)
    with pytest.warns(ForeignDirectory):
        made = home.provide_home()
    assert made is not None
    assert not made.resolve().is_relative_to(theirs)
    assert (made / "jars").is_dir()


def test_java_is_not_started_from_a_link_of_another_user(
    shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    theirs = tmp_path_factory.mktemp("theirs")
    (shared / f"penstock-java-{os.getuid()}").symlink_to(theirs)
    make_java(shared / "bundled", "true")
    with pytest.warns(ForeignDirectory):
        made = java.make_private_home(shared / "bundled")
    assert not made.resolve().is_relative_to(theirs)


def test_the_command_line_shows_the_warning(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "java.log"
    with _warnings_afterwards(), _stderr_to(log):
        warnings.warn("/tmp/a belongs to another user", ForeignDirectory, stacklevel=1)
    sys.stderr.flush()
    assert capfd.readouterr().err == "penstock: /tmp/a belongs to another user\n"
