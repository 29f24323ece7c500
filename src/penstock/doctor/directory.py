"""Rules about a data directory: its disk, its files, and the streams in them.

The speed of the disk is measured: a small file is written and synced a few times, then removed. Nothing else
is changed, so a server may use the directory meanwhile.
"""

from __future__ import annotations

import os
import stat
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID
from penstock.doctor.finding import Finding, Severity, disk_findings, fsync_findings
from penstock.doctor.streams import (
    ConsumerFacts,
    GroupFacts,
    Limits,
    StreamFacts,
    stream_findings,
)
from penstock.errors import CorruptData
from penstock.persist.disk import Disk, reason
from penstock.persist.layout import Layout
from penstock.persist.offline import streams_in

FSYNCS = 15
BLOCK = bytes(4096)
# Files that hold changes which are no longer in the data, and what they are.
KEPT = {
    "cut-*": "the torn end of a log",
    "dropped-*.aof": "changes that only this server had when it got a snapshot",
}


def directory_findings(path: str, disk: Disk, now_ms: int, limits: Limits) -> Iterator[Finding]:
    """Everything that is wrong with a data directory. Raises: OSError if it cannot be read."""
    place = Path(path)
    found = os.statvfs(path)
    yield from disk_findings(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize, path)
    try:
        yield from fsync_findings(fsync_seconds(path, disk), path)
    except OSError as error:
        yield Finding(
            Severity.DANGER,
            "failing-disk",
            f"a file in {path} cannot be written: {reason(error)}",
            "repair the disk or the permissions: a server could not log here",
        )
    if stat.S_IMODE(place.stat().st_mode) & 0o077:
        yield Finding(
            Severity.WARNING,
            "open-directory",
            f"other users of this machine may enter {path}",
            f"chmod 700 {path}",
        )
    for kept in sorted(place.glob("dropped-*/")):
        yield Finding(
            Severity.WARNING,
            "kept-changes",
            f"{kept} holds the data that this server had before a snapshot: some of it may be nowhere else",
            f"look at it with penstock check {kept} or penstock serve --dir {kept}, then remove it",
        )
    for pattern, what in KEPT.items():
        for file in sorted(place.rglob(pattern)):
            yield Finding(
                Severity.WARNING,
                "kept-changes",
                f"{file} holds {what}: changes that are not in the data",
                "look at it with penstock inspect or a text editor, then move it away",
            )
    yield from _about_data(path, now_ms, limits)


def fsync_seconds(path: str, disk: Disk) -> float:
    """The usual time of an fsync in a directory: the median of a few. Raises: OSError."""
    name = f"{path}/temp-doctor-{os.getpid()}"
    file = disk.create(name)
    times = []
    try:
        for _ in range(FSYNCS):
            file.write(BLOCK)
            began = time.monotonic()
            file.sync()
            times.append(time.monotonic() - began)
    finally:
        file.close()
        disk.remove(name)
    return statistics.median(times)


def _about_data(path: str, now_ms: int, limits: Limits) -> Iterator[Finding]:
    layout = Layout(path)
    if not Path(layout.log_dir).exists() and not Path(layout.old_log).exists():
        lost = "only a snapshot" if Path(layout.snapshot).exists() else "no data at all"
        yield Finding(
            Severity.WARNING,
            "no-log",
            f"{path} has no log, {lost}",
            "with appendonly yes a server keeps every change",
        )
        if lost != "only a snapshot":
            return
    try:
        for stored in streams_in(path):
            yield from stream_findings(_facts(stored.key, stored.stream, now_ms), now_ms, limits)
    except (CorruptData, OSError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        yield Finding(
            Severity.DANGER,
            "damaged-files",
            f"the data cannot be read: {why}",
            f"penstock check {path}",
        )


def _facts(name: bytes, stream: Stream, now_ms: int) -> StreamFacts:
    groups = [] if stream.groups is None else list(stream.groups.pairs())
    cut = stream.entries_added != stream.length or stream.max_deleted_id != StreamID(0, 0)
    described = []
    for group_name, group in groups:
        consumers = [
            ConsumerFacts(one.name, one.pending.count, max(0, now_ms - one.seen_ms))
            for _, one in group.consumers.pairs()
        ]
        lag = group.lag_or_none(stream)
        is_behind = bool(lag) if lag is not None else group.last_id < stream.last_id
        described.append(GroupFacts(group_name, lag, is_behind, group.pending.count, consumers))
    return StreamFacts(name, stream.length, stream.last_id.ms, cut, described)
