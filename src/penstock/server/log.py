"""The server's log messages: one line each, to stderr or a file.

    15 Nov 2026 22:00:00.123 * ready on 127.0.0.1:6379 (penstock 0.1.0, compiled, compat 8.6, pid 123)

The sign is the level, as in Redis: . debug, - verbose, * notice, # warning.

A message may quote a path, a key or a system error. Control characters are escaped, so that a message stays
on one line and cannot control a terminal.
"""

from __future__ import annotations

import logging
import sys
import time

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


def start(path: str) -> None:
    """Log to a file, or to stderr if the path is empty. Raises: OSError."""
    handler = logging.FileHandler(path) if path else logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line())
    for former in LOG.handlers[:]:
        LOG.removeHandler(former)
    LOG.addHandler(handler)
    LOG.propagate = False


def set_level(name: str) -> None:
    """Set the lowest level that is logged, by Redis's name."""
    LOG.setLevel(LEVELS[name])
