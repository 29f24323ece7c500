"""The servers that tests compare penstock with, and where their programs are."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SERVERS = Path(__file__).resolve().parents[3] / ".venv" / "servers"


@dataclass(frozen=True, slots=True)
class Program:
    """One version of Redis or Valkey. Tests that need it are skipped where it is missing."""

    title: str
    file_name: str
    level: str
    """The compat-version that behaves like it."""
    missing: str
    """Why a test is skipped without it."""

    def path_or_none(self) -> str | None:
        """Find the program on PATH, or where set-up has put it."""
        places = [os.environ.get("PATH", os.defpath), str(Path(sys.prefix, "bin")), str(SERVERS)]
        return shutil.which(self.file_name, path=os.pathsep.join(places))

    def need(self) -> None:
        """Skip the running test if the program is missing."""
        if self.path_or_none() is None:
            pytest.skip(self.missing)


def _downloaded(title: str, level: str) -> Program:
    file_name = title.lower().replace(" ", "-")
    return Program(title, file_name, level, missing=f"no {file_name}: make servers downloads it")


REDIS_6_2 = _downloaded("Redis 6.2", "7.0")
REDIS_7_0 = Program("Redis 7.0", "redis-server", "7.0", missing="no redis-server on PATH")
REDIS_8_0 = _downloaded("Redis 8.0", "8.0")
REDIS_8_2 = _downloaded("Redis 8.2", "8.2")
REDIS_8_6 = _downloaded("Redis 8.6", "8.6")
VALKEY_9 = _downloaded("Valkey 9", "7.2")

PROGRAMS = (REDIS_6_2, REDIS_7_0, REDIS_8_0, REDIS_8_2, REDIS_8_6, VALKEY_9)
# A level is compared with the Redis that has its number.
BY_LEVEL = {program.level: program for program in PROGRAMS if program not in (REDIS_6_2, VALKEY_9)}


def what_was_missed(reasons: list[str]) -> list[str]:
    """A line for each missing program, from the reasons why tests were skipped."""
    lines = []
    for program in PROGRAMS:
        count = sum(program.missing in reason for reason in reasons)
        if count:
            tests = "1 test" if count == 1 else f"{count} tests"
            lines.append(f"not compared with {program.title}: {tests} skipped ({program.missing})")
    return lines
