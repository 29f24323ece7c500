"""Where the files of one data directory are, by the names that redis.conf has for them.

DIR/penstock.lock                       held by whoever uses the directory
DIR/dump.rdb                            the snapshot of SAVE and BGSAVE            (dbfilename)
DIR/appendonlydir/                      the log                                    (appenddirname)
    appendonly.aof.manifest             which of the files below count             (appendfilename)
    appendonly.aof.1.base.rdb
    appendonly.aof.1.incr.aof
    temp-unfinished                     there until a first log has its manifest
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
        """The file that is locked."""
        return f"{self.directory}/{LOCK_NAME}"

    @property
    def snapshot(self) -> str:
        """What SAVE writes."""
        return f"{self.directory}/{self.dbfilename}"

    @property
    def log_dir(self) -> str:
        """Where the log is."""
        return f"{self.directory}/{self.appenddirname}"

    @property
    def manifest(self) -> str:
        """What the log consists of."""
        return f"{self.log_dir}/{self.appendfilename}.manifest"

    @property
    def unfinished(self) -> str:
        """While this is there and no manifest is, the files of the log are a first one's: none counts yet."""
        return f"{self.log_dir}/temp-unfinished"

    @property
    def old_log(self) -> str:
        """The log of a Redis before 7, one file."""
        return f"{self.directory}/{self.appendfilename}"

    def log_file(self, name: str) -> str:
        """A file of the log."""
        return f"{self.log_dir}/{name}"
