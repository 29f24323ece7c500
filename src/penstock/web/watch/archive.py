"""History that survives the dashboard: numbers over time in one small SQLite file.

Every sample is written in three steps of resolution. A coarser step holds the mean of its interval, and is
kept for longer. So a series needs at most about 4,000 rows, whatever its age.

    step      interval   kept for     rows
    fine      10 s       1 hour        360
    middle    1 min      1 day       1,440
    coarse    10 min     14 days     2,016
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import PenstockError

FILE_NAME = "history.sqlite3"
# The interval of each step, and for how long its rows are kept, in seconds.
STEPS = ((10, 3600), (60, 24 * 3600), (600, 14 * 24 * 3600))
PRUNE_SECONDS = 600
BUSY_SECONDS_MAX = 2.0

SCHEMA = """
CREATE TABLE IF NOT EXISTS series (id INTEGER PRIMARY KEY, server TEXT, name TEXT, UNIQUE (server, name));
CREATE TABLE IF NOT EXISTS samples (
    step INTEGER, series INTEGER, at INTEGER, mean REAL, count INTEGER,
    PRIMARY KEY (step, series, at)
) WITHOUT ROWID;
"""
ADD = """
INSERT INTO samples VALUES (?, ?, ?, ?, 1) ON CONFLICT DO UPDATE
SET mean = (mean * count + excluded.mean) / (count + 1), count = count + 1
"""

Point = tuple[float, float | None]


class ArchiveError(PenstockError):
    """The history cannot be read or written. The text is for the user."""


class HistoryArchive:
    """The history of one server. Other dashboards may write to the same file."""

    def __init__(self, folder: Path, server: str) -> None:
        """Open or create the file. Raises: ArchiveError."""
        self._path = folder / FILE_NAME
        self._server = server
        self._lock = threading.Lock()  # pages read in threads of their own
        self._ids: dict[str, int] = {}
        self._pruned_at = 0.0
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._database = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS_MAX, check_same_thread=False
            )
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.executescript(SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise ArchiveError(f"{self._path} cannot be used for the history: {error}") from None

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def add(self, at: float, values: Mapping[str, float | None]) -> None:
        """Write a sample of each series. Unknown values are left out. Raises: ArchiveError."""
        try:
            with self._lock, self._database:
                for name, value in values.items():
                    if value is not None:
                        self._add(int(at), self._id_of(name), value)
                if at - self._pruned_at >= PRUNE_SECONDS:
                    self._pruned_at = at
                    self._prune(int(at))
        except sqlite3.Error as error:
            self._ids.clear()  # ids that were rolled back do not exist
            raise ArchiveError(f"the history cannot be written: {error}") from None

    def _add(self, at: int, series: int, value: float) -> None:
        for step, (interval, _) in enumerate(STEPS):
            self._database.execute(ADD, (step, series, at - at % interval, value))

    def _id_of(self, name: str) -> int:
        known = self._ids.get(name)
        if known is None:
            key = (self._server, name)
            self._database.execute("INSERT OR IGNORE INTO series (server, name) VALUES (?, ?)", key)
            found = self._database.execute(
                "SELECT id FROM series WHERE server = ? AND name = ?", key
            )
            known = self._ids[name] = found.fetchone()[0]
        return known

    def _prune(self, at: int) -> None:
        for step, (_, kept) in enumerate(STEPS):
            self._database.execute(
                "DELETE FROM samples WHERE step = ? AND at < ?", (step, at - kept)
            )

    def read(self, name: str, start: float, end: float) -> list[Point]:
        """The samples between two times, in the finest step that reaches back to the start.

        Gaps, when the dashboard did not run, have one sample without a value. Raises: ArchiveError.
        """
        fitting = [step for step, (_, kept) in enumerate(STEPS) if end - start <= kept]
        step = fitting[0] if fitting else len(STEPS) - 1
        interval = STEPS[step][0]
        try:
            with self._lock:
                rows = self._database.execute(
                    "SELECT at, mean FROM samples JOIN series ON id = series WHERE step = ?"
                    " AND server = ? AND name = ? AND at BETWEEN ? AND ? ORDER BY at",
                    (step, self._server, name, int(start) - interval, int(end)),
                ).fetchall()
        except sqlite3.Error as error:
            raise ArchiveError(f"the history cannot be read: {error}") from None
        return with_gaps(rows, interval)


def with_gaps(rows: list[tuple[int, float]], interval: int) -> list[Point]:
    """The rows, with a row without a value where several are missing."""
    found: list[Point] = []
    for at, value in rows:
        if found and at - found[-1][0] > 3 * interval:
            found.append((found[-1][0] + interval, None))
        found.append((at, value))
    return found
