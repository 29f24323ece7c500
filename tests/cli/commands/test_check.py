"""`penstock check`: output and exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from tests.support.disk.data_files import log_file, write_ours


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(
        app, ["check", *map(str, words)], catch_exceptions=False, prog_name="penstock"
    )


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A data directory of a killed server: its end may be torn."""
    return write_ours(tmp_path / "data", is_clean=False)


def tear(directory: Path) -> int:
    """Cut the last 10 bytes off the log and return its size."""
    path = log_file(directory, "incr")
    path.write_bytes(path.read_bytes()[:-10])
    return path.stat().st_size


def test_a_sound_directory_is_exit_code_0(ours: Path) -> None:
    result = run(ours)
    assert (result.exit_code, result.stderr) == (0, "")
    first, _, heading, *lines = result.stdout.splitlines()
    assert first == f"{ours}: data directory, sound"
    assert heading.split() == [
        *("file", "role", "kind", "version", "size", "keys", "commands", "verdict")
    ]
    assert [line.split()[-1] for line in lines[:4]] == ["sound"] * 4
    assert [line.split() for line in lines[5:]] == [
        ["holds", "log", "snapshot"],
        ["databases", "1", "1"],
        ["keys", "3", "3"],
        ["streams", "1", "1"],
        ["lists", "1", "1"],
        ["strings", "1", "1"],
        ["entries", "4", "4"],
        ["groups", "1", "1"],
        ["consumers", "1", "1"],
        ["pending", "0", "0"],
        ["expiring", "1", "1"],
    ]


def test_a_slash_at_the_end_of_a_directory_changes_nothing(ours: Path) -> None:
    assert run(f"{ours}/").stdout == run(ours).stdout


def test_a_torn_end_is_exit_code_1_and_has_its_place(ours: Path) -> None:
    size = tear(ours)
    result = run(ours)
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{ours}: data directory, torn\n")
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("torn: ")]
    assert f"of {size} (" in line
    assert "aof-load-truncated" in line


def test_unreadable_files_are_exit_code_2(ours: Path) -> None:
    os.mkfifo(ours / "pipe")
    for path, why in (
        (ours / "none", "No such file"),
        (ours / "pipe", "Not a regular file"),
        (ours / ("x" * 3000), "File name too long"),
        (ours / "dump.rdb/x", "Not a directory"),
    ):
        result = run(path)
        assert (result.exit_code, result.stdout) == (2, "")
        assert why in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_forbidden_file_is_exit_code_2(ours: Path) -> None:
    (ours / "dump.rdb").chmod(0)
    assert run(ours).exit_code == 2


def test_json_has_the_same_result(ours: Path) -> None:
    sound = json.loads(run(ours, "--json").stdout)
    assert (sound["verdict"], sound["kind"], sound["warnings"]) == ("sound", "data directory", [])
    log, snapshot = sound["parts"]
    assert (log["name"], snapshot["name"]) == ("log", "snapshot")
    assert log["totals"] == snapshot["totals"]
    assert log["files"][1]["version"] == log["files"][1]["version"]
    tear(ours)
    result = run(ours, "--json")
    torn = json.loads(result.stdout)
    assert (result.exit_code, torn["verdict"]) == (1, "torn")
    assert torn["parts"][0]["files"][2]["offset"] > 0
    assert "copy" not in torn


def test_repair_lists_what_it_left_out(ours: Path, tmp_path: Path) -> None:
    tear(ours)
    out = tmp_path / "out"
    result = run(ours, "--repair", out)
    assert result.exit_code == 1
    *_, left_out, copy = result.stdout.splitlines()
    assert left_out.startswith(f"left out of the log: {log_file(ours, 'incr')} bytes ")
    assert copy == f"copy: {out}: data directory, sound"
    assert run(out).exit_code == 0
    again = json.loads(run(ours, "--repair", tmp_path / "again", "--json").stdout)
    assert again["copy"]["verdict"] == "sound"
    assert again["parts"][0]["left_out_count"] == 1


def test_a_sound_path_is_copied_too(ours: Path, tmp_path: Path) -> None:
    result = run(ours / "dump.rdb", "--repair", tmp_path / "out")
    assert result.exit_code == 0
    assert "nothing was left out" in result.stdout
    assert (tmp_path / "out").read_bytes() == (ours / "dump.rdb").read_bytes()


def test_an_existing_target_is_a_usage_error(ours: Path, tmp_path: Path) -> None:
    result = run(ours, "--repair", tmp_path)
    assert result.exit_code == 2
    assert "exists" in result.stderr


def test_nothing_readable_means_no_copy(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"hello")
    result = run(tmp_path / "x", "--repair", tmp_path / "out")
    assert result.exit_code == 1
    assert "no copy: nothing can be read" in result.stdout
    assert not (tmp_path / "out").exists()


def test_past_damage_needs_repair(ours: Path) -> None:
    result = run(ours, "--past-damage")
    assert result.exit_code == 2
    assert "--repair" in result.stderr


def test_terminal_escapes_in_names_and_keys_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "\x1b]0;evil\x07\nsound"
    path.write_bytes(b"*3\r\n$4\r\nSADD\r\n$5\r\n\x1b[31m\r\n$1\r\n\xff\r\n")
    for words in ((path,), (path, "--json"), (path, "--repair", tmp_path / "\x1b[2J")):
        result = run(*words)
        assert result.exit_code == 1
        assert "\x1b" not in result.stdout + result.stderr
        assert "\x07" not in result.stdout + result.stderr
    assert "\\x1b[31m" in run(path).stdout


def test_file_names_that_are_not_utf8_can_be_checked(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    Path(name).write_bytes(b"")
    assert run(name).exit_code == 0
    assert json.loads(run(name, "--json").stdout)["verdict"] == "sound"
    directory = write_ours(tmp_path / "data")
    Path(os.fsdecode(os.fsencode(directory) + b"/appendonlydir/\xff")).write_bytes(b"")
    assert "is not listed in the manifest" in run(directory).stdout


def test_the_help_has_examples_and_exit_codes() -> None:
    text = run("--help").stdout
    assert "penstock check penstock-data --repair mended" in text
    assert "0    all of PATH is sound" in text
