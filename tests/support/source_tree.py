"""The files of the repository, for the tests that read them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "penstock"

# What .gitignore names, and git's own folder: none of it is the repository's.
NOT_OURS = {".git", ".venv", "build", "dist", "__pycache__", "penstock-data", ".hypothesis"}
NOT_OURS |= {".pytest_cache", ".mypy_cache", ".ruff_cache"}


def repository_files() -> Iterator[Path]:
    """Every file that somebody wrote, in order."""
    yield from _files_below(ROOT)


def package_files(suffix: str) -> list[Path]:
    """The files of src/penstock with this suffix, in order."""
    return sorted(PACKAGE.rglob(f"*{suffix}"))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def name_of(path: Path) -> str:
    """The path as a person would type it."""
    return path.relative_to(ROOT).as_posix()


def _files_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in NOT_OURS or path.suffix == ".egg-info":
            continue
        if path.is_dir():
            yield from _files_below(path)
        else:
            yield path
