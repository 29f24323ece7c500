"""The result of a check, for the command line and for repair.

    Report
      Part "log"                            data that is read together, file by file
        FileReport  manifest   sound
        FileReport  base       sound        RDB 10, 17 keys
        FileReport  increment  damaged      at byte 4711: a batch whose checksum is wrong
        FileReport  increment  not read     follows the damage
        Totals                              counts of what could be read
        LeftOut                             each place that could not be read
      Part "snapshot"
        FileReport  snapshot   sound

A part is what a server would have in memory. Texts may contain bytes of the files, so they must be escaped
before they are printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.engine.execute import Engine

LEFT_OUT_KEPT_MAX = 100


class Verdict(Enum):
    """The state of a file."""

    SOUND = "sound"
    TORN = "torn"
    DAMAGED = "damaged"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    NOT_READ = "not read"


@dataclass(slots=True)
class FileReport:
    """One file. `offset`: the place of the error, or -1. `checksum`: the file has a valid one.

    `written`, `crc`: its final length and checksum, if the manifest records them.
    """

    path: str
    role: str
    kind: str = ""
    version: int = 0
    size: int = 0
    keys: int = 0
    commands: int = 0
    batches: int = 0
    checksum: bool = False
    verdict: Verdict = Verdict.SOUND
    offset: int = -1
    what: str = ""
    remedy: str = ""
    written: int | None = None
    crc: str | None = None

    def judge(self, verdict: Verdict, what: str, offset: int = -1, remedy: str = "") -> None:
        """Record an error. The first one is kept, because later ones may follow from it."""
        if self.verdict is Verdict.SOUND:
            self.verdict, self.what, self.offset, self.remedy = verdict, what, offset, remedy


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something missing from a repaired copy: bytes of a file, a command, or a key."""

    path: str
    offset: int
    size: int
    why: str


@dataclass(slots=True)
class Totals:
    """Counts of the data read."""

    databases: int = 0
    keys: int = 0
    streams: int = 0
    lists: int = 0
    strings: int = 0
    entries: int = 0
    groups: int = 0
    consumers: int = 0
    pending: int = 0
    expiring: int = 0


@dataclass(slots=True)
class Part:
    """Data that belongs together. `engine` holds what could be read, with `keep_data`."""

    name: str
    files: list[FileReport] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_count: int = 0
    engine: Engine | None = None
    rdb_version: int = 0
    past_damage: bool = False
    has_skipped: bool = False  # a value or a command was left out, and reading continued after it

    def leave_out(self, what: LeftOut) -> None:
        """Record it. Only the first ones are kept: a damaged file may have a million."""
        self.left_out_count += 1
        if len(self.left_out) < LEFT_OUT_KEPT_MAX:
            self.left_out.append(what)


@dataclass(slots=True)
class Report:
    """The result for one path."""

    path: str
    kind: str
    parts: list[Part] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def files(self) -> list[FileReport]:
        """All files of all parts."""
        return [file for part in self.parts for file in part.files]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any file."""
        found = {file.verdict for file in self.files}
        worst = (Verdict.DAMAGED, Verdict.MISSING, Verdict.TORN, Verdict.UNREADABLE)
        return next((verdict for verdict in worst if verdict in found), Verdict.SOUND)


def count(engine: Engine) -> Totals:
    """Count the data of an engine."""
    totals = Totals()
    for keyspace in engine.context.databases:
        totals.databases += bool(keyspace.values)
        totals.keys += len(keyspace.values)
        totals.expiring += len(keyspace.expires)
        for value in keyspace.values.values():
            if isinstance(value, Stream):
                totals.streams += 1
                totals.entries += value.length
                _count_groups(value, totals)
            elif isinstance(value, ListValue):
                totals.lists += 1
            else:
                totals.strings += 1
    return totals


def _count_groups(stream: Stream, totals: Totals) -> None:
    if stream.groups is None:
        return
    for _, group in stream.groups.pairs():
        totals.groups += 1
        totals.consumers += group.consumers.count
        totals.pending += group.pending.count
