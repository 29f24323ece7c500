"""The files of the repository, for tests that read them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "penstock"

# The folders in .gitignore, and .git: they do not belong to the repository.
NOT_OURS = {".git", ".venv", "build", "dist", "__pycache__", "penstock-data", ".hypothesis"}
NOT_OURS |= {".pytest_cache", ".mypy_cache", ".ruff_cache"}


def repository_files() -> Iterator[Path]:
    """All files of the repository, sorted."""
    yield from _files_below(ROOT)


def package_files(suffix: str) -> list[Path]:
    """The files of src/penstock with this suffix, sorted."""
    return sorted(PACKAGE.rglob(f"*{suffix}"))


@cache
def parse(path: Path) -> ast.Module:
    """The syntax tree of a file. It is shared: do not change it."""
    return ast.parse(path.read_text(), str(path))


def name_of(path: Path) -> str:
    """The path from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def _files_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in NOT_OURS or path.suffix == ".egg-info":
            continue
        if path.is_dir():
            yield from _files_below(path)
        else:
            yield path
