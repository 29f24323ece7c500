"""The manifest: Redis's format with a checksum and lengths. tests/crash/test_faults.py has the refusals."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import CorruptData
from penstock.persist.aof.batch import encode_batch
from penstock.persist.aof.manifest import (
    LogFile,
    Manifest,
    encode_manifest,
    load_manifest,
    parse_manifest,
    save_manifest,
)
from penstock.persist.disk import SystemDisk
from tests.support.servers.redis_server import redis_program_or_none

BASE = LogFile("appendonly.aof.2.base.rdb", 2, 88)
OLD = LogFile("appendonly.aof.3.incr.aof", 3, 1042)
LAST = LogFile("appendonly.aof.4.incr.aof", 4)
GONE = LogFile("appendonly.aof.1.base.rdb", 1)


def test_what_is_written_is_read_again() -> None:
    manifest = Manifest(BASE, (OLD, LAST), (GONE,))
    found = parse_manifest(encode_manifest(manifest), "m")
    assert found == manifest
    assert [file.size for file in found.files] == [88, 1042, None]


@pytest.mark.parametrize(
    "name", ["a b.1.incr.aof", "é.1.incr.aof", "\udcff.1.incr.aof", "a+b-c_d.aof"]
)
def test_names_of_any_characters_come_back(name: str) -> None:
    manifest = Manifest(None, (LogFile(name, 1),))
    assert parse_manifest(encode_manifest(manifest), "m") == manifest


def test_a_manifest_of_redis_is_read() -> None:
    text = b"file appendonly.aof.1.base.rdb seq 1 type b\n# a comment\n"
    text += b"seq 1 type i file appendonly.aof.1.incr.aof\n"
    found = parse_manifest(text, "m")
    assert found.base == LogFile("appendonly.aof.1.base.rdb", 1)
    assert found.increments == (LogFile("appendonly.aof.1.incr.aof", 1),)


def test_a_cut_off_manifest_of_ours_is_not_taken_for_one_of_redis() -> None:
    """Cut off at the end of a line, it would still be a valid manifest with fewer files."""
    text = encode_manifest(Manifest(BASE, (OLD, LAST)))
    for line in range(1, 4):
        cut = b"".join(text.splitlines(keepends=True)[:line])
        with pytest.raises(CorruptData, match="cut off"):
            parse_manifest(cut, "m")


def test_new_numbers_are_above_used_ones() -> None:
    manifest = Manifest(BASE, (OLD, LAST))
    assert manifest.next_base("a").name == "a.3.base.rdb"
    assert manifest.next_base("a", "aof", above=7).name == "a.8.base.aof"
    assert manifest.next_increment("a").name == "a.5.incr.aof"
    assert manifest.next_increment("a", above=9).name == "a.10.incr.aof"
    assert Manifest().next_base("a").seq == Manifest().next_increment("a").seq == 1


def test_files_covered_by_a_new_base_become_history() -> None:
    manifest = Manifest(BASE, (OLD,)).with_increment(LAST, replace(OLD, size=7))
    assert manifest.increments[0].size == 7
    base = manifest.next_base("a")
    rebased = manifest.rebased(base, (LAST,))
    assert (rebased.base, rebased.increments, rebased.history) == (base, (LAST,), (BASE, OLD))


def test_redis_accepts_what_we_write(tmp_path: Path) -> None:
    if redis_program_or_none() is None:
        pytest.skip("no redis-server on PATH")
    disk = SystemDisk()
    data = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
    first = encode_batch(b"", 0, 0)
    first += encode_batch(data, len(first), len(first)) + data
    (tmp_path / OLD.name).write_bytes(first)
    (tmp_path / LAST.name).write_bytes(first + encode_batch(b"", len(first), len(first)))
    manifest = Manifest(None, (LogFile(OLD.name, 3, len(first)), LAST))
    save_manifest(disk, str(tmp_path), "appendonly.aof", manifest)
    assert load_manifest(disk, str(tmp_path), "appendonly.aof") == manifest
    path = tmp_path / "appendonly.aof.manifest"
    said = subprocess.run(["redis-check-aof", path], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout
    assert "All AOF files and manifest are valid" in said.stdout
