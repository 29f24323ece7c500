"""Which build this is: the hot modules compiled to C, or the same files interpreted.

`KIND` is "compiled" or "interpreted". It is read off the file that core.stream was really loaded from,
not off what the installation meant to do.
"""

from __future__ import annotations

from penstock.core import stream

KIND = "interpreted" if str(stream.__file__).endswith(".py") else "compiled"
