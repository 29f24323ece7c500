"""penstock: a durable message queue with the data model of Redis Streams, in compiled Python.

    import penstock
    db = penstock.open("data")
    db.xadd("orders", {"sku": "A1", "qty": 2})

`open` returns a `Database`. `penstock.aio.open` returns one for asyncio.

    core/      data structures: streams, groups, listpacks, the radix tree
    wire/      the Redis protocol: bytes to commands, replies to bytes
    engine/    the commands on data, and what they mean
    persist/   the append-only file, snapshots, recovery
    server/    the server: connections, sessions, settings, INFO
    embedded/  Database: the engine inside your own process
    aio        the same for asyncio
    client/    reads streams from a server in bulk, into Arrow columns
    spark/     Spark: source, sink, lake, pipelines
    inspect/   explains the bytes of a stream
    human/     times, conditions and text as people write them
    cli/       the `penstock` command
    web/       the dashboard
    demo/      what `make run` shows
    errors     all exceptions
    reply      reply values that plain Python values cannot express
    build      whether this build is compiled or interpreted
"""

from penstock._version import VERSION as __version__
from penstock.embedded.database import Database
from penstock.embedded.opening import open
from penstock.errors import (
    CommandError,
    ConfigError,
    ConnectionLost,
    CorruptData,
    DatabaseClosed,
    DataError,
    DirectoryInUse,
    PenstockError,
    UnreadableValue,
    WatchError,
)

__all__ = [
    "CommandError",
    "ConfigError",
    "ConnectionLost",
    "CorruptData",
    "DataError",
    "Database",
    "DatabaseClosed",
    "DirectoryInUse",
    "PenstockError",
    "UnreadableValue",
    "WatchError",
    "__version__",
    "open",
]
