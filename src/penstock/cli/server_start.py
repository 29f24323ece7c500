"""Runs a server with the arguments of `penstock serve`: `[FILE] [--DIRECTIVE VALUE ...]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from penstock.errors import ConfigError
from penstock.human.show import harmless
from penstock.server import app
from penstock.server.config import directives
from penstock.server.config import file as config_file

STOPPED_IN_ORDER = 0
FAILED = 1
WRONG_WORDS = 2


def serve(words: Sequence[str]) -> int:
    """Serve until a stop is requested; the exit code. Errors are printed on stderr."""
    rest = list(words)
    if rest[:1] == ["--"]:
        del rest[0]
    file = rest.pop(0) if rest and not rest[0].startswith("--") else None
    if rest and not rest[0].startswith("--"):
        _say(
            f"unexpected {rest[0]!r}: write settings as --DIRECTIVE VALUE; see penstock serve --help"
        )
        return WRONG_WORDS
    config = directives.default_config()
    try:
        if file is not None:
            config.load(config_file.read_file(file))
            config.file = file
        config.load(config_file.read_command_line(rest))
        return STOPPED_IN_ORDER if app.run(config) else FAILED
    except ConfigError as error:
        _say(str(error))
        return FAILED


def _say(text: str) -> None:
    sys.stderr.write(f"penstock serve: {harmless(text)}\n")
