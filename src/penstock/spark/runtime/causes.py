"""Extracts the one line that matters from an error of Spark.

An error of a worker reaches the driver as the text of a traceback, nested in Java exceptions. The last line
of the innermost traceback is the cause. For an error of Spark itself the cause is its message without plan,
query, SQLSTATE and stack.
"""

from __future__ import annotations

import re

CAUSE_CHARACTERS_MAX = 600

_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"((?:\w+\.)*\w+): (.+)", re.S)
_CONDITION = re.compile(r"\[([A-Z0-9_.]+)\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w{5}.*", re.S)
_CAUSED = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.M)
_ENDS = (
    "\n\n=== Streaming Query ===",
    "\n\n== SQL ==",
    "\nJVM stacktrace:",
    "\n\tat ",
    "\n\n",
    ";\n",
)


def cause_of(error: object) -> str:
    """The cause of an error, on one line."""
    text = str(error)
    if _TRACEBACK in text:
        raised = _RAISED.match(_frames_skipped(text.rsplit(_TRACEBACK, 1)[1]))
        if raised:
            inner = raised[2]
            name = raised[1].rsplit(".", 1)[-1]
            ours = raised[1].startswith("penstock.")
            return _short(inner if ours else f"{name}: {inner}")
    nested = _CAUSED.findall(text)
    return _short(nested[-1] if nested else text)


def _frames_skipped(text: str) -> str:
    """A traceback without its frames. Frames are indented, the exception is not."""
    lines = text.strip("\n").split("\n")
    while lines and (not lines[0] or lines[0].startswith(" ")):
        del lines[0]
    return "\n".join(lines)


def _short(text: str) -> str:
    text = text.strip()
    for end in _ENDS:
        text = text.split(end, 1)[0]
    text = _STATE.sub("", _CONDITION.sub("", text, 1))
    text = " ".join(text.split())
    if len(text) > CAUSE_CHARACTERS_MAX:
        return text[:CAUSE_CHARACTERS_MAX] + "..."
    return text.rstrip(".; ")
