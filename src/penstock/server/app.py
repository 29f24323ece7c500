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
from penstock.server.commands import client_rows, pubsub, transactions
from penstock.server.commands import connection as connection_commands
from penstock.server.connection import Connection, Inbox
from penstock.server.server import Server


async def run(port: int, compat_version: str | None = None) -> None:
    loop = asyncio.get_running_loop()
    modules = (connection_commands, client_rows, pubsub, transactions)
    rows = [*TABLE.values(), *(row for module in modules for row in module.COMMANDS)]
    server = Server(Engine(compat_version=compat_version), rows, loop)
    broken: asyncio.Future[str] = loop.create_future()
    server.on_broken = partial(_note_broken, broken)
    inbox = Inbox()
    # Connection has a protocol's methods; asyncio asks for no more, whatever its types say.
    protocol = cast("Callable[[], asyncio.BaseProtocol]", partial(Connection, server, inbox))
    listener = await loop.create_server(protocol, "127.0.0.1", port)
    gc.disable()
    async with listener:
        name = await broken  # forever, as a rule
    sys.exit(f"{name} failed half-way: what is in memory cannot be trusted, the server stops")


def _note_broken(broken: asyncio.Future[str], name: str) -> None:
    if not broken.done():
        broken.set_result(name)


if __name__ == "__main__":
    uvloop.run(run(int(sys.argv[1]), *sys.argv[2:3]))
