"""A disk in memory that tracks what is durable, for tests of power cuts and faults.

    file        durable bytes, and the writes and truncations since, in order
    directory   durable names, and the names made, renamed and removed since, in order

`sync` and `sync_dir` make earlier changes durable. A power cut keeps the durable part; an Outcome and dice
decide about the rest. `after_kill` ends only the process, which loses nothing.

Every operation that changes something is a step. At each step `on_step` is called, which may record the disk
(`after_cut` returns a new disk). By then the change is made but not durable: a cut that keeps none of it is
the same as a cut before the step. At step `crash_at`, Crash is raised, as if the process had ended.

`fail(Fault)` lets the n-th write, sync, ... from now on fail; a part of the bytes of a write may be written.
A failed sync loses the bytes that it should have made durable, although readers still see them, as on Linux.
`heal` removes all faults.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

BLOCK = 512


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


class Crash(BaseException):
    """The machine has stopped. Code under test must not catch this."""


class Bytes(Enum):
    """Which unsynced bytes a cut keeps."""

    NONE = "none"
    TORN = "torn"  # a prefix
    HOLES = "holes"  # some blocks, zeros instead of others
    ZEROS = "zeros"  # the length, but all bytes are zero
    ALL = "all"


class Names(Enum):
    """Which unsynced names a cut keeps."""

    NONE = "none"
    PREFIX = "prefix"
    SOME = "some"  # any of them: directories need not be written in order
    ALL = "all"


@dataclass(frozen=True)
class Outcome:
    """What a cut keeps."""

    data: Bytes
    names: Names


OUTCOMES = [Outcome(data, names) for data in Bytes for names in Names]


@dataclass
class Fault:
    """The n-th operation of a kind from now on fails, and all of them after it until heal()."""

    kind: str  # "write", "sync", "create", "rename", "remove", "sync_dir", "truncate", "append_to"
    number: int
    errno: int = errno.ENOSPC
    part: float = 0.0  # the share of a write's bytes that is still written
    once: bool = False

    def error(self, path: str) -> OSError:
        return OSError(self.errno, os.strerror(self.errno), path)


@dataclass(frozen=True)
class _Write:
    offset: int
    data: bytes


@dataclass(frozen=True)
class _Cut:
    size: int


class _Inode:
    """The bytes of a file: the durable ones, and the changes since."""

    def __init__(self, durable: bytes = b"") -> None:
        self.durable = durable
        self.data = bytearray(durable)  # what a reader sees
        self.done: list[_Write | _Cut] = []
        self.lost: list[
            slice
        ] = []  # ranges that a sync failed to write: readers see them, a cut zeroes them

    def copy(self) -> _Inode:
        made = _Inode(self.durable)
        made.data = bytearray(self.data)
        made.done = list(self.done)
        made.lost = list(self.lost)
        return made

    def write(self, data: bytes) -> None:
        self.done.append(_Write(len(self.data), data))
        self.data += data

    def cut(self, size: int) -> None:
        self.done.append(_Cut(size))
        del self.data[size:]
        self.lost = [slice(place.start, min(place.stop, size)) for place in self.lost]

    def sync(self) -> None:
        if self.done:
            self.durable = self._without_lost(bytes(self.data))
            self.done = []

    def lose(self) -> None:
        """After a failed sync the system forgets that these bytes were never written."""
        self.lost.append(slice(len(self.durable), len(self.data)))
        self.done = []

    def _without_lost(self, data: bytes) -> bytes:
        left = bytearray(data)
        for place in self.lost:
            until = min(place.stop, len(left))
            left[place.start : until] = bytes(max(0, until - place.start))
        return bytes(left)

    def left(self, how: Bytes, dice: random.Random) -> bytes:
        """The bytes after a power cut."""
        if how is Bytes.NONE or not self.done:
            return self.durable
        if how is Bytes.ALL:
            return self._without_lost(bytes(self.data))
        done = self.done if how is Bytes.ZEROS else self.done[: dice.randint(1, len(self.done))]
        if how is Bytes.TORN:
            return _applied(self.durable, done, dice)
        whole = _applied(self.durable, done, None)
        first = min([step.offset for step in done if isinstance(step, _Write)], default=len(whole))
        first = max(first, _kept(self.durable, done))
        left = bytearray(whole)
        for start in range(first - first % BLOCK, len(left), BLOCK):
            if how is Bytes.ZEROS or dice.random() < 0.5:
                place = slice(max(start, first), min(start + BLOCK, len(left)))
                left[place] = bytes(place.stop - place.start)
        return bytes(left)


def _applied(durable: bytes, done: list[_Write | _Cut], dice: random.Random | None) -> bytes:
    """Apply some steps; with dice, the last one in part."""
    data = bytearray(durable)
    for number, step in enumerate(done):
        if isinstance(step, _Cut):
            del data[step.size :]
        else:
            is_torn = dice is not None and number == len(done) - 1
            size = dice.randint(0, len(step.data)) if dice and is_torn else len(step.data)
            data[step.offset :] = step.data[:size]
    return bytes(data)


def _kept(durable: bytes, done: list[_Write | _Cut]) -> int:
    """The number of durable bytes that no truncation has touched."""
    return min([len(durable), *(step.size for step in done if isinstance(step, _Cut))])


@dataclass(frozen=True)
class _NameChange:
    """A name gets an inode or loses it. A rename removes the old name at the same moment."""

    name: str
    inode: _Inode | None
    gone: str | None = None

    def apply(self, names: dict[str, _Inode]) -> None:
        if self.gone is not None:
            names.pop(self.gone, None)
        if self.inode is None:
            names.pop(self.name, None)
        else:
            names[self.name] = self.inode


class FakeDisk:
    """See Disk in penstock/persist/disk.py, and the module docstring."""

    def __init__(self, crash_at: int = -1) -> None:
        self.crash_at = crash_at
        self.steps = 0
        self.log: list[str] = []  # a description of each step
        self.on_step: Callable[[], None] | None = None
        self._names: dict[str, _Inode] = {}
        self._durable: dict[str, _Inode] = {}
        self._changes: dict[str, list[_NameChange]] = {}
        self._dirs = {"/"}
        self._locked: set[str] = set()
        self._faults: list[Fault] = []

    # --- Looking from outside ------------------------------------------------------------------------

    def contents(self) -> dict[str, bytes]:
        """All files as a reader sees them."""
        return {path: bytes(inode.data) for path, inode in sorted(self._names.items())}

    def put(self, path: str, data: bytes) -> None:
        """Create a file durably."""
        self.make_dirs(_parent(path))
        self._names[path] = self._durable[path] = _Inode(data)

    def make_dirs(self, path: str) -> None:
        while path not in self._dirs:
            self._dirs.add(path)
            path = _parent(path)

    def after_cut(self, how: Outcome, dice: random.Random) -> FakeDisk:
        """The disk after a power cut."""
        names = dict(self._durable)
        for changes in self._changes.values():
            for change in _left(changes, how.names, dice):
                change.apply(names)
        found = FakeDisk()
        found._dirs = set(self._dirs)
        for path, inode in sorted(names.items()):
            found.put(path, inode.left(how.data, dice))
        return found

    def after_kill(self) -> FakeDisk:
        """The disk that the next process finds: nothing is lost, and nothing more is durable."""
        copies: dict[int, _Inode] = {}

        def copy(inode: _Inode) -> _Inode:
            return copies.setdefault(id(inode), inode.copy())

        found = FakeDisk()
        found._dirs = set(self._dirs)
        found._names = {path: copy(inode) for path, inode in self._names.items()}
        found._durable = {path: copy(inode) for path, inode in self._durable.items()}
        found._changes = {
            directory: [
                _NameChange(change.name, change.inode and copy(change.inode), change.gone)
                for change in changes
            ]
            for directory, changes in self._changes.items()
        }
        return found

    # --- Faults ----------------------------------------------------------------------------------------

    def fail(self, fault: Fault) -> None:
        self._faults.append(fault)

    def heal(self) -> None:
        self._faults = []

    def _fault_or_none(self, kind: str) -> Fault | None:
        for fault in self._faults:
            if fault.kind == kind:
                fault.number -= 1
                if fault.number < 0:
                    if fault.once:
                        self._faults.remove(fault)
                    return fault
        return None

    def _check_fault(self, kind: str, path: str) -> None:
        fault = self._fault_or_none(kind)
        if fault is not None:
            raise fault.error(path)

    def _step(self, what: str) -> None:
        self.log.append(what)
        if self.on_step is not None:
            self.on_step()
        if self.steps == self.crash_at:
            raise Crash(what)
        self.steps += 1

    # --- The operations --------------------------------------------------------------------------------

    def make_dir(self, path: str) -> None:
        if path not in self._dirs:
            self._step(f"make_dir {path}")
            self._check_fault("make_dir", path)
            self.make_dirs(path)

    def names(self, path: str) -> list[str]:
        return sorted(name.rpartition("/")[2] for name in self._names if _parent(name) == path)

    def exists(self, path: str) -> bool:
        return path in self._names or path in self._dirs

    def size(self, path: str) -> int:
        return len(self._find(path).data)

    def read(self, path: str, offset: int = 0) -> FakeSource:
        return FakeSource(bytes(self._find(path).data[offset:]))

    def create(self, path: str) -> FakeFile:
        self._check_fault("create", path)
        inode = self._names.get(path)
        if inode is None:
            inode = _Inode()
            self._change(_NameChange(path, inode))
        else:
            inode.cut(0)
        self._step(f"create {path}")
        return FakeFile(self, path, inode)

    def append_to(self, path: str) -> FakeFile:
        self._check_fault("append_to", path)
        return FakeFile(self, path, self._find(path))

    def truncate(self, path: str, size: int) -> None:
        self._check_fault("truncate", path)
        inode = self._find(path)
        inode.cut(size)
        self._step(f"truncate {path}")
        inode.sync()

    def rename(self, old: str, new: str) -> None:
        self._check_fault("rename", old)
        assert _parent(old) == _parent(new)
        self._change(_NameChange(new, self._find(old), old))
        self._step(f"rename {old} {new}")

    def link(self, old: str, new: str) -> None:
        self._check_fault("link", new)
        assert new not in self._names
        self._change(_NameChange(new, self._find(old)))
        self._step(f"link {old} {new}")

    def remove(self, path: str) -> None:
        self._check_fault("remove", path)
        self._find(path)
        self._change(_NameChange(path, None))
        self._step(f"remove {path}")

    def sync_dir(self, path: str) -> None:
        self._step(f"sync_dir {path}")
        self._check_fault("sync_dir", path)
        for change in self._changes.pop(path, []):
            change.apply(self._durable)

    def lock(self, path: str) -> FakeLock | None:
        if path in self._locked:
            return None
        self._locked.add(path)
        return FakeLock(self._locked, path)

    def write(self, path: str, inode: _Inode, data: bytes) -> None:
        fault = self._fault_or_none("write")
        written = data if fault is None else data[: int(len(data) * fault.part)]
        if written:
            inode.write(written)
        self._step(f"write {path} {len(written)}")
        if fault is not None:
            raise fault.error(path)

    def sync(self, path: str, inode: _Inode) -> None:
        self._step(f"sync {path}")
        fault = self._fault_or_none("sync")
        if fault is not None:
            inode.lose()
            raise fault.error(path)
        inode.sync()

    def _change(self, change: _NameChange) -> None:
        change.apply(self._names)
        self._changes.setdefault(_parent(change.name), []).append(change)

    def _find(self, path: str) -> _Inode:
        inode = self._names.get(path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode


def _left(changes: list[_NameChange], how: Names, dice: random.Random) -> list[_NameChange]:
    if how is Names.NONE:
        return []
    if how is Names.PREFIX:
        return changes[: dice.randint(0, len(changes))]
    if how is Names.SOME:
        return [change for change in changes if dice.random() < 0.5]
    return changes


class FakeFile:
    """A file that is being written."""

    def __init__(self, disk: FakeDisk, path: str, inode: _Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self.closed = False

    @property
    def size(self) -> int:
        return len(self._inode.data)

    def write(self, data: bytes) -> None:
        assert not self.closed
        self._disk.write(self._path, self._inode, data)

    def sync(self) -> None:
        assert not self.closed
        self._disk.sync(self._path, self._inode)

    def close(self) -> None:
        self.closed = True


class FakeSource:
    """A file that is being read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def readinto(self, buffer: memoryview, /) -> int:
        piece = self._data[self._at : self._at + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def close(self) -> None:
        """Nothing is held."""


class FakeLock:
    """The right to use a directory."""

    def __init__(self, locked: set[str], path: str) -> None:
        self._locked = locked
        self._path = path

    def release(self) -> None:
        self._locked.discard(self._path)
