"""Replaces the certificate of the dashboard while it runs, as soon as its files have changed.

New connections get the new certificate. If the new files cannot be used, the old certificate stays in use.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

LOOK_SECONDS = 1.0
LOG = logging.getLogger("uvicorn.error")

Stamp = list[tuple[int, int, int] | None]


class Certificates:
    """The files of a certificate, and the context that uses them: look, run."""

    def __init__(self, context: ssl.SSLContext, certificate: str, key: str | None) -> None:
        self._context = context
        self._certificate = certificate
        self._key = key
        self._stamp = self._stamp_now()

    def _stamp_now(self) -> Stamp:
        """What changes when a file is replaced; None for a file that is not there."""
        found: Stamp = []
        for name in filter(None, (self._certificate, self._key)):
            try:
                about = Path(name).stat()
            except OSError:
                found.append(None)
            else:
                found.append((about.st_mtime_ns, about.st_size, about.st_ino))
        return found

    def look(self) -> None:
        """Load the files if they have changed."""
        stamp = self._stamp_now()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            # In a context of its own first: a certificate without its key must not get into the other one.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self._certificate, self._key)
            self._context.load_cert_chain(self._certificate, self._key)
        except OSError as error:  # ssl.SSLError is an OSError
            LOG.warning(
                "the new certificate cannot be used, the old one stays: %s", error.strerror or error
            )
        else:
            LOG.warning("the certificate was replaced")

    async def run(self) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()
