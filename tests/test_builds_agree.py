"""Compiled or interpreted, the same operations give the same results and the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.build import KIND
from tests.support.engine.recorded import Recording
from tests.support.source_tree import ROOT


def recorded(folder: Path, file: Path) -> list[str]:
    """What the penstock in a folder does with the recorded sequence."""
    path = os.pathsep.join((str(folder), str(ROOT)))
    subprocess.run(
        [sys.executable, "-P", "-m", "tests.support.engine.recorded", str(file)],
        cwd=file.parent,
        env=os.environ | {"PYTHONPATH": path},
        check=True,
    )
    return file.read_text().splitlines()


@pytest.mark.skipif(KIND == "interpreted", reason="there is no compiled build to compare with")
def test_both_builds_do_the_same_to_the_byte(tmp_path: Path) -> None:
    compiled = recorded(Path(str(penstock.__file__)).parents[1], tmp_path / "compiled")
    interpreted = recorded(ROOT / "src", tmp_path / "interpreted")
    assert (compiled[0], interpreted[0]) == ("compiled", "interpreted")
    for line, (left, right) in enumerate(zip(compiled, interpreted, strict=False)):
        assert line == 0 or left == right, f"line {line + 1} of {tmp_path}/compiled, interpreted"
    assert len(compiled) == len(interpreted)


def test_the_recorded_sequence_reaches_everything() -> None:
    """A recording in which nothing happens would agree as well."""
    lines = list(Recording(1).lines(1500))
    done = {line.split()[2] for line in lines if len(line.split()) > 2 and line[0].isdigit()}
    assert {"append", "claim", "autoclaim", "redeliver", "walk", "trim_min_id"} <= done
    assert any("refused: " in line for line in lines)
    assert sum(len(line) for line in lines) > 100_000
