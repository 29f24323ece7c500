"""Checks that a test run uses the build that it was started for.

PENSTOCK_EXPECT is "compiled" or "interpreted"; without it, any build is accepted. The check looks at the
installed files: an extension module silently takes precedence over the .py beside it.
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
    """The modules that setup.py compiles: all that have a .pxd, except those in INLINED."""
    package = ROOT / "src" / "penstock"
    declared = (path.relative_to(package).with_suffix("") for path in package.rglob("*.pxd"))
    names = {path.as_posix() for path in declared if path.name != "__init__"} - inlined_modules()
    return sorted("penstock." + name.replace("/", ".") for name in names)


def inlined_modules() -> set[str]:
    """The set INLINED of setup.py, read without running it."""
    for statement in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "INLINED":
            names: set[str] = ast.literal_eval(statement.value)
            return names
    raise AssertionError("setup.py has no literal set INLINED")


def wrong_build_or_none() -> str | None:
    """The problem, if the penstock under test is not the build that PENSTOCK_EXPECT names."""
    expected = os.environ.get("PENSTOCK_EXPECT")
    package = Path(str(penstock.__file__)).parent
    if expected == "compiled":
        strays = [name for name in modules_to_compile() if _is_interpreted(name)]
    elif expected == "interpreted":
        native = tuple(EXTENSION_SUFFIXES)
        strays = [str(path) for path in package.rglob("*") if path.name.endswith(native)]
    else:
        return f"PENSTOCK_EXPECT={expected} is not a build" if expected else None
    return f"{package} is not the {expected} build, because of {strays}" if strays else None


def _is_interpreted(name: str) -> bool:
    spec = find_spec(name)
    return spec is None or str(spec.origin).endswith(".py")
