"""The disk: the few operations that persistence needs, behind one seam, and the only fsync.

    create     a new file, to be written from its start          temp-base
    append_to  an old one, to be written on at its end           appendonly.aof.1.incr.aof
    rename     one name takes the place of another, at once      temp -> final
    sync_dir   makes names last: created, renamed, removed

What lasts, on any file system that we know: bytes of a file after its `sync` has returned, names after
`sync_dir` of their directory has returned. Before that, any part of what was written may be there after a
power cut and any part may not, in any order. A `sync` that has failed says nothing about any byte since the
last that succeeded, and a second one that succeeds does not either (Linux drops the pages and forgets): a
file whose sync failed must not be trusted any more.

Tests put a disk in memory in this place, one that stops at every single operation
(tests/support/disk/fake_disk.py).
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import stat
import time
from pathlib import Path
from typing import Protocol

_FILE_MODE = 0o600  # messages are nobody else's business
_DIRECTORY_MODE = 0o700
# What a file system says that cannot lock a directory, or only files that are open for writing (NFS).
_NO_DIRECTORY_LOCKS = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}


def reason(error: OSError) -> str:
    """What an error says, and of which file, for people and clients."""
    what = error.strerror or str(error)
    return f"{what}: {error.filename}" if error.filename else what


class File(Protocol):
    """A file that is being written."""

    @property
    def size(self) -> int:
        """How long it is."""

    def write(self, data: bytes) -> None:
        """Add all of the bytes at its end. Raises: OSError; then a part of them may be there."""

    def sync(self) -> None:
        """Return when all that was written will last. Raises: OSError."""

    def close(self) -> None:
        """Be done with it; nothing is synced."""


class Source(Protocol):
    """A file that is being read, from its start to its end."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill a buffer as far as there are bytes; return how many came, 0 at the end."""

    def close(self) -> None:
        """Be done with it."""


class Lock(Protocol):
    """The right to use a directory."""

    def release(self) -> None:
        """Let others have it."""


class Disk(Protocol):
    """Where files are. Every method raises OSError if the system refuses."""

    def make_dir(self, path: str) -> None:
        """Make a directory and those above it, unless it is there."""

    def names(self, path: str) -> list[str]:
        """What is in a directory; nothing if there is none."""

    def exists(self, path: str) -> bool:
        """Tell whether there is such a file or directory."""

    def size(self, path: str) -> int:
        """How long a file is."""

    def read(self, path: str, offset: int = 0) -> Source:
        """Open a file to read it from a place on."""

    def create(self, path: str) -> File:
        """A new empty file; one of that name is emptied."""

    def append_to(self, path: str) -> File:
        """Open a file that exists to write on."""

    def truncate(self, path: str, size: int) -> None:
        """Cut a file off, and return when that will last."""

    def rename(self, old: str, new: str) -> None:
        """Give a file a name that another may have: that one is gone then."""

    def remove(self, path: str) -> None:
        """Take a file away."""

    def sync_dir(self, path: str) -> None:
        """Return when the names in a directory will last."""

    def lock(self, path: str) -> Lock | None:
        """Lock a directory and the file in it at `path`; None if another process has either."""


class SystemFile:
    """A file of the operating system."""

    __slots__ = ("_fd", "size")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.size = os.fstat(fd).st_size

    def write(self, data: bytes) -> None:
        """See File. A write may be short: a disk that is nearly full takes a part."""
        view = memoryview(data)
        while view:
            written = os.write(self._fd, view)
            self.size += written
            view = view[written:]

    def sync(self) -> None:
        """See File. The size of a file that has grown is synced as well."""
        os.fdatasync(self._fd)

    def close(self) -> None:
        """See File. One that was interrupted may be called again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class SystemLock:
    """Locks that this process holds. The system releases them when the process ends, however it ends."""

    __slots__ = ("_fds",)

    def __init__(self, *fds: int) -> None:
        self._fds = fds

    def release(self) -> None:
        """See Lock. The file stays: removing it would let two others each have a lock of their own."""
        for fd in self._fds:
            os.close(fd)


def is_lock_held(path: str) -> bool:
    """Tell whether a process has the lock of `SystemDisk.lock(path)`; no file is made. Raises: OSError."""
    return _is_flocked(str(Path(path).parent)) or _is_flocked(path)


def _is_flocked(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_LOCKS:
            raise
    finally:
        os.close(fd)  # which releases it
    return False


class SystemDisk:
    """The disk of this machine."""

    def make_dir(self, path: str) -> None:
        """See Disk. Each directory that is made is synced into the one above it."""
        missing = []
        place = Path(path)
        while not place.exists():
            missing.append(place)
            place = place.parent
        for made in reversed(missing):
            made.mkdir(_DIRECTORY_MODE, exist_ok=True)
            self.sync_dir(str(made.parent))
        if not missing and not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)

    def names(self, path: str) -> list[str]:
        """See Disk."""
        try:
            return sorted(found.name for found in Path(path).iterdir())
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        """See Disk."""
        return Path(path).exists()

    def size(self, path: str) -> int:
        """See Disk."""
        return Path(path).stat().st_size

    def read(self, path: str, offset: int = 0) -> Source:
        """See Disk. A pipe or a device has no end, and opening one may wait for ever: refused."""
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            os.close(fd)
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
            raise OSError(errno.EINVAL, "Not a regular file", path)
        if offset:
            os.lseek(fd, offset, os.SEEK_SET)
        return io.FileIO(fd)

    def create(self, path: str) -> File:
        """See Disk."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        return SystemFile(os.open(path, flags, _FILE_MODE))

    def append_to(self, path: str) -> File:
        """See Disk."""
        return SystemFile(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))

    def truncate(self, path: str, size: int) -> None:
        """See Disk."""
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, size)
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, old: str, new: str) -> None:
        """See Disk."""
        Path(old).replace(new)

    def remove(self, path: str) -> None:
        """See Disk."""
        Path(path).unlink()

    def sync_dir(self, path: str) -> None:
        """See Disk."""
        fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> SystemLock | None:
        """See Disk. The directory is locked because the file can be removed while it is locked.

        The file is locked too, for file systems that do not lock directories.
        """
        directory = os.open(Path(path).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(directory)
            return None
        except OSError as error:
            if error.errno not in _NO_DIRECTORY_LOCKS:
                os.close(directory)
                raise
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        except OSError:
            os.close(directory)
            raise
        lock = SystemLock(directory, file)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.release()
            return None
        except OSError:
            lock.release()
            raise
        return lock


class SlowFile:
    """A file whose sync takes longer, to see what a slow disk does to a server."""

    def __init__(self, file: File, delay_s: float) -> None:
        self._file = file
        self._delay_s = delay_s

    @property
    def size(self) -> int:
        """See File."""
        return self._file.size

    def write(self, data: bytes) -> None:
        """See File."""
        self._file.write(data)

    def sync(self) -> None:
        """See File."""
        time.sleep(self._delay_s)
        self._file.sync()

    def close(self) -> None:
        """See File."""
        self._file.close()


class SlowDisk(SystemDisk):
    """A disk on which every sync of a file that is written on takes so much longer."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s

    def create(self, path: str) -> File:
        """See Disk."""
        return SlowFile(super().create(path), self._delay_s)

    def append_to(self, path: str) -> File:
        """See Disk."""
        return SlowFile(super().append_to(path), self._delay_s)
