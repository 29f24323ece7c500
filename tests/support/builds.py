"""Makes sure that a test run tests the build it says it tests.

PENSTOCK_EXPECT is "compiled" or "interpreted"; without it anything goes. The files are looked at, not
what the installation meant to do: an extension module beside a .py wins over it silently.
"""

from __future__ import annotations

import ast
import os
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

import penstock

ROOT = Path(__file__).parents[2]


def modules_to_compile() -> list[str]:
    """The modules that setup.py compiles: those with a .pxd, without those that it calls INLINED."""
    package = ROOT / "src" / "penstock"
    declared = (path.relative_to(package).with_suffix("") for path in package.rglob("*.pxd"))
    names = {path.as_posix() for path in declared if path.name != "__init__"} - inlined_modules()
    return sorted("penstock." + name.replace("/", ".") for name in names)


def inlined_modules() -> set[str]:
    """Read the set in setup.py, without running it."""
    for statement in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "INLINED":
            names: set[str] = ast.literal_eval(statement.value)
            return names
    raise AssertionError("setup.py has no literal set INLINED")


def wrong_build_or_none() -> str | None:
    """Say what is wrong when the penstock under test is not the build that was asked for."""
    expected = os.environ.get("PENSTOCK_EXPECT")
    package = Path(str(penstock.__file__)).parent
    if expected == "compiled":
        strays = [name for name in modules_to_compile() if _is_interpreted(name)]
    elif expected == "interpreted":
        native = tuple(EXTENSION_SUFFIXES)
        strays = [str(path) for path in package.rglob("*") if path.name.endswith(native)]
    else:
        return f"PENSTOCK_EXPECT={expected} names no build" if expected else None
    return f"{package} is not the {expected} build, because of {strays}" if strays else None


def _is_interpreted(name: str) -> bool:
    spec = find_spec(name)
    return spec is None or str(spec.origin).endswith(".py")
