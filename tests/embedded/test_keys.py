"""Keys of an embedded database: expiry without a server, and what is on disk after it."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock.engine.clock import ManualClock

WRITES_BETWEEN_SWEEPS = 4096  # runner.py, _SWEEP_WRITES


def test_an_expired_key_is_gone(tmp_path: Path) -> None:
    clock = ManualClock(1000)
    with penstock.open(tmp_path, clock=clock) as db:
        db.xadd("s", {"k": "v"})
        assert db.pexpire("s", 50) is True
        clock.at_ms += 49
        assert db.pttl("s") == 1
        clock.at_ms += 2
        assert db.exists("s") == 0
        assert db.ttl("s") == -2
    with penstock.open(tmp_path, clock=clock) as db:
        assert db.keys() == []


def test_an_expiry_is_kept(tmp_path: Path) -> None:
    with penstock.open(tmp_path) as db:
        db.xadd("s", {"k": "v"})
        db.pexpireat("s", 4_102_444_800_005)
    with penstock.open(tmp_path) as db:
        assert db.pexpiretime("s") == 4_102_444_800_005


@pytest.mark.parametrize("is_durable", [False, True], ids=["memory", "directory"])
def test_expired_keys_that_nobody_reads_are_removed(tmp_path: Path, is_durable: bool) -> None:
    clock = ManualClock(1000)
    path = tmp_path if is_durable else None
    with penstock.open(path, clock=clock, appendfsync="no") as db:
        for number in range(100):
            db.xadd(f"expiring:{number}", {"k": "v"})
            db.pexpire(f"expiring:{number}", 50)
        clock.at_ms += 100
        assert db.dbsize() == 100
        for _ in range(WRITES_BETWEEN_SWEEPS):
            db.xadd("s", {"k": "v"}, maxlen=10)
        assert db.dbsize() == 1


def test_a_scan_finds_every_key_that_stays() -> None:
    with penstock.open() as db:
        for number in range(500):
            db.xadd(f"stays:{number}", {"k": "v"})
        found = set()
        for number, key in enumerate(db.scan_iter("stays:*", count=7)):
            found.add(key)
            db.xadd(f"new:{number}", {"k": "v"})
        assert len(found) == 500
