"""A disk in memory that knows what would last: for tests of power cuts and of faults.

    file        durable bytes, and what was done to them since: writes and cuts, in order
    directory   durable names, and what was done to them since: made, renamed, removed, in order

`sync` and `sync_dir` make durable what was done before them. A power cut leaves the durable part, and of the
rest whatever an Outcome and dice say; `after_kill` is the end of the process alone, which loses nothing.

Every operation that changes something is a step. Before each, `on_step` is called, who may take a photograph
(`after_cut` gives a new disk); what the step does is done then, and not durable: a cut that keeps
nothing of it is as good as one before it. `crash_at` raises Crash there, as if the process were no more.

Faults: `fail(Fault)` lets the n-th write, sync, ... from now on fail, a part of a write done. A failed sync
loses what it should have made durable, though readers still see it, as on Linux. `heal` ends them all.
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
    """The machine has stopped. Nothing in between may catch it."""


class Bytes(Enum):
    """What a cut leaves of unsynced bytes."""

    NONE = "none"
    TORN = "torn"  # a prefix
    HOLES = "holes"  # some blocks, zeros in the place of others
    ZEROS = "zeros"  # the length, but no byte
    ALL = "all"


class Names(Enum):
    """What a cut leaves of unsynced names."""

    NONE = "none"
    PREFIX = "prefix"
    SOME = "some"  # any of them: nothing says that a directory is written in order
    ALL = "all"


@dataclass(frozen=True)
class Outcome:
    """What a cut leaves."""

    data: Bytes
    names: Names


OUTCOMES = [Outcome(data, names) for data in Bytes for names in Names]


@dataclass
class Fault:
    """The n-th operation of a kind from now on fails, and all of them after it until heal()."""

    kind: str  # "write", "sync", "create", "rename", "remove", "sync_dir", "truncate", "append_to"
    number: int
    errno: int = errno.ENOSPC
    part: float = 0.0  # of the bytes of a write that are written all the same
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
    """The bytes of a file: durable ones, and what was done since."""

    def __init__(self, durable: bytes = b"") -> None:
        self.durable = durable
        self.data = bytearray(durable)  # what a reader sees
        self.done: list[_Write | _Cut] = []
        self.lost: list[
            slice
        ] = []  # what a sync has failed to write: readers see it, a cut takes it

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
        """A sync has failed: the system forgets that these bytes were never written."""
        self.lost.append(slice(len(self.durable), len(self.data)))
        self.done = []

    def _without_lost(self, data: bytes) -> bytes:
        left = bytearray(data)
        for place in self.lost:
            until = min(place.stop, len(left))
            left[place.start : until] = bytes(max(0, until - place.start))
        return bytes(left)

    def left(self, how: Bytes, dice: random.Random) -> bytes:
        """What a power cut leaves."""
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
    """Do some steps; with dice, the last one in part."""
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
    """How many of the durable bytes no cut has touched."""
    return min([len(durable), *(step.size for step in done if isinstance(step, _Cut))])


@dataclass(frozen=True)
class _NameChange:
    """A name gets an inode, or none; a rename takes the old one away in the same moment."""

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
    """See Disk in penstock/persist/disk.py, and the essay above."""

    def __init__(self, crash_at: int = -1) -> None:
        self.crash_at = crash_at
        self.steps = 0
        self.log: list[str] = []  # what each step was, for people
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
        """Have a file, durably."""
        self.make_dirs(_parent(path))
        self._names[path] = self._durable[path] = _Inode(data)

    def make_dirs(self, path: str) -> None:
        while path not in self._dirs:
            self._dirs.add(path)
            path = _parent(path)

    def after_cut(self, how: Outcome, dice: random.Random) -> FakeDisk:
        """The disk that the machine finds when power is back."""
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
        """The disk that the next process finds: all is there, and what was not durable still is not."""
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
