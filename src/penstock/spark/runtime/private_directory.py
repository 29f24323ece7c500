"""A directory that no other user of the machine can have prepared.

Java and the links of a SPARK_HOME are started from it, and it lies in the shared temporary directory under a
name that everybody can guess. So it is used only if it is a real directory (no symbolic link), belongs to
this user and gives no rights to others. Otherwise a new one with a random name takes its place, a warning
says so, and it is removed when the process ends.

The check is enough because the temporary directory is sticky: nobody can rename or replace a directory that
belongs to somebody else.
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
    """The usual directory cannot be trusted; the text names it and the one that is used instead."""


def private_directory(purpose: str) -> Path:
    """The directory for this user and purpose, or a new one for this process if that is not safe to use."""
    usual = Path(tempfile.gettempdir(), f"penstock-{purpose}-{os.getuid()}")
    with suppress(FileExistsError):
        usual.mkdir(mode=0o700)
    fault = fault_or_none(usual)
    if fault is None:
        return usual
    made = Path(tempfile.mkdtemp(prefix=f"penstock-{purpose}-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    warnings.warn(f"{usual} {fault}: {made} is used instead", ForeignDirectory, stacklevel=2)
    return made


def fault_or_none(path: Path) -> str | None:
    """Why a directory cannot be trusted."""
    found = path.lstat()  # a link is judged itself, not what it points to
    if not stat.S_ISDIR(found.st_mode):
        return "is not a directory"
    if found.st_uid != os.getuid():
        return "belongs to another user"
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return "is open to other users"
    return None
