"""`penstock pipeline status`, `stop` and `reset`, and the history of runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.test_run import AGGREGATE, TEXT, accounted, add, pipeline_of, rows
from tests.support.campaign import cells
from tests.support.spark.databases import wait_until

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.lake.local_files import LocalFiles, is_local
from penstock.spark.lake.lock import held, is_held
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.operate import history
from penstock.spark.pipeline.operate.history import RUNS_MAX, RunHistory, runs_of
from penstock.spark.pipeline.run import PipelineFailed, run_pipeline
from penstock.spark.pipeline.targets import batches

__all__ = ["pipeline_of"]  # the fixture


def command(*words: str, answer: str = "") -> Result:
    return CliRunner().invoke(app, ["pipeline", *words], input=answer, prog_name="penstock")


def status(pipeline: Pipeline, *words: str) -> dict[str, Any]:
    result = command("status", pipeline.file, "--json", *words)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@contextmanager
def running(pipeline: Pipeline, spark: Any) -> Iterator[threading.Thread]:
    """Run a pipeline in a thread until the end of the block."""
    stop = threading.Event()
    thread = threading.Thread(target=run_pipeline, args=(pipeline, spark, False, None, stop))
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join()


def test_the_status_shows_positions_lag_and_runs(
    spark: Any, penstock: Broker, pipeline_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipeline_of(penstock, TEXT + AGGREGATE)
    found = status(pipeline)
    assert (found["running"], found["runs"]) == (False, [])
    assert {one["position"] for one in found["outputs"]} == {None}
    assert "no record of a run" in command("status", pipeline.file).stdout
    add(penstock, 0)
    add(penstock, 0, qty="x")
    run_pipeline(pipeline, spark, once=True)
    last = penstock.client.xinfo_stream("orders")["last-generated-id"].decode()
    add(penstock, 1)
    found = status(pipeline)
    outputs = {one["output"]: one for one in found["outputs"]}
    assert list(outputs) == ["bronze", "silver", "reject", "minute", "minute.stream"]
    assert {json.dumps(one["position"]) for one in outputs.values()} == {
        json.dumps({"orders": last})
    }
    assert {one["lag"] for one in outputs.values()} == {1}
    assert {name: one["rows"] for name, one in outputs.items()} == {
        "bronze": 2,
        "silver": 1,
        "reject": 1,
        "minute": 0,
        "minute.stream": 0,
    }
    assert outputs["bronze"]["batch"] == 0
    assert outputs["bronze"]["at"].endswith("Z")
    with monkeypatch.context() as patch:
        patch.setattr(batches, "append", fail)
        with pytest.raises(PipelineFailed):
            run_pipeline(pipeline, spark, once=True)
    found = status(pipeline, "--runs", "2")
    assert [one["outcome"] for one in found["runs"]] == ["failed", "finished"]
    errors = {one["output"]: one["error"] for one in found["outputs"] if one["error"]}
    assert list(errors) == ["reject"]
    assert "stopped by the test" in errors["reject"]
    assert None not in {one["batch"] for one in found["outputs"]}  # the error has no batch
    lines = command("status", pipeline.file, "--runs", "1").stdout.splitlines()
    assert "not running; the last run failed" in lines[0]
    assert lines[1].split()[0] == "output"
    silver = next(line for line in lines if line.startswith("silver"))
    assert silver.split()[1:3] == ["orders", last]


def fail(_pipeline: Pipeline, stream: str, *_: Any) -> int:
    if stream == "rejected":
        raise RuntimeError("stopped by the test")
    return 0


def test_a_running_pipeline_is_stopped(spark: Any, penstock: Broker, pipeline_of: Any) -> None:
    pipeline = pipeline_of(penstock)
    result = command("stop", pipeline.file)
    assert (result.exit_code, result.stderr) == (1, "penstock: shop is not running\n")
    add(penstock, 0)
    with running(pipeline, spark) as thread:
        wait_until(lambda: status(pipeline)["outputs"][0]["rows"] == 1)
        found = status(pipeline)
        assert found["running"]
        assert found["runs"][0]["outcome"] == "running"
        assert "running since" in command("status", pipeline.file).stdout
        refused = command("reset", pipeline.file, "--yes")
        assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
        assert "shop is running: stop it first" in refused.stderr
        result = command("stop", pipeline.file)
        assert result.exit_code == 0, result.stderr
        assert result.stdout.startswith("shop: stopped at ")
        thread.join()
    assert status(pipeline)["runs"][0]["outcome"] == "stopped"
    add(penstock, 1)
    run_pipeline(pipeline, spark, once=True)
    assert [one["outcome"] for one in status(pipeline)["runs"]] == ["finished", "stopped"]


def test_a_run_without_an_end_was_killed(penstock: Broker, pipeline_of: Any) -> None:
    pipeline = pipeline_of(penstock)
    folder = f"{pipeline.archive.path}/_runs"
    with pytest.raises(KeyboardInterrupt), RunHistory(LocalFiles(), folder, False).recorded():
        raise KeyboardInterrupt
    (ended,) = runs_of(LocalFiles(), folder)
    assert (ended.outcome, ended.error) == ("failed", "KeyboardInterrupt")
    LocalFiles().delete(f"{folder}/{ended.name}.end.json")
    assert status(pipeline)["runs"][0]["outcome"] == "killed"
    assert "was killed" in command("status", pipeline.file).stdout
    with held(f"{pipeline.archive.path}/_checkpoints", AssertionError()):
        result = command("stop", pipeline.file, "--timeout", "1")
        assert result.exit_code == 1
        assert "still runs after 1 s" in result.stderr


def test_the_history_keeps_the_last_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "RUNS_MAX", 3)
    assert RUNS_MAX > 3
    names = []
    for _ in range(5):
        with RunHistory(LocalFiles(), str(tmp_path), True).recorded():
            names.append(runs_of(LocalFiles(), str(tmp_path))[0].name)
    assert [one.name for one in runs_of(LocalFiles(), str(tmp_path))] == sorted(names)[:1:-1]


@pytest.mark.parametrize("output", cells(["silver", "reject", "minute", None]))
def test_a_reset_output_is_made_again(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path, output: str | None
) -> None:
    pipeline = pipeline_of(penstock, TEXT + AGGREGATE)
    lake = tmp_path / "lake"
    for minute in (0, 5, 10):
        add(penstock, minute)
        add(penstock, minute, qty="x")
    run_pipeline(pipeline, spark, once=True)
    windows = len(rows(spark, lake / "gold" / "minute"))
    words = ["reset", pipeline.file] + (["--output", output] if output else [])
    refused = command(*words, answer="n\n")
    assert refused.exit_code == 1
    assert accounted(lake, penstock) == (6, 3, 3)
    result = command(*words, answer="y\n")
    assert result.exit_code == 0, result.stderr
    listed = [line for line in result.stdout.splitlines() if line.startswith("delete ")]
    assert all(not Path(line.removeprefix("delete ")).exists() for line in listed)
    assert f"{len(listed)} path" in result.stdout
    if output in ("reject", None):
        penstock.client.delete("rejected")
    if output in ("minute", None):
        penstock.client.delete("minutes")
    for _ in range(2):
        run_pipeline(pipeline, spark, once=True)
    assert accounted(lake, penstock) == (6, 3, 3)
    assert len(rows(spark, lake / "gold" / "minute")) == windows
    assert penstock.client.xlen("minutes") == windows
    assert penstock.client.xlen("orders") == 6


def test_a_reset_refuses_unknown_outputs_and_streams_of_aggregates(
    penstock: Broker, pipeline_of: Any
) -> None:
    pipeline = pipeline_of(penstock, TEXT + AGGREGATE)
    for name, text in (("gold", "there is no output gold"), ("minute.stream", "reset minute")):
        result = command("reset", pipeline.file, "--yes", "--output", name)
        assert result.exit_code == 1
        assert text in result.stderr


def test_a_wrong_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    file.write_text("[source]\nurll = 1\n")
    result = command("status", str(file))
    assert result.exit_code == 2
    assert "urll is unknown" in result.stdout


def test_local_files_hide_and_delete_checksums(tmp_path: Path) -> None:
    files = LocalFiles()
    place = f"file:{tmp_path}/a/b.json"
    files.write(place, "1")
    (tmp_path / "a" / ".b.json.crc").touch()
    assert files.names(f"{tmp_path}/a") == ["b.json"]
    assert files.delete(place)
    assert not files.delete(place)
    assert not list((tmp_path / "a").iterdir())
    assert files.names(place) == []
    assert is_local(place)
    assert not is_local("s3a://bucket/lake")
    assert not is_held(str(tmp_path / "nowhere"))
