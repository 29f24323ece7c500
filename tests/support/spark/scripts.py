"""Runs a Python script with Spark the way a user does, without an activated virtual environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from penstock.spark.runtime.java import provide_java

RUN_SECONDS_MAX = 300


def run_script(script: Path, folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    """Run a script by the absolute path of this Python. PATH has only the system's programs."""
    java_home = provide_java() or Path(shutil.which("java") or "").resolve().parents[1]
    keep = ("HOME", "JDK_JAVA_OPTIONS", "LANG", "TMPDIR")
    environment = {name: os.environ[name] for name in keep if name in os.environ}
    # The source tree needs PYTHONPATH; an installed package does not.
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    environment |= {
        "PATH": "/usr/bin:/bin",
        "JAVA_HOME": str(java_home),
        "PYTHONPATH": os.pathsep.join(str(Path(path).absolute()) for path in paths if path),
        "PENSTOCK_URL": url,
    }
    return subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
