"""Outputs that call a Python function with each batch: `call = "module:function"`.

The module is in the directory of the pipeline file, or is installed. The function gets a DataFrame and the
number of the batch. After a crash it is called again with the same number and the same rows.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.output_section import OutputSection
from penstock.spark.pipeline.targets.output_error import OutputError
from penstock.spark.runtime.causes import cause_of


class FunctionTarget:
    """Calls the function of one section."""

    def __init__(self, pipeline: Pipeline, section: OutputSection) -> None:
        self._call = section.call
        at = pipeline.sections.index(section)
        self._where = str(pipeline.problem(("output", at, "call"), section.call))
        self._function = load_function(pipeline, section)

    def write(self, rows: DataFrame, batch: int) -> int:
        """Call the function. Returns the number of rows. Raises: OutputError."""
        try:
            self._function(rows, batch)
        except (PySparkException, Py4JError) as error:
            raise OutputError(f"{self._where} failed in batch {batch}: {cause_of(error)}") from None
        except Exception as error:  # noqa: BLE001  it is the user's code
            what = " ".join(f"{type(error).__name__}: {error}".split())
            place = _place_of(error)
            text = f"{self._where} failed in batch {batch}: {what} ({place})"
            raise OutputError(text) from None
        return rows.count()


def load_function(pipeline: Pipeline, section: OutputSection) -> Callable[[DataFrame, int], Any]:
    """The function of a section. Raises: OutputError."""
    name, _, function = section.call.partition(":")
    module = _module(name, Path(pipeline.file).absolute().parent)
    found = getattr(module, function, None)
    if found is None:
        raise OutputError(f"{module.__file__} has no function {function}")
    if not callable(found):
        raise OutputError(f"{function} in {module.__file__} is not a function")
    typed: Callable[[DataFrame, int], Any] = found
    return typed


def _module(name: str, directory: Path) -> ModuleType:
    """Import a module, first from a directory. The directory stays on sys.path for its own imports."""
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
        importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise OutputError(f"there is no module {name} in {directory}") from None
        raise OutputError(f"the module {name} cannot be imported: {error}") from None
    except Exception as error:  # noqa: BLE001  it is the user's code
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise OutputError(f"the module {name} cannot be imported: {what}") from None
    here = directory.joinpath(*name.split(".")).with_suffix(".py")
    file = getattr(module, "__file__", None)
    if file and Path(file) == here:
        # Executors do not have this directory: functions of the module go there by value.
        by_value: Callable[[ModuleType], None] = cloudpickle.register_pickle_by_value
        by_value(module)
    elif here.exists():
        raise OutputError(f"another module {name} is loaded already, from {file}: rename {here}")
    return module


def _place_of(error: Exception) -> str:
    """The file and line where an exception was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"
