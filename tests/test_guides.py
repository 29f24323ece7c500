"""The guides work: every block of Python, shell and TOML in them runs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.guide import RUN, blocks_of, guide

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SPARK = ["spark", "lake", "scaling", "pipeline"]
PLAIN = ["index", "embedded", "server", "dashboard", "migrating", "troubleshooting", "extensions"]
PAGES = [ROOT / "README.md", *(DOCS / f"{name}.md" for name in PLAIN + SPARK)]

# This Java lives for a minute and is not worth tuning: it starts in half the time.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="module")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    """One session for all pages, and its directory: Java keeps the directory in which it was started."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install penstock[spark]")
    session_module = pytest.importorskip("penstock.spark.runtime.session")
    folder = tmp_path_factory.mktemp("spark")
    settings = {"spark.driver.memory": "768m", "spark.sql.shuffle.partitions": "1"}
    with contextlib.chdir(folder):
        session = session_module.build_session("guides", "local[2]", "OFF", settings)
    yield session, folder
    session.stop()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a page."""
    if shutil.which("redis-cli") is None:
        pytest.skip("no redis-cli on PATH")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


@pytest.mark.parametrize("name", ["README.md", *(f"docs/{name}.md" for name in PLAIN)])
def test_the_blocks_of_a_guide_run(name: str, folder: Path) -> None:
    with guide(ROOT / name, folder) as page:
        assert page.run() > 0


@pytest.mark.parametrize("name", SPARK)
def test_the_blocks_of_a_spark_guide_run(
    name: str,
    folder: Path,
    spark_session: tuple[Any, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, folder = spark_session
    monkeypatch.chdir(folder)
    with guide(DOCS / f"{name}.md", folder) as page:
        assert page.run() > 0
    assert not session.streams.active, "a page stops its queries"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_has_a_language_and_none_is_indented(page: Path) -> None:
    text = page.read_text()
    assert all(block.language for block in blocks_of(text)), "a fence without a language"
    if page.stem == "extensions":
        return  # its sessions are run by test_docs.py
    outside = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S)
    assert not re.search(r"\n\n {4}\S", outside), "an indented block would not run: use a fence"


def test_a_block_that_does_not_run_says_why() -> None:
    left_out = [block for page in PAGES for block in blocks_of(page.read_text()) if block.reason]
    assert all(block.language in RUN and len(block.reason or "") > 10 for block in left_out)
