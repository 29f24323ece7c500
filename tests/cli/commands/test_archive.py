"""`penstock archive`: the output of show, and errors of both commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from tests.support.source_tree import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "lake"
MERGED = "day=2026-11-16/0000000000-5f0c11aa-77d0a3f1-merged.parquet"
LAST = "day=2026-11-16/0000000007-5f0c11aa-9b2e4d10-00000.parquet"


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(
        app, ["archive", *map(str, words)], catch_exceptions=False, prog_name="penstock"
    )


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Manifests and empty data files, which show never opens."""
    place = tmp_path / "lake"
    (place / "_manifest").mkdir(parents=True)
    for path in FIXTURES.iterdir():
        (place / "_manifest" / path.name).write_bytes(path.read_bytes())
    (place / "day=2026-11-16").mkdir()
    (place / MERGED).touch()
    (place / LAST).touch()
    return place


def test_show_sums_up_the_manifests(lake: Path) -> None:
    result = run("show", lake)
    assert (result.exit_code, result.stderr) == (0, "")
    first, _, heading, row = result.stdout.splitlines()
    assert first == (
        f"{lake}: 80 rows, 2 files, 4.9 KB; last batch 7 of query"
        " 5f0c11aa-0000-0000-0000-000000000001; compactions 2"
    )
    assert heading.split() == ["partition", "files", "rows", "size"]
    assert row.split() == ["day=2026-11-16", "2", "80", "4.9", "KB"]


def test_show_as_json(lake: Path) -> None:
    found = json.loads(run("show", lake, "--json").stdout)
    assert (found["rows"], found["files"], found["bytes"], found["last_batch"]) == (80, 2, 4996, 7)
    assert found["partitions"] == [
        {"partition": "day=2026-11-16", "files": 2, "rows": 80, "bytes": 4996}
    ]
    assert (found["missing"], found["unfinished"]) == ([], [])


def test_a_file_that_is_missing_is_exit_code_1_and_an_unfinished_one_is_not(lake: Path) -> None:
    (lake / "day=2026-11-16/0000000008-x.parquet").touch()
    result = run("show", lake)
    assert result.exit_code == 0
    assert "unfinished: day=2026-11-16/0000000008-x.parquet" in result.stdout
    (lake / LAST).unlink()
    result = run("show", lake)
    assert result.exit_code == 1
    assert f"missing: {LAST}: a manifest names it" in result.stdout


def test_a_damaged_manifest_is_named(lake: Path) -> None:
    (lake / "_manifest/0000000007.json").write_text("{")
    result = run("show", lake)
    assert result.exit_code == 1
    assert "_manifest/0000000007.json is damaged" in result.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["show", "nowhere"], "nowhere is not a directory"),
        (["show", "."], "is not an archive: it has no manifest"),
        (["show", "s3a://bucket/lake"], "show reads archives on this machine"),
        (["compact", "nowhere"], "nowhere is not a directory"),
        (
            ["compact", ".", "--target-size", "big"],
            "--target-size 'big': expected a size like 64mb",
        ),
        (["compact", ".", "--target-size", "0"], "expected a size"),
    ],
)
def test_an_invalid_path_is_exit_code_2(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*words)
    assert result.exit_code == 2
    assert says in result.stderr


def test_help_shows_examples() -> None:
    for command in ("show", "compact"):
        result = run(command, "--help")
        assert result.exit_code == 0
        assert f"penstock archive {command} lake/orders" in result.stdout
