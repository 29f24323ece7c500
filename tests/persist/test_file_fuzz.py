"""Damaged data files: an error with file and offset, or usable data."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.files import DataFiles, state_of
from tests.support.builds import ROOT
from tests.support.campaign import SOAK, seed
from tests.support.disk.data_files import write_ours
from tests.support.disk.fuzz_files import build_sources

CASES = 10_000 if SOAK else 40
CHILDREN_SECONDS_MAX = 4 * 3600 if SOAK else 300
# AddressSanitizer reserves terabytes of address space.
MEMORY_MB = 0 if os.environ.get("PENSTOCK_SANITIZED") else 2048


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return build_sources(tmp_path_factory.mktemp("fuzz") / "sources")


def test_damaged_files_are_refused_clearly_or_can_be_used(sources: list[Path]) -> None:
    """In a separate process, so that a crash, a hang or a huge allocation fails the test and not the run."""
    start = seed()
    command = [sys.executable, "fuzz/files.py", *map(str, sources), "--seed", str(start)]
    command += ["--cases", str(CASES), "--memory-mb", str(MEMORY_MB)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=CHILDREN_SECONDS_MAX,
    )
    assert done.returncode == 0, f"{done.returncode}\n{done.stderr[-6000:]}"
    counted = {
        line.split(maxsplit=1)[1]: int(line.split()[0]) for line in done.stdout.splitlines()[1:]
    }
    # A campaign in which nearly everything or nearly nothing is refused would show little.
    assert counted["loaded"] > 0
    assert counted["refused"] > 0


# --- What the campaign has found -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [b"base.rdb", b"incr.aof"])
def test_no_new_file_takes_a_name_that_is_listed_under_another_number(
    tmp_path: Path, kind: bytes
) -> None:
    """Opening emptied the only increment, and a rewrite removed its own base together with the old one."""
    directory = write_ours(tmp_path / "data")
    manifest = directory / "appendonlydir" / "appendonly.aof.manifest"
    lines = manifest.read_bytes().partition(b"#PSCRC:")[0]
    lines = re.sub(rb" bytes \d+ crc \w+", b"", lines)
    wrong = re.sub(rb"(%b seq) 2" % kind, rb"\1 1", lines)
    assert wrong != lines
    manifest.write_bytes(wrong)  # without a checksum, as written by Redis
    files = DataFiles(directory)
    assert files.open()
    before = state_of(files.engine)
    files.rewrite()
    files.close()
    again = DataFiles(directory)
    try:
        assert again.open()
        assert state_of(again.engine) == before
    finally:
        again.close()
