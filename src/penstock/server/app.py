"""The composition root: builds the parts of a server and connects them. Nothing else."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import cast

import uvloop

from penstock.engine.execute import TABLE, Engine
from penstock.server.commands import connection as connection_commands
from penstock.server.commands import transactions
from penstock.server.connection import Connection, Inbox
from penstock.server.server import Server


async def run(port: int) -> None:
    loop = asyncio.get_running_loop()
    rows = [*TABLE.values(), *connection_commands.COMMANDS, *transactions.COMMANDS]
    server = Server(Engine(), rows, loop)
    inbox = Inbox()
    # Connection has a protocol's methods; asyncio asks for no more, whatever its types say.
    protocol = cast("Callable[[], asyncio.BaseProtocol]", partial(Connection, server, inbox))
    listener = await loop.create_server(protocol, "127.0.0.1", port)
    gc.disable()
    await listener.serve_forever()


if __name__ == "__main__":
    uvloop.run(run(int(sys.argv[1])))
