"""The server's log messages: one line each, to stderr or a file, as text or as JSON.

    15 Nov 2026 22:00:00.123 * ready on 127.0.0.1:6379 (penstock 0.1.0, compiled, compat 8.6, pid 123)

The sign is the level, as in Redis: . debug, - verbose, * notice, # warning. With `log-format json`:

    {"time": "2026-11-15T22:00:00.123Z", "level": "notice", "pid": 123, "message": "ready on ..."}

A log file that was moved away by a program such as logrotate is made again with the next message.

A message may quote a path, a key or a system error. Control characters are escaped, so that a message stays
on one line and cannot control a terminal.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler

LOG = logging.getLogger("penstock.server")
VERBOSE = 15
# C0, DEL and C1, and the surrogates of bytes that are not UTF-8, which no handler could write.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {
    0xDC00 + byte: f"\\x{byte:02x}" for byte in range(128, 256)
}
LEVELS = {
    "debug": logging.DEBUG,
    "verbose": VERBOSE,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "nothing": logging.CRITICAL + 1,
}


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%d %b %Y %H:%M:%S", time.localtime(record.created))
        if record.levelno >= logging.WARNING:
            sign = "#"
        elif record.levelno >= logging.INFO:
            sign = "*"
        else:
            sign = "-" if record.levelno >= VERBOSE else "."
        line = f"{at}.{int(record.msecs):03d} {sign} {record.getMessage().translate(_CONTROLS)}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class _Json(logging.Formatter):
    """One JSON object, in ASCII. Control characters are escaped as in text."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, object] = {
            "time": at.replace("+00:00", "Z"),
            "level": _level_name(record.levelno),
            "pid": record.process,
            "message": record.getMessage().translate(_CONTROLS),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def _level_name(level: int) -> str:
    """Redis's name of a level."""
    named = [name for name, least in LEVELS.items() if level >= least]
    return named[-1] if named else "debug"


def start(path: str, form: str = "text") -> None:
    """Log to a file, or to stderr if the path is empty, as `text` or `json`. Raises: OSError."""
    handler = WatchedFileHandler(path) if path else logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Line())
    for former in LOG.handlers[:]:
        LOG.removeHandler(former)
        former.close()
    LOG.addHandler(handler)
    LOG.propagate = False


def set_level(name: str) -> None:
    """Set the lowest level that is logged, by Redis's name."""
    LOG.setLevel(LEVELS[name])
