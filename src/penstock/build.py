"""Tells whether this build is compiled: the hot modules as C, or the same files interpreted.

`KIND` is "compiled" or "interpreted". It depends on the file that core.stream was actually loaded from, not
on the options of the installation.
"""

from __future__ import annotations

from penstock.core import stream

KIND = "interpreted" if str(stream.__file__).endswith(".py") else "compiled"
