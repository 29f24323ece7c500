"""A temporary directory that no other user of the machine can have prepared.

Programs are started from it (Java, and the links of a SPARK_HOME), and its name in the shared temporary
directory is easy to guess. So it is used only if it is a real directory (no symbolic link), belongs to this
user and is closed to others. Otherwise a new directory with a random name is used, with a warning, and
removed at exit.

The check is sufficient because the temporary directory is sticky: a user cannot rename or replace the
directory of another user.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path


class ForeignDirectory(UserWarning):
    """The usual directory cannot be trusted. The text names it and its replacement."""


def private_directory(purpose: str) -> Path:
    """The directory for this user and purpose, or a new one for this process if it is not safe."""
    usual = Path(tempfile.gettempdir(), f"penstock-{purpose}-{os.getuid()}")
    with suppress(FileExistsError):
        usual.mkdir(mode=0o700)
    fault = fault_or_none(usual)
    if fault is None:
        return usual
    made = Path(tempfile.mkdtemp(prefix=f"penstock-{purpose}-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    warnings.warn(f"{usual} {fault}: using {made} instead", ForeignDirectory, stacklevel=2)
    return made


def fault_or_none(path: Path) -> str | None:
    """Why a directory cannot be trusted."""
    found = path.lstat()  # checks a link itself, not its target
    if not stat.S_ISDIR(found.st_mode):
        return "is not a directory"
    if found.st_uid != os.getuid():
        return "belongs to another user"
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return "is open to other users"
    return None
