"""Provides a SPARK_HOME with which workers start faster.

Spark puts SPARK_HOME/python/lib/pyspark.zip first on the path of its workers. The zip has no bytecode, so
each worker compiles pyspark again: 1.1 s of CPU instead of 0.25. A session starts five workers before its
first row. The worker of a streaming query must start within 10 s or the query fails, which happens on a busy
machine.

Local workers can import the installed package instead. So SPARK_HOME becomes a directory of links without the
zip.
"""

from __future__ import annotations

import os
import site
from hashlib import sha256
from pathlib import Path

import pyspark

from penstock.spark.runtime.private_directory import private_directory

LINKED = ("bin", "conf", "jars", "sbin")


def provide_home(parent: Path | None = None) -> Path | None:
    """Set SPARK_HOME and return it. Returns None if it is set already or workers would not find pyspark."""
    package = Path(pyspark.__file__).parent
    if "SPARK_HOME" in os.environ or not workers_find(package):
        return None
    parent = parent or private_directory("spark")
    home = parent / f"{pyspark.__version__}-{sha256(os.fsencode(package)).hexdigest()[:16]}"
    home.mkdir(exist_ok=True)
    for name in LINKED:
        if (package / name).is_dir() and not (home / name).is_symlink():
            try:
                (home / name).symlink_to(package / name)
            except FileExistsError:
                continue  # another process was faster
    os.environ["SPARK_HOME"] = str(home)
    return home


def workers_find(package: Path) -> bool:
    """Whether a new process of this Python can import the package."""
    places = [*site.getsitepackages(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return str(package.parent) in places
