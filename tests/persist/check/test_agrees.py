"""A check and recovery agree about damaged directories."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from penstock.engine.execute import Engine
from penstock.errors import CorruptData
from penstock.persist.check.files import check_path
from penstock.persist.check.repair import RepairRefused, write_copy
from penstock.persist.check.report import Report, Verdict
from penstock.persist.disk import SystemDisk
from penstock.persist.layout import Layout
from penstock.persist.recovery import Recovered, Recovery
from penstock.persist.rows import DATA_ROWS
from tests.support.campaign import cases, seed
from tests.support.disk.data_files import SECOND, OurFiles, write_ours


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Damage a file in one of the usual ways."""
    at = dice.randrange(len(data) + 1)
    until = min(len(data), at + dice.choice((1, 2, 16, 64)))
    kind = dice.randrange(6)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes(len(data) - at)
    if kind == 2:
        return data[:at] + dice.randbytes(until - at) + data[until:]
    if kind == 3:
        return data[:at] + data[until:]
    if kind == 4:
        return data[:at] + data[at:until] + data[at:]
    return (
        data[:at]
        + bytes(byte ^ 1 << dice.randrange(8) for byte in data[at : at + 1])
        + data[at + 1 :]
    )


def recover_or_none(directory: Path) -> Recovered | None:
    recovery = Recovery(SystemDisk(), Layout(str(directory)), Engine(), DATA_ROWS)
    try:
        return recovery.with_log()
    except (CorruptData, OSError):
        return None


def expected_or_none(report: Report) -> str | None:
    """The result that recovery should have; None if it may be stricter than a check that only warns."""
    if report.verdict is Verdict.SOUND:
        return None if any("setting databases" in text for text in report.warnings) else "loaded"
    return "cut" if report.verdict is Verdict.TORN else "refused"


@pytest.mark.parametrize("preamble", [True, False])
def test_recovery_does_what_the_check_says_and_accepts_every_repaired_copy(
    tmp_path: Path, preamble: bool
) -> None:
    start = seed()
    dice = random.Random(start)
    sound = write_ours(tmp_path / "sound", preamble)
    (sound / "dump.rdb").unlink()
    files = OurFiles(sound)
    files.new_increment()
    files.do(*SECOND)
    files.store.close()
    names = sorted(path.name for path in (sound / "appendonlydir").iterdir())
    for case in range(cases(1000)):
        place = tmp_path / "case"
        shutil.copytree(sound, place)
        path = place / "appendonlydir" / dice.choice(names)
        path.write_bytes(damaged(path.read_bytes(), dice))
        past_damage = dice.random() < 0.5
        report = check_path(SystemDisk(), str(place), past_damage=past_damage, keep_data=True)
        what = f"PENSTOCK_SEED={start}, case {case}: {path.name}: {report}"
        try:
            copy = write_copy(SystemDisk(), report, str(tmp_path / "copy"))
            assert copy.check is not None, what
            assert copy.check.verdict is Verdict.SOUND, what
            found = recover_or_none(tmp_path / "copy")
            assert (found is not None and found.cut is None) or expected_or_none(report) is None
            shutil.rmtree(tmp_path / "copy")
        except RepairRefused:
            assert report.verdict is not Verdict.SOUND, what
        found = recover_or_none(place)
        outcome = "refused" if found is None else "loaded" if found.cut is None else "cut"
        assert expected_or_none(report) in (outcome, None), what
        shutil.rmtree(place)
