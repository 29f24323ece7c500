"""Imports and cimports point downwards. The lower layers use no clock, no random numbers and no threads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source_tree import PACKAGE, name_of, package_files, parse

VOCABULARY = {"errors", "reply"}  # importable from anywhere
# Each package, and the packages below it that it may import.
MAY_IMPORT: dict[str, set[str]] = {
    name: set() for name in (*VOCABULARY, "_version", "core", "metrics")
} | {
    "wire": {"core"},
    "engine": {"core"},
    "persist": {"core", "wire", "engine"},
    "build": {"core"},
    "server": {"core", "wire", "engine", "persist", "metrics", "build", "_version"},
    "embedded": {"core", "engine", "persist", "server"},
    "client": {"core", "wire"},
    "spark": {"core", "persist", "client"},
    "work": {"core", "engine", "embedded", "client", "metrics", "__init__"},
    "human": {"core"},
    "inspect": {"core", "persist", "client"},
    "web": {"core", "engine", "persist", "client", "human", "inspect", "metrics", "doctor"},
    "doctor": {"core", "persist", "client", "human"},
    "backup": {"core", "persist", "client", "server"},
    "demo": set(),  # it starts the `penstock` command, as a user does
    "cli": {
        *(
            "core",
            "persist",
            "client",
            "human",
            "inspect",
            "spark",
            "web",
            "demo",
            "server",
            "metrics",
        ),
        *("backup", "doctor"),
        *("engine", "work"),
        *("build", "_version"),
    },
    "aio": {"engine", "embedded"},
    "__init__": {"embedded", "_version"},
    "__main__": {"cli"},
}

TIMELESS = {"core", "wire", "engine"}
TIMELESS_BAN = {"time", "datetime", "random", "secrets", "asyncio", "threading", "socket"}
THE_CLOCK = PACKAGE / "engine" / "wall_clock.py"
THE_DISK = PACKAGE / "persist" / "disk.py"
FSYNCS = {"fsync", "fdatasync"}

SOURCES = [*package_files(".py"), *package_files(".pxd")]
IDS = [name_of(path) for path in SOURCES]


def layer_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.split(".")[0]


def imported_modules(path: Path) -> Iterator[str]:
    """Every dotted name that a file imports. `from a import b` counts as a.b, because b may be a module."""
    if path.suffix == ".pxd":
        yield from cimported_modules(path.read_text())
        return
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def cimported_modules(text: str) -> Iterator[str]:
    for module, names in re.findall(r"^\s*from\s+([\w.]+)\s+c?import\s+([^#\n]+)", text, re.M):
        yield from (f"{module}.{name}" for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", names))
    for names in re.findall(r"^\s*c?import\s+([^#\n]+)", text, re.M):
        yield from re.findall(r"([\w.]+)(?:\s+as\s+\w+)?", names)


def imported_layers(path: Path) -> set[str]:
    ours = (name.split(".") for name in imported_modules(path))
    return {parts[1] if len(parts) > 1 else "__init__" for parts in ours if parts[0] == "penstock"}


@pytest.mark.parametrize("path", SOURCES, ids=IDS)
def test_imports_point_down(path: Path) -> None:
    layer = layer_of(path)
    assert layer in MAY_IMPORT, f"{name_of(path)} belongs to no layer of MAY_IMPORT"
    allowed = MAY_IMPORT[layer] | {layer}
    if layer not in VOCABULARY:
        allowed |= VOCABULARY
    extra = imported_layers(path) - allowed
    assert not extra, f"{name_of(path)} imports from above: {sorted(extra)}"


@pytest.mark.parametrize("path", SOURCES, ids=IDS)
def test_lower_layers_have_no_clock_no_random_numbers_and_no_threads(path: Path) -> None:
    if layer_of(path) not in TIMELESS or path == THE_CLOCK:
        return
    banned = {name.split(".")[0] for name in imported_modules(path)} & TIMELESS_BAN
    assert not banned, f"{name_of(path)} imports {sorted(banned)}; pass it as an argument"


@pytest.mark.parametrize("path", package_files(".py"), ids=name_of)
def test_only_the_disk_calls_fsync(path: Path) -> None:
    names = {name.split(".")[-1] for name in imported_modules(path)}
    names |= {node.attr for node in ast.walk(parse(path)) if isinstance(node, ast.Attribute)}
    assert path == THE_DISK or not names & FSYNCS, (
        f"{name_of(path)} calls fsync outside persist/disk.py"
    )


def test_every_form_of_cimport_is_found() -> None:
    text = (
        "from penstock.engine cimport table, spec as rows  # why\n"
        "cimport penstock.wire.frame as frame\n"
        "import cython\n"
        "from libc.string cimport memcpy\n"
    )
    assert set(cimported_modules(text)) == {
        "penstock.engine.table",
        "penstock.engine.spec",
        "penstock.wire.frame",
        "cython",
        "libc.string.memcpy",
    }
