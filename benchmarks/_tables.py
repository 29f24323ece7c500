"""Writes measured tables into docs/performance.md, between the marks of their section."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

Rows = list[list[str]]


def machine_line() -> str:
    """The kind of machine that the figures were measured on, without its name."""
    redis = subprocess.run(
        ["redis-server", "--version"], capture_output=True, text=True, check=False
    )
    version = next((w[2:] for w in redis.stdout.split() if w.startswith("v=")), "?")
    return (
        f"{os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, Redis {version}"
    )


def markdown(head: list[str], rows: Rows) -> str:
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def write_section(
    page: Path, name: str, measured: str, tables: list[tuple[list[str], Rows]]
) -> None:
    """Replace the text between `<!-- name: begin -->` and `<!-- name: end -->`."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = page.read_text()
    head, rest = text.split(begin)
    tail = rest.split(end)[1]
    body = "\n\n".join(markdown(*table) for table in tables)
    page.write_text(f"{head}{begin}\n{body}\n\n{measured}\n{end}{tail}")
