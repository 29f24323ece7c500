"""The paths of the files of one data directory. redis.conf can change the names in parentheses.

DIR/penstock.lock                       locked by the process that uses the directory
DIR/dump.rdb                            the snapshot of SAVE and BGSAVE            (dbfilename)
DIR/appendonlydir/                      the log                                    (appenddirname)
    appendonly.aof.manifest             lists the files that count                  (appendfilename)
    appendonly.aof.1.base.rdb
    appendonly.aof.1.incr.aof
    temp-unfinished                     exists until a first log has its manifest
DIR/appendonly.aof                      the log of a Redis before 7: read, never written
"""

from __future__ import annotations

from dataclasses import dataclass

LOCK_NAME = "penstock.lock"


@dataclass(frozen=True, slots=True)
class Layout:
    """The names of one data directory."""

    directory: str
    dbfilename: str = "dump.rdb"
    appenddirname: str = "appendonlydir"
    appendfilename: str = "appendonly.aof"

    @property
    def lock(self) -> str:
        """The lock file."""
        return f"{self.directory}/{LOCK_NAME}"

    @property
    def snapshot(self) -> str:
        """The snapshot, written by SAVE and BGSAVE."""
        return f"{self.directory}/{self.dbfilename}"

    @property
    def log_dir(self) -> str:
        """The directory of the log."""
        return f"{self.directory}/{self.appenddirname}"

    @property
    def manifest(self) -> str:
        """The list of the log's files."""
        return f"{self.log_dir}/{self.appendfilename}.manifest"

    @property
    def unfinished(self) -> str:
        """While this exists without a manifest, a first log is being made: none of its files counts yet."""
        return f"{self.log_dir}/temp-unfinished"

    @property
    def old_log(self) -> str:
        """The log of a Redis before 7: a single file."""
        return f"{self.directory}/{self.appendfilename}"

    def log_file(self, name: str) -> str:
        """The path of a file of the log."""
        return f"{self.log_dir}/{name}"
