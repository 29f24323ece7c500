"""The log of a table in a table format, Delta or Iceberg: what writers and readers need to know of it.

A log has versions. Each version names the data files of the table, so readers see whole commits. Every commit
of penstock stores in the log, together with its files:

    query       the id of the query that owns the table
    batch       the number of the newest batch, -1 if there is none
    position    the last id of each source stream
    commits     the number of commits of penstock so far
    fence       the number of the newest commit that is a fence, 0 if there is none

The first three are the same as in a manifest of a Parquet lake, so a `Manifest` without files has them. A
driver that finds more `commits` than it has made itself knows that another driver writes to the table.

A fence is a commit without a batch. It makes stale drivers fail. All files that were written for a commit of
this number are left over, because the commit has none.

Nothing here needs Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.spark.lake.manifest import ArchiveError, DataFile, Manifest

DATA = "data"  # the directory of the data files in a table
NO_BATCH = -1
COMMITS_MAX = 10  # tries of one commit; another program does not change a table all the time


class Conflict(ArchiveError):
    """Another program has changed the table since it was loaded. Nothing was committed."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A version of a table. `version` is the object of the library, to which a commit can be added."""

    newest: Manifest
    commits: int
    version: Any
    fence: int = 0

    def fence_after(self, after: Manifest) -> int:
        """The fence after the next commit, which is one itself if it has the same batch."""
        return self.commits + 1 if after.batch == self.newest.batch else self.fence


@dataclass(frozen=True, slots=True)
class TableFile:
    """One data file of a version. Its path is complete, with or without a scheme."""

    path: str
    values: Mapping[str, Any]  # of the partition columns
    rows: int
    bytes: int

    @property
    def partition(self) -> str:
        """The partition as it would be named as a directory: `day=2026-11-16`."""
        return "/".join(f"{name}={value}" for name, value in self.values.items())


# Writes the rows of some files to one new file.
Rewrite = Callable[[Sequence[TableFile]], DataFile]


class TableLog(Protocol):
    """The log of one table. All methods raise ArchiveError."""

    @property
    def root(self) -> str:
        """The directory of the table."""

    @property
    def format(self) -> str:
        """The format as in `[archive] format`."""

    @property
    def own_names(self) -> frozenset[str]:
        """What the library writes into the directory of a table."""

    @property
    def keeps_partitions(self) -> bool:
        """Whether the data files must have the partition columns, too."""

    def load(self) -> TableState | None:
        """The newest version, or None if there is no table."""

    def create(self, first: Manifest) -> None:
        """Create a table without rows. Raises: Conflict, if there is one."""

    def commit(self, before: TableState, after: Manifest, files: Sequence[DataFile]) -> list[str]:
        """Add files, batch and position, and new columns, to the version `before`.

        Returns the files of the log that it has written, relative to the table. Raises: Conflict.
        """

    def files(self, state: TableState) -> list[TableFile]:
        """The data files of a version. Raises: ArchiveError, if rows of them are marked as deleted."""

    def compact(self, state: TableState, target_bytes: int, rewrite: Rewrite) -> None:
        """Merge small files. Readers see all rows at any time. Raises: ArchiveError."""


def plain_path(location: str) -> str:
    """A location without the scheme, if it is on this machine."""
    scheme, colon, path = location.partition(":")
    return f"/{path.lstrip('/')}" if colon and scheme == "file" else location


def first_line(error: Exception) -> str:
    """The first line of an error of a library: the others repeat it or are a trace."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def not_ours(root: str, what: str) -> ArchiveError:
    """The error for a table that penstock has not written."""
    return ArchiveError(
        f"{root} is a table of another program: {what}. penstock uses only tables that it has created: choose"
        " another directory"
    )
