"""The disk of this machine: what its own steps promise beyond those of the system."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.persist import disk
from penstock.persist.disk import SystemDisk
from tests.support.replication.links import eventually


def is_held(path: Path) -> bool:
    """Tell whether this process still has a removed file open, so that its blocks are not free."""
    names = set()
    for fd in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one of the listing is closed by now
            names.add(str(fd.readlink()))
    return f"{path} (deleted)" in names


def test_a_large_file_is_gone_at_once_and_freed_soon(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(disk._LARGE_BYTES))
    SystemDisk().remove(str(path))
    assert not path.exists()
    eventually(lambda: not is_held(path), "the space of a removed file is free")


def test_a_link_to_a_large_file_can_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(disk._LARGE_BYTES))
    SystemDisk().link(str(path), str(tmp_path / "second"))
    (tmp_path / "soft").symlink_to(path)
    for name in ("second", "soft"):
        SystemDisk().remove(str(tmp_path / name))
    assert [found.name for found in tmp_path.iterdir()] == ["large"]


def test_a_file_that_is_not_there_cannot_be_removed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        SystemDisk().remove(str(tmp_path / "none"))
    assert caught.value.errno == errno.ENOENT
