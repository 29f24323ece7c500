"""A server in the background (`daemonize`), and the file with its process id (`pidfile`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.server.log import LOG


def go_to_background() -> None:
    """Continue in a child process without a terminal. The parent ends at once.

    Called before the first thread and the event loop exist, because a fork copies neither.
    """
    if os.fork():
        os._exit(0)
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    if nowhere > 2:
        os.close(nowhere)


@contextmanager
def pid_file(path: str) -> Iterator[None]:
    """Keep the id of this process in a file inside the `with` block. The server runs without it too."""
    if not path:
        yield
        return
    file = Path(path).absolute()
    try:
        file.write_text(f"{os.getpid()}\n")
    except OSError as error:
        LOG.warning("pidfile %s: %s", path, error.strerror)
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()
