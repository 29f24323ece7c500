"""Prints the requirements of the package, so that pip can install them before the package is built.

PySpark comes as source code, so pip packs it into a wheel and unpacks that at once. Without compression this
takes 18 seconds of CPU time less.

python tools/requirements.py spark | pip install -r /dev/stdin
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

FROM_SOURCE = ("pyspark",)
UNCOMPRESSED = '--config-settings="--build-option=--compression=stored"'


def main(extras: list[str]) -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    needed = list(project["dependencies"])
    for extra in extras:
        needed += project["optional-dependencies"][extra]
    for one in needed:
        print(f"{one} {UNCOMPRESSED}" if one.startswith(FROM_SOURCE) else one)


if __name__ == "__main__":
    main(sys.argv[1:])
