"""The guides work: every block of Python, shell and TOML in them runs."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.guide import RUN, blocks_of, guide

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SPARK = ["spark", "lake", "scaling", "pipeline", "pipeline-rows"]
PLAIN = [
    *("index", "embedded", "groups", "server", "access", "dashboard"),
    *("migrating", "troubleshooting", "extensions", "work", "metrics", "backup", "memory"),
]
PAGES = [ROOT / "README.md", *(DOCS / f"{name}.md" for name in PLAIN + SPARK)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a page."""
    if shutil.which("redis-cli") is None:
        pytest.skip("no redis-cli on PATH")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_URL", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    authority = Authority(tmp_path, "ca")  # the certificates of the page about TLS
    authority.issue("server")
    return tmp_path


@pytest.mark.parametrize("name", ["README.md", *(f"docs/{name}.md" for name in PLAIN)])
def test_the_blocks_of_a_guide_run(name: str, folder: Path) -> None:
    with guide(ROOT / name, folder) as page:
        assert page.run() > 0


def test_the_blocks_of_the_spark_guides_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pages in one test: parallel tests would start a session each."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install penstock[spark]")
    session_module = pytest.importorskip("penstock.spark.runtime.session")
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    settings = {"spark.driver.memory": "768m", "spark.sql.shuffle.partitions": "1"}
    # Pages get this session from build_session(). Java keeps the directory in which it was started.
    session = session_module.build_session("guides", "local[2]", "OFF", settings)
    try:
        for name in SPARK:
            with guide(DOCS / f"{name}.md", folder) as page:
                assert page.run() > 0, name
            assert not session.streams.active, f"{name}.md leaves a query running"
    finally:
        session.stop()


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
