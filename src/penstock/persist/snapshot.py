"""Writes all data of an engine to a file, as a snapshot (RDB) or as commands, and reads it back."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from penstock.engine.execute import Engine
from penstock.engine.table import Command
from penstock.errors import CorruptData
from penstock.persist.aof import file_crc
from penstock.persist.aof.batch import encode_batch
from penstock.persist.aof.commands_out import write_commands
from penstock.persist.aof.replay import Replay, Torn
from penstock.persist.disk import Disk, File
from penstock.persist.rdb.reader import RdbReader
from penstock.persist.rdb.value import ValueLimits
from penstock.persist.rdb.writer import RdbWriter, aux_fields, write_databases
from penstock.persist.replication_point import ReplicationPoint, aux_of, encode_point


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """How data is written.

    `preamble`: a base is a snapshot, not commands (aof-use-rdb-preamble). `point`: where the data is in a
    replication history.
    """

    compress: bool = True
    checksum: bool = True
    preamble: bool = True
    used_memory: int = 0
    rdb_version: int | None = None  # None: that of the level
    point: ReplicationPoint | None = None

    @property
    def form(self) -> str:
        """The extension of a base's name."""
        return "rdb" if self.preamble else "aof"


class _Vouching:
    """Writes commands in batches, because commands have no checksum of their own."""

    def __init__(self, file: File) -> None:
        self._file = file

    def __call__(self, data: bytes) -> None:
        # A base is read only after all of it is on disk, so no part of it can be torn.
        size = self._file.size
        self._file.write(encode_batch(data, size, size) + data)


def write_snapshot(file: File, engine: Engine, options: SnapshotOptions, is_base: bool) -> None:
    """Write all data. Raises: OSError."""
    context = engine.context
    if is_base and not options.preamble:
        write_commands(_Vouching(file), context.databases, context.compat)
        if options.point is not None:
            _Vouching(file)(encode_point(options.point))
        return
    write_rdb(file.write, engine, options, is_base)


def write_rdb(
    write: Callable[[bytes], object], engine: Engine, options: SnapshotOptions, is_base: bool
) -> None:
    """Write all data as a snapshot. Raises: OSError."""
    context = engine.context
    version = context.compat.rdb_version if options.rdb_version is None else options.rdb_version
    writer = RdbWriter(write, version, options.compress, options.checksum)
    aux = aux_fields(context.compat.redis_version, context.now_ms(), options.used_memory, is_base)
    writer.begin(aux | aux_of(options.point, is_base))
    write_databases(writer, context.databases)
    writer.end()


def read_back(disk: Disk, path: str, engine: Engine, rows: Iterable[Command]) -> None:
    """Read a file written by `write_snapshot`, as a start would. Raises: OSError if it cannot be read.

    A snapshot is read key by key, which takes the memory of its largest value. Commands are run in a spare
    engine, which takes the memory of all data.
    """
    try:
        keys = _count_keys(disk, path, engine, rows)
    except (CorruptData, Torn) as error:
        raise OSError(errno.EBADMSG, f"it cannot be read back: {error}", path) from error
    expected = sum(len(keyspace.values) for keyspace in engine.context.databases)
    if keys != expected:
        raise OSError(errno.EBADMSG, f"it has {keys} keys, not {expected}", path)


def _count_keys(disk: Disk, path: str, engine: Engine, rows: Iterable[Command]) -> int:
    is_snapshot = file_crc.is_snapshot(disk, path)
    source = disk.read(path)
    try:
        if is_snapshot:
            reader = RdbReader(source, path, ValueLimits(engine.limits, engine.list_limits))
            keys = sum(1 for _ in reader.items())
            if reader.offset != disk.size(path):
                raise reader.corrupt("more bytes follow its end")
            return keys
        spare = engine.spare()
        Replay(spare, rows).run(source, path)
        return sum(len(keyspace.values) for keyspace in spare.context.databases)
    finally:
        source.close()
