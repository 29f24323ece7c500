"""The examples run unchanged."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.support.source_tree import ROOT

pytest.importorskip("pyspark", reason=NO_PYSPARK)

EXAMPLES = ROOT / "examples"


def test_the_pipeline_in_python_runs(
    spark: Any,
    penstock: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", penstock.options["url"])
    monkeypatch.setenv("CHECKPOINT", str(tmp_path))
    for sku, qty in (("A1", 2), ("B7", 1), ("C3", 1), ("A1", "many"), ("A1", 0)):
        penstock.client.xadd("orders", {"sku": sku, "qty": qty, "price": "1.00"})
    for _ in range(2):  # the second run has nothing to do
        runpy.run_path(str(EXAMPLES / "pipeline_in_python.py"))
        assert capsys.readouterr().out == "3 parcels\n"
    parcels = [fields for _, fields in penstock.client.xrange("parcels")]
    assert sorted(int(one[b"grams"]) for one in parcels) == [500, 500, 900]


def test_the_notebook_runs(
    spark: Any,
    penstock: Broker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", penstock.options["url"])
    for _ in range(2):  # cells can run again
        runpy.run_path(str(EXAMPLES / "notebook.py"))
        shown = capsys.readouterr().out
        assert "PushedFilters" in shown
        assert "A1   ##### 5\nB7   #### 4\nC3   #### 4\n" in shown
        assert shown.endswith("3 totals\n['sku', 'pieces']\n")
