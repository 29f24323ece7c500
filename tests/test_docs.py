"""The documents are right: links lead somewhere, generated pages are current, the site builds."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.engine.table import Command
from tests.support.engine.script import ScriptRun
from tests.support.guide import blocks_of
from tools import configuration_docs
from tools.command_docs import PAGE, all_rows, page

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")
ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        assert not IN_CI, "CI needs the dependency group docs: make check installs it"
        pytest.skip("mkdocs is not installed: make docs")
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict"]
    quiet = {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [*command, "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, **quiet},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    pages = [path for path in (tmp_path / "site").rglob("*.html") if path.name != "404.html"]
    assert len(pages) >= len(list(ROOT.glob("docs/**/*.md")))
    fetched = re.compile(r"<(?:script|link|img)[^>]+(?:src|href)=\"?https?:")
    assert not [page for page in pages if fetched.search(page.read_text())], "fetched from the net"


def test_the_two_readmes_have_the_same_sections_links_and_code() -> None:
    english, chinese = (ROOT / name for name in ("README.md", "README.zh-CN.md"))
    for pattern in (r"^#+ ", r"^\|", r"^```\w+", r"\]\((docs/[^)]+)\)"):
        found = [re.findall(pattern, page.read_text(), re.M) for page in (english, chinese)]
        assert found[0] == found[1], pattern
    code = [
        [re.sub(r"\s+#.*", "", block.text) for block in blocks_of(page.read_text())]
        for page in (english, chinese)
    ]
    assert code[0] == code[1], "the code differs by more than its comments"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path) -> None:
    named = r"(?:src|tests|docs|benchmarks|tools|fuzz)/[\w./-]+\.(?:py|pxd|md|sh|script)"
    for path in re.findall(named, page.read_text()):
        if "/LAYER/" in path:
            continue  # stands for any of them
        assert (ROOT / path).exists(), f"{page.name} names {path}"


def test_the_examples_of_the_extensions_run_as_shown() -> None:
    text = re.sub(r"```.*?```", "", (ROOT / "docs/extensions.md").read_text(), flags=re.S)
    expected = [line[4:] for line in text.splitlines() if line.startswith("    ")]
    run = ScriptRun()
    actual = []
    for line in expected:
        if line.startswith("> "):
            actual += [line, *run.command(line[2:].split()).splitlines()]
        elif line.startswith("node-"):
            run.setting(*line.split())
            actual.append(line)
    assert actual == expected
    assert len(actual) > 30


def test_the_page_of_directives_is_what_the_table_says() -> None:
    assert configuration_docs.PAGE.read_text() == configuration_docs.page(), "run make docs"


def test_every_benchmark_has_its_section_of_a_page() -> None:
    pages = {"failover": "high-availability", "planned_failover": "high-availability"}
    for benchmark in ROOT.glob("benchmarks/[!_]*.py"):
        text = (ROOT / f"docs/{pages.get(benchmark.stem, 'performance')}.md").read_text()
        begins = re.findall(rf"<!-- ({benchmark.stem}\b.*): begin -->", text)
        assert begins == re.findall(rf"<!-- ({benchmark.stem}\b.*): end -->", text) != []


def test_the_page_of_commands_is_what_the_table_says() -> None:
    assert PAGE.read_text() == page(all_rows()), "run make docs"


@pytest.mark.parametrize("row", all_rows(), ids=lambda row: row.name)
def test_a_row_says_all_that_the_page_needs(row: Command) -> None:
    assert row.group
    assert row.summary.endswith(".")
    assert row.complexity.startswith("O(")
    assert re.fullmatch(r"\d+\.\d+\.\d+", row.since)
    words = row.name.count(" ") + 1
    assert row.syntax or row.takes(words), "a command that needs arguments shows them"


def test_the_page_of_topics_names_code_and_tests_that_exist() -> None:
    rows = re.findall(r"^\| (?!---|topic)(.+) \|$", (ROOT / "docs/topics.md").read_text(), re.M)
    assert len(rows) > 50
    for row in rows:
        _, code, tests = row.split("|")
        for path in re.findall(r"`([a-z_]+/[a-z_/.]+)`", code):
            assert (ROOT / "src/penstock" / path).exists(), f"{path} in: {row}"
        for path in re.findall(r"`(tests/[\w/.]+)`", tests):
            assert (ROOT / path).exists(), f"{path} in: {row}"
