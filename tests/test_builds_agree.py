"""The compiled and the interpreted build give the same results and the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.build import KIND
from penstock.engine.execute import TABLE
from tests.support.engine.recorded import Recording
from tests.support.servers.recorded_session import all_lines, commands_in
from tests.support.source_tree import ROOT

STRUCTURES = "tests.support.engine.recorded"
SESSION = "tests.support.servers.recorded_session"
LOGGED = ["XADD", "XDEL", "XTRIM", "XSETID", "XACK", "XCLAIM", "XGROUP", "SET", "DEL", "RPUSH"]
LOGGED += [
    "LPOP",
    "LMOVE",
    "LSET",
    "LINSERT",
    "PEXPIREAT",
    "RENAME",
    "SELECT",
    "MULTI",
    "EXEC",
    "RESTORE",
]


def start_recording(module: str, folder: Path, file: Path) -> subprocess.Popen[bytes]:
    """Run a recording with the penstock in `folder`, in a process of its own."""
    path = os.pathsep.join((str(folder), str(ROOT)))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(file)],
        cwd=file.parent,
        env=os.environ | {"PYTHONPATH": path},
    )


@pytest.mark.skipif(KIND == "interpreted", reason="there is no compiled build to compare with")
@pytest.mark.parametrize("module", [STRUCTURES, SESSION])
def test_both_builds_record_the_same(module: str, tmp_path: Path) -> None:
    folders = {"compiled": Path(str(penstock.__file__)).parents[1], "interpreted": ROOT / "src"}
    processes = [start_recording(module, folders[kind], tmp_path / kind) for kind in folders]
    assert [process.wait() for process in processes] == [0, 0]
    compiled, interpreted = ((tmp_path / kind).read_text().splitlines() for kind in folders)
    assert (compiled[0], interpreted[0]) == ("compiled", "interpreted")
    for line, (left, right) in enumerate(zip(compiled, interpreted, strict=False)):
        assert line in (0, 1) or left == right, (
            f"line {line + 1} of {tmp_path}/compiled and interpreted"
        )
    assert compiled[1:] == interpreted[1:]


def test_the_recorded_structures_reach_everything() -> None:
    """Two recordings in which nothing happens would agree too."""
    lines = list(Recording(1).lines(1500))
    done = {line.split()[2] for line in lines if len(line.split()) > 2 and line[0].isdigit()}
    assert {"append", "claim", "autoclaim", "redeliver", "walk", "trim_min_id"} <= done
    assert {"give_back", "claim_idle", "forget", "trim_unreferenced", "hold", "send"} <= done
    assert any("refused: " in line for line in lines)
    assert sum(len(line) for line in lines) > 100_000


@pytest.fixture(scope="module")
def session() -> list[str]:
    return list(all_lines())


def test_the_recorded_session_reaches_every_command(session: list[str]) -> None:
    assert commands_in(session) == set(TABLE)
    log = "".join(line.upper() for line in session if line.startswith("  log "))
    assert [name for name in LOGGED if f"\\R\\N{name}\\R\\N" not in log] == []


def test_the_recorded_session_has_both_protocols_and_all_formats(session: list[str]) -> None:
    replies = [line.split(" <- ", 1) for line in session if " <- " in line]
    assert any(place.strip() in "01" and reply.startswith("b'*") for place, reply in replies)
    assert any(place.strip() in "23" and reply.startswith("b'%") for place, reply in replies)
    assert any(place.strip() == "4" and reply.startswith("b'>") for place, reply in replies)
    assert any("QUEUED" in reply for _, reply in replies)
    assert {line.split()[1] for line in session if line.startswith("  rdb ")} >= {"10", "11", "12"}


def test_a_blocked_reader_of_the_recorded_session_is_served(session: list[str]) -> None:
    """Some client receives an entry while another client's command runs."""
    sender = ""
    for line in session:
        if line[0].isdigit():
            sender = line.split()[1]
        elif (
            " <- b'" in line
            and line.split()[0] not in (sender, "4")
            and any(f"$1\\r\\n{key}\\r\\n" in line for key in "st")
        ):
            return
    raise AssertionError("no blocked reader was served")
