"""`penstock pipeline`: arguments, errors and output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from penstock.cli.terminal.pipeline_display import progress_table
from tests.support.command_line import CommandLine

pytest.importorskip("pyspark", reason="pyspark is not installed: make build")

from penstock.spark.pipeline.progress import BatchRecord

TEXT = """[source]
url = "${PENSTOCK_URL}"
stream = "orders"
group = "lake"
[schema]
qty = "int"
[valid]
positive = "qty > 0"
[archive]
path = "lake"
[reject]
stream = "rejected"
"""

WITHOUT_SPARK = "types and SQL are checked once there are none of these"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "orders.toml"
    path.write_text(TEXT)
    return path


def test_help_has_examples(penstock: CommandLine) -> None:
    for words in (("run",), ("check",)):
        assert "Examples:" in penstock.run("pipeline", *words, "--help").stdout


def test_a_missing_file_is_reported(penstock: CommandLine) -> None:
    code, text = penstock.error("pipeline", "run", "nothing.toml")
    assert (code, text) == (2, "nothing.toml: No such file or directory")
    code, text = penstock.error("pipeline", "check", "nothing.toml")
    assert (code, text) == (2, "nothing.toml: No such file or directory")


def test_a_setting_of_spark_is_key_and_value(penstock: CommandLine, file: Path) -> None:
    code, text = penstock.error("pipeline", "run", str(file), "--conf", "spark.x")
    assert code == 2
    assert "'spark.x' is not KEY=VALUE" in text


def test_a_bad_file_is_not_run_and_its_problems_are_the_output(
    penstock: CommandLine, file: Path
) -> None:
    file.write_text(TEXT.replace("[reject]", "[rejct]").replace("group", "grup"))
    result = penstock.run("pipeline", "run", str(file), "--once")
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{file}:4", f"{file}:11"]
    assert "did you mean reject?" in lines[1]
    assert result.stderr == f"penstock: 2 problems; {WITHOUT_SPARK}\n"
    result = penstock.run("pipeline", "run", str(file), "--json")
    told = json.loads(result.stdout)
    assert (result.exit_code, [one["line"] for one in told["problems"]]) == (2, [4, 11])


def test_syntax_errors_are_reported_without_spark(penstock: CommandLine, file: Path) -> None:
    file.write_text("[source]\nurl = \n")
    result = penstock.run("pipeline", "check", str(file))
    assert result.exit_code == 2
    assert result.stdout == f"{file}:2: not TOML: Invalid value\n"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("group", "grup", 4),
        ('"rejected"', '"orders"', 12),
        ("${PENSTOCK_URL}", "redis://127.0.0.1:1", 2),
    ],
)
@pytest.mark.parametrize("command", ["check", "run"])
def test_mistakes_that_need_no_spark_are_found_before_it_is_imported(
    file: Path, command: str, old: str, new: str, line: int
) -> None:
    url = {"PENSTOCK_URL": "redis://127.0.0.1:1"}
    file.write_text(TEXT.replace(old, new))
    program = (
        "import sys; from penstock.cli.main import app\n"
        "try: app(sys.argv[1:])\n"
        "finally: print('pyspark' in sys.modules, file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, "pipeline", command, str(file)],
        capture_output=True,
        text=True,
        env=os.environ | url,
        check=False,
    )
    assert result.returncode == 2
    assert result.stdout.startswith(f"{file}:{line}: ")
    assert result.stderr.splitlines() == [f"penstock: 1 problem; {WITHOUT_SPARK}", "False"]


def test_the_table_shows_the_last_batch_of_each_output_and_all_rows() -> None:
    last = {
        "silver": BatchRecord("orders", "silver", 1, "now", 9, 9, 5e4, 0.5, lag=3, pending=0),
        "bronze": BatchRecord("orders", "bronze", 4, "now", 7, 7, 7.0, 1.0),
    }
    screen = Console(file=StringIO(), width=100)
    with screen.capture() as shown:
        screen.print(progress_table("orders", last, {"silver": 1500, "bronze": 7}))
    title, headings, *lines = shown.get().splitlines()
    assert title.strip() == "orders"
    assert headings.split() == [
        "output",
        "batch",
        "rows",
        "rows/s",
        "batch",
        "time",
        "lag",
        "pending",
    ]
    assert lines[0].split() == ["silver", "1", "1,500", "50,000", "0.5", "s", "3", "0"]
    assert lines[1].split() == ["bronze", "4", "7", "7", "1.0", "s", "-", "-"]
