"""Outputs that call a Python function."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.test_run import AGGREGATE, TEXT, add, pipeline_of

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.pipeline.check import check_pipeline
from penstock.spark.pipeline.run import PipelineFailed, pipeline_session, run_pipeline

__all__ = ["pipeline_of"]  # the fixture

# Modules stay imported: each test has its own.
COLLECT = """
from pyspark.sql import functions as F

calls = []
failing = []

def collect(frame, batch):
    shout = F.udf(lambda text: louder(text))  # executors do not have this module
    key = "_id" if "_id" in frame.columns else "orders"
    calls.append((batch, [str(row[0]) for row in frame.select(shout(key)).collect()]))
    if failing:
        raise ValueError("no\\nroute")

def louder(text):
    return str(text)

text = "not a function"
"""


def section(call: str, source: str = "silver", name: str = "send") -> str:
    return f'\n[[output]]\nname = "{name}"\nfrom = "{source}"\ncall = "{call}"\n'


def module(folder: Path, name: str) -> Any:
    """Write a module beside the pipeline, and import it as the pipeline does."""
    (folder / f"{name}.py").write_text(COLLECT)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    return importlib.import_module(name)


def test_a_function_gets_every_batch_of_silver_and_of_an_aggregate(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    silver, windows = module(tmp_path, "calls_silver"), module(tmp_path, "calls_windows")
    text = TEXT + AGGREGATE + section("calls_silver:collect")
    text += section("calls_windows:collect", "minute", "windows")
    for step in range(2):
        add(penstock, step * 5)
        add(penstock, step * 5, qty="x")
        summary = run_pipeline(pipeline_of(penstock, text), spark, once=True)
        assert summary.outputs["send"].rows == 1
    ids = [
        one.decode() for one, fields in penstock.client.xrange("orders") if fields[b"qty"] == b"2"
    ]
    assert [rows for _, rows in silver.calls] == [[one] for one in ids]
    assert len({batch for batch, _ in silver.calls}) == 2
    assert [rows for _, rows in windows.calls if rows] == [["1"]]


def test_a_new_function_catches_up_and_a_failed_batch_is_repeated(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    found = module(tmp_path, "calls_again")
    add(penstock, 0)
    run_pipeline(pipeline_of(penstock), spark, once=True)
    add(penstock, 1)
    pipeline = pipeline_of(penstock, TEXT + section("calls_again:collect"))
    run_pipeline(pipeline, spark, once=True)
    assert [len(rows) for _, rows in found.calls] == [1, 1]
    assert [batch for batch, _ in found.calls] == [0, 1]
    add(penstock, 2)
    found.failing.append(True)
    with pytest.raises(PipelineFailed) as caught:
        run_pipeline(pipeline, spark, once=True)
    line = Path(pipeline.file).read_text().split("\n").index('call = "calls_again:collect"') + 1
    where = f"{pipeline.file}:{line}: calls_again:collect failed in batch 2: ValueError: no route"
    assert f"output send: {where} (calls_again.py:12)" == str(caught.value)
    found.failing.clear()
    run_pipeline(pipeline, spark, once=True)
    assert found.calls[2] == found.calls[3]
    assert len(found.calls) == 4


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("calls_nowhere:send", "calls_nowhere:send: there is no module calls_nowhere in "),
        ("calls_empty:send", "calls_empty.py has no function send"),
        ("calls_text:text", "text in "),
        ("calls_broken:send", "calls_broken cannot be imported: SyntaxError"),
        ("calls_needs:send", "calls_needs cannot be imported: No module named 'nobody_has_this'"),
        ("calls_taken:send", "another module calls_taken is loaded already"),
    ],
)
def test_a_function_that_cannot_be_called_is_a_problem_with_its_line(
    spark: Any,
    penstock: Broker,
    pipeline_of: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    problem: str,
) -> None:
    monkeypatch.setitem(sys.modules, "calls_taken", ModuleType("calls_taken"))
    for name, text in (
        ("calls_empty", ""),
        ("calls_text", "text = 'no function'"),
        ("calls_broken", "def send(:"),
        ("calls_needs", "import nobody_has_this"),
        ("calls_taken", ""),
    ):
        (tmp_path / f"{name}.py").write_text(text)
    pipeline = pipeline_of(penstock, TEXT + section(call))
    (found,) = check_pipeline(pipeline, pipeline_session(spark))
    assert problem in found.text
    assert Path(pipeline.file).read_text().split("\n")[found.line - 1] == f'call = "{call}"'
