"""Whether the server answers, asked once a second, so that every page can say so at once.

The question is its time, so the difference between the clocks is always known.
"""

from __future__ import annotations

import asyncio

from penstock.client.replies import UnexpectedReply
from penstock.web.server.asking import ServerClient, ServerUnreachable

ASK_SECONDS = 1.0
ANSWER_SECONDS_MAX = 3.0


class ServerHealth:
    """The newest answer of a server. `problem` is empty if all is well."""

    def __init__(self, server: ServerClient) -> None:
        self._server = server
        self.problem = ""

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(ASK_SECONDS)

    async def look(self) -> None:
        """Ask once."""
        try:
            await asyncio.wait_for(self._server.now_ms(), ANSWER_SECONDS_MAX)
            self.problem = ""
        except ServerUnreachable as error:
            self.problem = str(error)
        except TimeoutError:
            self.problem = f"{self._server.name} does not answer"
        except UnexpectedReply:  # the server answers
            self.problem = ""
