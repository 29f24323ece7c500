"""Every golden script prints the output that it contains."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.engine.script import run_script
from tests.support.source_tree import ROOT

SCRIPTS = sorted((ROOT / "tests").glob("scripts/**/*.script"))
UPDATE = os.environ.get("UPDATE") == "1" and not os.environ.get("CI")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_script(path: Path) -> None:
    expected, actual = run_script(path, UPDATE)
    assert UPDATE or actual == expected


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 10
