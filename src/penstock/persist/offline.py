"""Reads streams from files without a server: snapshots and logs of penstock or of Redis.

    dump.rdb                     a snapshot: one key at a time is in memory
    appendonly.aof               the log of a Redis before 7, or one increment
    appendonlydir                a log with its manifest
    a data directory             its log, or its snapshot if there is no log

A log is replayed from its start, so all of its data is in memory at once. Nothing is ever written: the torn
tail that a running server may leave behind its last write is ignored and stays in the file.

Only streams are returned. Values of other supported types are loaded, values of unsupported types are
skipped, and commands on unsupported types do nothing.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from penstock.core.frame import Frame
from penstock.core.stream import Stream
from penstock.engine.context import Context
from penstock.engine.execute import Engine
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CorruptData
from penstock.persist.disk import SystemDisk
from penstock.persist.layout import Layout
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb.reader import RdbReader
from penstock.persist.recovery import Recovery
from penstock.persist.rows import DATA_ROWS

DATABASES_MAX = 1024
_MANIFEST = ".manifest"

FOREIGN_COMMANDS = (
    "HSET", "HMSET", "HSETNX", "HDEL", "HINCRBY", "HINCRBYFLOAT", "HEXPIRE", "HPEXPIRE", "HEXPIREAT",
    "HPEXPIREAT", "HPERSIST", "HSETEX", "HGETDEL", "SADD", "SREM", "SPOP", "SMOVE", "SINTERSTORE",
    "SUNIONSTORE", "SDIFFSTORE", "ZADD", "ZREM", "ZINCRBY", "ZREMRANGEBYSCORE", "ZREMRANGEBYRANK",
    "ZREMRANGEBYLEX", "ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE", "ZRANGESTORE", "ZPOPMIN", "ZPOPMAX",
    "ZMPOP", "GEOADD", "GEOSEARCHSTORE", "GEORADIUS", "GEORADIUSBYMEMBER", "SETBIT", "BITOP",
    "BITFIELD", "PFADD", "PFMERGE", "SORT", "PUBLISH", "SPUBLISH", "SCRIPT", "FUNCTION",
)  # fmt: skip
"""Commands that Redis logs for values of unsupported types."""


class StoredStream(NamedTuple):
    """A stream, its database and its key."""

    database: int
    key: bytes
    stream: Stream


class _ReadOnlyDisk(SystemDisk):
    """A disk that never truncates: the files may belong to a running server."""

    def truncate(self, path: str, size: int) -> None:
        """See Disk."""


def streams_in(path: str) -> Iterator[StoredStream]:
    """Yield every stream of a file or a directory. Raises: CorruptData, OSError.

    If this raises, the streams that it yielded before must not be used either.
    """
    check_path(path)
    place = Path(path)
    if place.is_file() and _is_snapshot(place):
        yield from _in_snapshot(place)
        return
    recovery = _recovery(place)
    if place.is_file():
        recovery.read_files([str(place)])
    else:
        recovery.with_log()
    for database, keyspace in enumerate(recovery.engine.context.databases):
        for key, value in sorted(keyspace.values.items()):
            if isinstance(value, Stream):
                yield StoredStream(database, key, value)


def check_path(path: str) -> None:
    """Check that a path exists and, if it is a directory, holds data. Raises: CorruptData, OSError."""
    place = Path(path)
    if not place.is_dir():
        place.stat()
        return
    layout = _layout(place)
    owned = (layout.manifest, layout.log_dir, layout.old_log, layout.snapshot)
    if any(Path(name).exists() for name in owned):
        return
    text = "the directory holds neither a log nor a snapshot of a server"
    if files := sorted(name for kind in ("rdb", "aof") for name in place.glob(f"*.{kind}")):
        text += f"; give the path of a file: {files[0]} or {place}/*{files[0].suffix}"
    raise FileNotFoundError(errno.ENOENT, text, path)


def _is_snapshot(place: Path) -> bool:
    """Tell whether a file is only a snapshot. An old log may begin with one, with commands behind it."""
    with place.open("rb") as file:
        head = file.read(rdb_format.MAGIC_BYTES_MAX)
    return rdb_format.is_snapshot(head) and not _is_log(place)


def _is_log(place: Path) -> bool:
    # Only the name tells: otherwise the whole file would have to be read to find commands behind it.
    return place.suffix == ".aof"


def _in_snapshot(place: Path) -> Iterator[StoredStream]:
    with place.open("rb", buffering=0) as file:
        reader = RdbReader(file, str(place), skip_foreign=True)
        for item in reader.items():
            if isinstance(item.value, Stream):
                yield StoredStream(item.database, item.key, item.value)


def _recovery(place: Path) -> Recovery:
    engine = Engine(databases=DATABASES_MAX)
    rows = [*DATA_ROWS]
    known = {row.name.split(" ")[0] for row in rows}
    rows += [
        Command(name, _do_nothing, -1, Flags.WRITE, NO_KEYS, "Nothing: its type is not supported.")
        for name in FOREIGN_COMMANDS
        if name not in known
    ]
    recovery = Recovery(_ReadOnlyDisk(), _layout(place), engine, rows)
    recovery.skip_foreign = True
    return recovery


def _layout(place: Path) -> Layout:
    """The layout for a log directory, which has a manifest in it, or for a data directory."""
    if not place.is_dir():
        return Layout(str(place.parent))
    manifests = sorted(place.glob("*" + _MANIFEST))
    if len(manifests) > 1:
        raise CorruptData(
            f"{place}: {len(manifests)} manifests; give the path of a file of the log", 0
        )
    if manifests:
        name = manifests[0].name.removesuffix(_MANIFEST)
        return Layout(str(place.parent), appenddirname=place.name, appendfilename=name)
    return Layout(str(place))


def _do_nothing(_context: Context, _frame: Frame) -> None:
    """Handle a command on a value of an unsupported type."""
