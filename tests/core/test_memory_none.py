"""None in place of a buffer is a TypeError in every function of core/memory, in both builds.

C accepts None for any bytearray, bytes or str, so the C versions must check for it. The functions and their
parameters are read from memory.pxd: a new function is tested without being listed here.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.build import KIND
from penstock.core import memory
from tests.support.builds import ROOT

DECLARED = re.compile(r"^cdef inline (?:[\w ]+?) \*?([a-z]\w*)\(([^)]*)\)", re.M)
BUFFERS = ("bytearray", "bytes", "str")
NUMBERS = (0, 1, 64, 200)
FILLINGS = (0, 1, 0x80, 0xC1)
SIZE = 40_000


def functions() -> dict[str, list[str]]:
    """The parameter types of every function that takes an object."""
    text = (ROOT / "src" / "penstock" / "core" / "memory.pxd").read_text()
    found = {
        name: [" ".join(one.split()[:-1]) for one in parameters.split(",")]
        for name, parameters in DECLARED.findall(text)
    }
    return {name: types for name, types in found.items() if set(types) & set(BUFFERS)}


FUNCTIONS = functions()
PLACES = [
    (name, at)
    for name, types in FUNCTIONS.items()
    for at, kind in enumerate(types)
    if kind in BUFFERS
]


@pytest.fixture(scope="session")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The functions of this build: the C versions, wrapped in a generated module, or memory.py."""
    if KIND == "interpreted":
        return memory
    folder = tmp_path_factory.mktemp("twins")
    lines = ["from penstock.core cimport memory"]
    for name, types in FUNCTIONS.items():
        names = ", ".join("abcdefgh"[: len(types)])
        lines.append(f"def {name}({names}): return memory.{name}({names})")
    source = folder / "twins.pyx"
    source.write_text("\n".join(lines) + "\n")
    cython = [sys.executable, "-m", "cython", "-3", "-I", str(ROOT / "src"), str(source)]
    subprocess.run(cython, check=True, cwd=folder)
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC")).split()
    include = "-I" + sysconfig.get_path("include")
    made = folder / ("twins" + str(sysconfig.get_config_var("EXT_SUFFIX")))
    flags = ["-shared", "-fPIC", "-O0", "-w", include, "-o", str(made)]
    subprocess.run([*compiler, *flags, str(folder / "twins.c")], check=True)
    return _loaded(made)


def _loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("twins", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _arguments(types: list[str], numbers: tuple[int, ...], filling: int) -> list[Any]:
    left = iter(numbers)
    made: list[Any] = []
    for kind in types:
        if kind == "bytearray":
            made.append(bytearray([filling]) * SIZE)
        elif kind == "bytes":
            made.append(b"0123456789abcdef")
        else:
            made.append("text" if kind == "str" else next(left))
    return made


def _works(function: Callable[..., Any], arguments: list[Any]) -> bool:
    try:
        function(*arguments)
    except (IndexError, OverflowError):
        return False
    return True


def test_the_functions_are_found() -> None:
    assert {"format_behind", "put_bulk_bytes", "put_fields", "put", "load16", "fold_crc"} <= set(
        FUNCTIONS
    )
    assert set(FUNCTIONS) <= set(vars(memory))


@pytest.mark.parametrize(("name", "at"), PLACES, ids=str)
def test_none_is_refused(twins: Any, name: str, at: int) -> None:
    function, types = getattr(twins, name), FUNCTIONS[name]
    numbers = len([kind for kind in types if kind not in BUFFERS])
    tried = 0
    for chosen in itertools.product(NUMBERS[: 4 if numbers < 4 else 2], repeat=numbers):
        for filling in FILLINGS:
            arguments = _arguments(types, chosen, filling)
            if _works(function, arguments):
                tried += 1
                arguments[at] = None
                with pytest.raises(TypeError):
                    function(*arguments)
    assert tried
