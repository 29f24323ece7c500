"""The documents say what is true: sessions run, links lead somewhere, marks are in place."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from penstock.engine.table import Command
from tests.support.engine.script import ScriptRun
from tools import configuration_docs
from tools.command_docs import PAGE, all_rows, page

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_the_session_in_the_readme_runs_as_shown() -> None:
    outcome = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert outcome.attempted >= 8
    assert outcome.failed == 0


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


def test_every_benchmark_has_its_section_of_the_performance_page() -> None:
    text = (ROOT / "docs/performance.md").read_text()
    for benchmark in ROOT.glob("benchmarks/[!_]*.py"):
        assert f"<!-- {benchmark.stem}: begin -->" in text
        assert f"<!-- {benchmark.stem}: end -->" in text


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
