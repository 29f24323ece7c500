"""The penstock command, as a user types it."""

from __future__ import annotations

import subprocess
import sys

from penstock import build
from penstock._version import VERSION


def penstock(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from penstock.cli.main import main; main()"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_version_names_the_kind_of_build() -> None:
    result = penstock("--version")
    assert (result.returncode, result.stdout) == (0, f"penstock {VERSION} ({build.KIND})\n")


def test_help_is_given_when_asked_for_and_when_nothing_is_asked() -> None:
    for arguments in (["--help"], []):
        result = penstock(*arguments)
        assert result.returncode == 0
        assert "--version" in result.stdout


def test_an_unknown_command_is_refused() -> None:
    result = penstock("flush-everything")
    assert result.returncode == 2
    assert "flush-everything" in result.stderr
