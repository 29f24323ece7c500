"""Starts the `penstock` command. Ctrl-C ends it quietly even while its modules are still being imported."""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    try:
        from penstock.cli.main import main as run  # noqa: PLC0415 - the import takes a third of a second
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()
