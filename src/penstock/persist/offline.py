"""Streams out of files, without a server: snapshots and logs, of penstock or of Redis.

    dump.rdb                     a snapshot: one key at a time is in memory
    appendonly.aof               the log of a Redis before 7, or one increment
    appendonlydir                a log with its manifest
    a data directory             its log, or else its snapshot

A log is done again from its start, so all of its data are in memory together. Nothing is ever written: a
torn tail, such as a server that runs leaves behind its last write, is left out and left alone.

Values other than streams are of no interest: what we hold is loaded, what we do not hold is stepped over,
and the commands of a log that work on such values do nothing.
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
"""What Redis logs for values that we do not hold."""


class StoredStream(NamedTuple):
    """A stream that was found, and where."""

    database: int
    key: bytes
    stream: Stream


class _ReadOnlyDisk(SystemDisk):
    """A disk on which a torn tail stays: what is read may belong to a server that runs."""

    def truncate(self, path: str, size: int) -> None:
        """See Disk."""


def streams_in(path: str) -> Iterator[StoredStream]:
    """Every stream of a file or a directory. Raises: CorruptData, OSError.

    What was yielded before an error must not be used.
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
    """A path that is there, and that is no directory without data. Raises: CorruptData, OSError."""
    place = Path(path)
    if not place.is_dir():
        place.stat()
        return
    layout = _layout(place)
    owned = (layout.manifest, layout.log_dir, layout.old_log, layout.snapshot)
    if any(Path(name).exists() for name in owned):
        return
    text = "no log and no snapshot of a server lies in it"
    if files := sorted(name for kind in ("rdb", "aof") for name in place.glob(f"*.{kind}")):
        text += f"; name its files: {files[0]} or {place}/*{files[0].suffix}"
    raise FileNotFoundError(errno.ENOENT, text, path)


def _is_snapshot(place: Path) -> bool:
    """Tell whether nothing but a snapshot is in a file; an old log may begin with one and go on."""
    with place.open("rb") as file:
        return file.read(len(rdb_format.MAGIC)) == rdb_format.MAGIC and not _is_log(place)


def _is_log(place: Path) -> bool:
    # Redis writes such a file under the log's name only: reading it to the end would be the only proof.
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
        Command(name, _do_nothing, -1, Flags.WRITE, NO_KEYS, "Nothing: its value is not held.")
        for name in FOREIGN_COMMANDS
        if name not in known
    ]
    recovery = Recovery(_ReadOnlyDisk(), _layout(place), engine, rows)
    recovery.skip_foreign = True
    return recovery


def _layout(place: Path) -> Layout:
    """A directory is a log's own, if a manifest lies in it, or the one above."""
    if not place.is_dir():
        return Layout(str(place.parent))
    manifests = sorted(place.glob("*" + _MANIFEST))
    if len(manifests) > 1:
        raise CorruptData(f"{place}: {len(manifests)} manifests; name the log's files", 0)
    if manifests:
        name = manifests[0].name.removesuffix(_MANIFEST)
        return Layout(str(place.parent), appenddirname=place.name, appendfilename=name)
    return Layout(str(place))


def _do_nothing(_context: Context, _frame: Frame) -> None:
    """A command on a value that we do not hold."""
