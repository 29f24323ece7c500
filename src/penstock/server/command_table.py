"""The command table of a server: commands on data, then commands on clients and on the server."""

from __future__ import annotations

from penstock.engine.table import Command
from penstock.persist.rows import DATA_ROWS
from penstock.server.commands import (
    admin,
    config,
    debug,
    info,
    introspection,
    latency,
    memory,
    monitor,
    persistence,
    pubsub,
    replication,
    slowlog,
    transactions,
    waits,
)
from penstock.server.commands.clients import acl, client_rows, connection

_MODULES = (
    *(connection, client_rows, acl, transactions, pubsub),
    *(config, info, introspection, admin, replication, waits, persistence),
    *(slowlog, monitor, memory, latency, debug),
)

ROWS: tuple[Command, ...] = (
    *DATA_ROWS,
    *(row for module in _MODULES for row in module.COMMANDS),
)
