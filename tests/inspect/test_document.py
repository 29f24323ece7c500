"""docs/inspect.md shows the output of `penstock inspect`, and files of earlier servers stay readable."""

from __future__ import annotations

import json
import os

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from tests.support.source_tree import ROOT

PAGE = ROOT / "docs/inspect.md"
FIXTURES = ROOT / "tests/fixtures/inspect"
UPDATE = os.environ.get("UPDATE") == "1" and not os.environ.get("CI")
INDENT = "    "


def printed(line: str) -> list[str]:
    """The output of a command on the page; empty lines have no indent."""
    words = line.removeprefix(f"{INDENT}$ penstock ").split()
    result = CliRunner().invoke(app, words, catch_exceptions=False, prog_name="penstock")
    assert result.stderr == ""
    return [f"{INDENT}{text}" if text else "" for text in result.stdout.splitlines()]


def test_the_page_shows_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page: list[str] = []
    examples = 0
    is_output = False
    for line in PAGE.read_text().splitlines():
        if line.startswith(f"{INDENT}$ penstock "):
            examples += 1
            page += [line, *printed(line)]
            is_output = True
        elif is_output and (line.startswith(INDENT) or not line):
            continue
        else:
            if is_output:
                page.append("")
            is_output = False
            page.append(line)
    text = "\n".join(page) + "\n"
    if UPDATE:
        PAGE.write_text(text)
    assert examples == 3
    assert PAGE.read_text() == text


def test_a_snapshot_of_redis_7_holds_the_stream_of_the_payload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    found = []
    for words in (["redis-7.0.rdb", "--key", "doors"], ["doors.dump"]):
        command = ["inspect", str(FIXTURES / words[0]), *words[1:], "--what", "all", "--json"]
        result = CliRunner().invoke(app, command, catch_exceptions=False)
        assert result.exit_code == 0
        about = json.loads(result.stdout)
        found.append((about["nodes"], about["tree"], about["memory"], about["trims"]))
    assert found[0] == found[1]
