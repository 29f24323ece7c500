"""A session built by the user works in an environment that is not activated."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.support.source_tree import ROOT
from tests.support.spark.scripts import run_script

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.runtime.worker_python import WorkerPythonUnknown, use_driver_python


class FakeConf(dict[str, str]):
    def contains(self, name: str) -> bool:
        return name in self


def session(master: str, **conf: str) -> Any:
    context = SimpleNamespace(master=master, pythonExec="python3", getConf=lambda: FakeConf(conf))
    return SimpleNamespace(sparkContext=context)


@pytest.fixture(autouse=True)
def _no_python_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


@pytest.mark.parametrize("master", ["local", "local[2]", "local-cluster[2,1,1024]"])
def test_workers_on_this_machine_run_the_drivers_python(master: str) -> None:
    spark = session(master)
    use_driver_python(spark)
    assert spark.sparkContext.pythonExec == sys.executable


def test_a_python_that_the_user_has_chosen_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    configured = session("local[2]", **{"spark.pyspark.python": "python3.12"})
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    by_variable = session("local[2]")
    for spark in (configured, by_variable):
        use_driver_python(spark)
        assert spark.sparkContext.pythonExec == "python3"


def test_on_a_cluster_a_warning_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = session("spark://host:7077")
    with pytest.warns(WorkerPythonUnknown, match="spark://host:7077.*set PYSPARK_PYTHON"):
        use_driver_python(spark)
    assert spark.sparkContext.pythonExec == "python3"
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        use_driver_python(spark)


def test_a_session_of_spark_connect_is_left_alone() -> None:
    use_driver_python(SimpleNamespace())  # type: ignore[arg-type]


def test_the_first_script_of_the_docs_runs_without_an_activated_environment(
    penstock: Broker, tmp_path: Path
) -> None:
    script = ROOT / "examples" / "read_with_spark.py"
    run = run_script(script, tmp_path, penstock.options["url"])
    assert run.returncode == 0, run.stderr[-3000:]
    rows = [line.replace(" ", "") for line in run.stdout.splitlines() if line.startswith("|")]
    assert rows == ["|sku|sum(qty)|", "|A1|7|", "|B7|1|"]
    assert "No module named 'penstock'" not in run.stderr
