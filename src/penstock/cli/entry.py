"""Starts the `penstock` command. Ctrl-C ends it quietly even while its modules are still being imported."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path

INTERRUPTED = 130


def main() -> None:
    _prepare_streams()
    try:
        words = sys.argv[1:]
        if words[:1] == ["serve"] and not {"--help", "-h"} & set(words):
            # A server starts in half the time without the libraries of the command line.
            from penstock.cli.server_start import serve  # noqa: PLC0415

            sys.exit(serve(words[1:]))
        from penstock.cli.main import app  # noqa: PLC0415 - the import takes half a second
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    app(prog_name="penstock")


def _prepare_streams() -> None:
    # They are None if the shell closed them (`<&- >&- 2>&-`).
    sys.stdin = sys.stdin or Path(os.devnull).open()  # noqa: SIM115
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A character that the terminal's encoding lacks is escaped instead of raising.
            stream.reconfigure(errors="backslashreplace")
