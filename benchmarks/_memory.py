"""The largest memory of the processes of a Spark application on this machine, by sampling."""

from __future__ import annotations

import os
import threading
from pathlib import Path

SAMPLE_SECONDS = 0.2
MB = 1 << 20
DRIVER, EXECUTORS, WORKERS = "driver", "executors", "Python workers"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Peaks:
    """Samples the descendants of this process: Java's driver and executors, and Python's workers."""

    def __init__(self) -> None:
        self.megabytes = dict.fromkeys((DRIVER, EXECUTORS, WORKERS), 0.0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Peaks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            now = dict.fromkeys(self.megabytes, 0.0)
            for pid in descendants(os.getpid()):
                try:
                    command = Path(f"/proc/{pid}/cmdline").read_bytes()
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                except (OSError, IndexError):
                    continue  # it has ended
                now[_kind(command)] += pages * _PAGE_BYTES / MB
            self.megabytes = {name: max(now[name], peak) for name, peak in self.megabytes.items()}


def _kind(command: bytes) -> str:
    if b"CoarseGrainedExecutorBackend" in command:
        return EXECUTORS
    return WORKERS if b"pyspark.daemon" in command or b"-m\0pyspark" in command else DRIVER


def descendants(root: int) -> list[int]:
    """The processes below a process."""
    children: dict[int, list[int]] = {}
    for one in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((one / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
        children.setdefault(parent, []).append(int(one.name))
    found, left = [], [root]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += below
    return found
