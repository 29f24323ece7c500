"""The penstock command, as a user types it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from penstock import build
from penstock._version import VERSION
from penstock.cli.main import app

COMMANDS = (
    *(command.name for command in typer.main.get_group(app).commands.values()),
    *("archive show", "archive compact", "pipeline run", "pipeline check"),
    *("pipeline status", "pipeline stop", "pipeline reset"),
)


def penstock(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from penstock.cli.entry import main; main()"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def help_of(*words: str) -> str:
    return CliRunner().invoke(app, [*words, "--help"], prog_name="penstock").stdout


def test_version_names_the_kind_of_build() -> None:
    result = penstock("--version")
    assert (result.returncode, result.stdout) == (0, f"penstock {VERSION} ({build.KIND})\n")


def test_help_is_shown_on_request_and_without_arguments() -> None:
    for arguments in (["--help"], []):
        result = penstock(*arguments)
        assert result.returncode == 0
        assert "--version" in result.stdout


def test_an_unknown_command_is_refused() -> None:
    result = penstock("flush-everything")
    assert result.returncode == 2
    assert "flush-everything" in result.stderr


def test_serve_comes_first_and_no_summary_is_cut_off() -> None:
    text = help_of()
    commands = text.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert commands[0].split()[0] == "serve"
    assert not [line for line in commands if line.endswith("...")]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_examples(command: str) -> None:
    text = help_of(*command.split())
    assert "Examples:\n" in text
    assert f"penstock {command}" in text.partition("Examples:\n")[2]


def test_the_help_of_serve_explains_directives() -> None:
    text = help_of("serve")
    assert "`port 7000` in a file is" in text
    assert "--dir /var/lib/penstock" in text
