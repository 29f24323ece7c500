"""The names that penstock.spark exports."""

from __future__ import annotations

import importlib
import sys

import pytest

import penstock.spark
import pyspark_penstock
from tests.spark.conftest import NO_PYSPARK

pytest.importorskip("pyspark", reason=NO_PYSPARK)


@pytest.mark.parametrize("name", penstock.spark.__all__)
def test_every_exported_name_resolves(name: str) -> None:
    assert getattr(penstock.spark, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = penstock.spark.nothing


def test_spark_finds_the_source_without_register() -> None:
    assert pyspark_penstock.DefaultSource is penstock.spark.PenstockSource


def test_a_python_without_dependencies_only_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark imports the module in any Python on PATH, and an error would hide other packages' sources."""
    monkeypatch.setitem(sys.modules, "penstock.spark.source.data_source", None)
    monkeypatch.delitem(sys.modules, "pyspark_penstock")
    with pytest.warns(UserWarning, match="the data source penstock is not available"):
        found = importlib.import_module("pyspark_penstock")
    assert not hasattr(found, "DefaultSource")
