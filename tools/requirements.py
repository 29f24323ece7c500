"""Prints the requirements of the package, so that pip can install them before the package is built.

python tools/requirements.py spark | pip install -r /dev/stdin
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main(extras: list[str]) -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    needed = list(project["dependencies"])
    for extra in extras:
        needed += project["optional-dependencies"][extra]
    print("\n".join(needed))


if __name__ == "__main__":
    main(sys.argv[1:])
