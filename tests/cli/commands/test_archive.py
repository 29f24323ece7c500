"""`penstock archive`: the output of show, and errors of both commands."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.spark.lake.formats import TablePlace
from penstock.spark.lake.manifest import DataFile, Manifest
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


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_show_reads_the_log_of_a_table(form: str, tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    pytest.importorskip("pyiceberg")
    table = tmp_path / "lake" / "t"
    log = TablePlace(str(table), form, "t", str(tmp_path / "lake")).log_at(str(table))
    schema = {"type": "struct", "fields": [_field("v", "integer"), _field("day", "date")]}
    log.create(Manifest("q", -1, ("day",), schema))
    first = log.load()
    assert first is not None
    rows = pa.table({"v": pa.array([1, 2], pa.int32())})
    if log.keeps_partitions:
        rows = rows.append_column("day", pa.array([date(2026, 11, 16)] * 2))
    file = table / "data/0000000001-9b2e4d10/day=2026-11-16/part.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(rows, file)
    written = DataFile(str(file.relative_to(table)), 2, file.stat().st_size)
    log.commit(first, replace(first.newest, batch=0), [written])

    found = json.loads(run("show", table, "--json").stdout)
    assert (found["format"], found["rows"], found["files"], found["last_batch"]) == (form, 2, 1, 0)
    assert [one["partition"] for one in found["partitions"]] == ["day=2026-11-16"]
    assert run("show", table).stdout.splitlines()[0].endswith(f"of query q; format {form}")
    file.unlink()
    result = run("show", table)
    assert result.exit_code == 1
    assert "the log names it" in result.stdout


def _field(name: str, kind: str) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def test_show_of_an_iceberg_table_without_its_catalog_says_so(tmp_path: Path) -> None:
    (tmp_path / "t" / "metadata").mkdir(parents=True)
    (tmp_path / "t" / "metadata" / "00000-x.metadata.json").touch()
    result = run("show", tmp_path / "t")
    assert result.exit_code == 1
    assert "no _catalog.db above it names it" in result.stderr


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
