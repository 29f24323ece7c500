"""penstock: a durable message queue with the data model of Redis Streams, in compiled Python.

    import penstock
    db = penstock.open("data")
    db.xadd("orders", {"sku": "A1", "qty": 2})

`open` returns a `Database`. `penstock.aio.open` returns one for asyncio.
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
