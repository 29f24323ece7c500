"""The whole command table of a server: what works on data, then what works on clients and on the server."""

from __future__ import annotations

from penstock.engine.execute import TABLE
from penstock.engine.table import Command
from penstock.server.commands import (
    admin,
    connection,
    debug,
    info,
    introspection,
    latency,
    memory,
    monitor,
    slowlog,
    transactions,
)

ROWS: tuple[Command, ...] = (
    *TABLE.values(),
    *(
        row
        for module in (
            connection,
            transactions,
            info,
            introspection,
            admin,
            slowlog,
            monitor,
            memory,
            latency,
            debug,
        )
        for row in module.COMMANDS
    ),
)
