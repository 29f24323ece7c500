"""Counters, ids and times at the limits of their types survive every way through the disk.

Random work uses values near the limits. Every round ends with a rewrite in both forms, a restart from each, a
DUMP and RESTORE of every key, and a check of the files. All must agree with the data in memory.

A failure names its seed; PENSTOCK_SEED=<the part before the slash> repeats it.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from penstock.engine.execute import Engine
from penstock.persist.aof.commit import Policy
from penstock.persist.check.files import check_path
from penstock.persist.check.report import Verdict
from penstock.persist.disk import SystemDisk
from penstock.persist.layout import Layout
from penstock.persist.rdb.dump import dump_value, restore_value
from penstock.persist.rdb.value import ValueLimits
from penstock.persist.rows import DATA_ROWS
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Store
from tests.support.campaign import cases, seed
from tests.support.disk.fake_disk import FakeDisk
from tests.support.engine.effects import Recorder
from tests.support.engine.engine_state import engine_state, forget_expired_names, value_state
from tests.support.engine.engines import START_MS
from tests.support.random.effects import LimitWorld, Work
from tests.support.servers.raw_redis import Refusal

FULL_COMMANDS = 100_000
ROUND_COMMANDS = 100
VERSIONS = ("7.0", "7.4", "8.6", "8.10")
STARTS_MS = (0, 1, 2**31 - 1, 2**32, START_MS, START_MS, 2**42)
LAYOUT = Layout("/data")


@pytest.mark.parametrize("version", VERSIONS)
def test_data_survives_every_way_through_the_disk(version: str, tmp_path: Path) -> None:
    start = seed()
    for n in range(max(1, cases(FULL_COMMANDS // len(VERSIONS)) // ROUND_COMMANDS)):
        Round(f"{start}/{n}", version, tmp_path).play()


LARGEST = f"{2**64 - 1}-{2**64 - 1}"
FOUND = {
    "entries added behind the largest count": [
        "XADD a 1-1 k v",
        "XSETID a 1-1 ENTRIESADDED 9223372036854775807 MAXDELETEDID 0-0",
        "XADD a 2-1 k v",
    ],
    "an entry that is pending and trimmed leaves no largest deleted id": [
        *("XADD a 1-1 k v", "XADD a 2-1 k v", "XGROUP CREATE a g 0"),
        *("XREADGROUP GROUP g c STREAMS a >", "XTRIM a MAXLEN 1"),
    ],
    "an entry that is pending lies behind the last id": [
        *("XADD a 5-1 k v", "XGROUP CREATE a g 0", "XREADGROUP GROUP g c STREAMS a >"),
        *("XTRIM a MAXLEN 0", "XSETID a 1-1", "XADD a 2-1 k v"),
    ],
    "the largest id is pending and gone": [
        *(f"XADD a {LARGEST} k v", "XGROUP CREATE a g 0", "XREADGROUP GROUP g c STREAMS a >"),
        *(f"XDEL a {LARGEST}", f"XGROUP SETID a g {LARGEST} ENTRIESREAD 9223372036854775807"),
    ],
    "a node whose last live entry is trimmed by its id": [
        *("XADD a 1-1 k v", "XADD a 2-1 k v", "XADD a 3-1 k v", "XDEL a 2-1 3-1"),
        "XTRIM a MINID 2-1",
    ],
    "groups of an empty stream, beyond its last id": [
        f"XGROUP CREATE a g {LARGEST} MKSTREAM ENTRIESREAD 9223372036854775807",
        "XGROUP CREATECONSUMER a g c",
    ],
    "the largest count of deliveries, the earliest time": [
        *("XADD a 1-1 k v", "XGROUP CREATE a g 0"),
        "XCLAIM a g c 0 1-1 TIME 0 RETRYCOUNT 9223372036854775807 FORCE",
        "XREADGROUP GROUP g c STREAMS a 0",
    ],
    "a key that stays as long as one can": ["SET a v", "PEXPIREAT a 9223372036854775807"],
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("lines", FOUND.values(), ids=list(FOUND))
def test_earlier_findings_survive(lines: list[str], version: str, tmp_path: Path) -> None:
    found = Round("named", version, tmp_path)
    for line in lines:
        assert not isinstance(found.recorder.ask(line), Refusal), line
    found.check()


class Round:
    """Random work, stored on a disk in memory."""

    def __init__(self, name: str, version: str, place: Path) -> None:
        self.place = place  # for the check, which lists directories itself
        self.name = name
        dice = random.Random(name)
        self.recorder = Recorder(version, dice.choice(STARTS_MS))
        self.engine = self.recorder.engine
        self.disk = FakeDisk()
        self.store = Store(self.disk, LAYOUT, self.engine, DATA_ROWS)
        self.store.lock()
        recovered = self.store.recovery(load_truncated=False).with_log()
        self.store.begin_log(recovered, Policy.ALWAYS, SnapshotOptions())
        self.recorder.journal = self.store.journal
        self.work = Work(self.recorder, name, LimitWorld, version)

    def play(self) -> None:
        try:
            for _ in range(ROUND_COMMANDS):
                self.work.step()
            self.check()
        except Exception as error:
            raise AssertionError(self.work.story(f"seed {self.name}: {error}")) from error

    def check(self) -> None:
        forget_expired_names(self.engine, self.recorder.clock.at_ms)
        state = engine_state(self.engine)
        self.sync()
        assert engine_state(self.restarted()) == state, "the log"
        for preamble in (True, False):
            self.rewrite(SnapshotOptions(preamble=preamble))
            found = engine_state(self.restarted())
            if preamble:
                assert found == state, "a base that is a snapshot"
            else:
                assert without_nodes(found) == without_nodes(state), "a base of commands"
            self.check_files()
        self.check_dumps()

    def check_files(self) -> None:
        directory = self.place / "data"
        shutil.rmtree(directory, ignore_errors=True)
        for name, data in self.disk.contents().items():
            path = self.place / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        report = check_path(SystemDisk(), str(directory))
        assert report.verdict is Verdict.SOUND, [file.what for file in report.files]

    def sync(self) -> None:
        assert self.store.commit is not None
        self.store.commit.hand_over()
        self.store.commit.sync()

    def rewrite(self, options: SnapshotOptions) -> None:
        rewrite = self.store.begin_rewrite(options)
        self.sync()
        self.store.write_base(rewrite.temporary, options)
        self.store.finish_rewrite(rewrite)

    def restarted(self) -> Engine:
        """The data of a server that starts on the current files."""
        engine = self.store.recovery(load_truncated=False).with_log().engine
        forget_expired_names(engine, self.recorder.clock.at_ms)
        return engine

    def check_dumps(self) -> None:
        limits = ValueLimits(self.engine.limits, self.engine.list_limits)
        version = self.engine.context.compat.rdb_version
        for keyspace in self.engine.context.databases:
            for key, value in keyspace.values.items():
                payload = dump_value(value, version)
                restored = restore_value(payload, version, limits)
                assert value_state(restored) == value_state(value), key
                assert dump_value(restored, version) == payload, key


def without_nodes(state: list[str]) -> list[str]:
    """A state that commands can express.

    Without the bytes of nodes, because a replay may pack entries differently, and without the counters of
    producers' names.
    """
    return [line for line in state if not line.startswith(("  node ", "  producers added="))]
