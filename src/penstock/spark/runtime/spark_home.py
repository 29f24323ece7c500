"""A SPARK_HOME from which workers do not import Spark.

Spark puts SPARK_HOME/python/lib/pyspark.zip before everything else on its workers' path. That zip holds no
bytecode, so every process that Spark starts compiles pyspark anew: 1.1 s of CPU instead of 0.25, and a
session starts five of them before its first row. The process of a streaming query must be there within 10 s,
or the query fails; on a busy machine that second decides.

On this machine the workers have the package itself, by the same Python. So they get a SPARK_HOME of links,
without that zip.
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
    """Set SPARK_HOME, unless somebody has, or workers would not find pyspark; the folder, or None."""
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
                continue  # another process has just made it
    os.environ["SPARK_HOME"] = str(home)
    return home


def workers_find(package: Path) -> bool:
    """Whether a new process of this Python imports a package from there."""
    places = [*site.getsitepackages(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return str(package.parent) in places
