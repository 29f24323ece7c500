"""The file operations that persistence needs, behind one interface, and the only fsync.

    create     opens a new file for writing                      temp-rewrite-2
    append_to  opens an existing file for appending              appendonly.aof.1.incr.aof
    rename     atomically replaces one name by another           temp -> final
    link       gives a file a second name                        dropped-1f0a93bc-2210/...
    sync_dir   makes created, renamed and removed names durable

The bytes of a file are durable after its `sync` has returned, and names after `sync_dir` of their directory
has returned. Before that, a power cut may keep or lose any part of what was written, in any order. After a
failed `sync`, every byte since the last successful one is in doubt. A second `sync` that succeeds proves
nothing, because Linux marks the pages clean after the failure. Such a file must not be trusted any more.

Tests use a disk in memory that can stop at every operation (tests/support/disk/fake_disk.py).
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import shutil
import stat
import threading
from pathlib import Path
from typing import Protocol

_FILE_MODE = 0o600  # only the owner may read messages
_DIRECTORY_MODE = 0o700
# Errors of file systems that cannot lock a directory, or lock only files open for writing (NFS).
_NO_DIRECTORY_LOCKS = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}

# Freeing the blocks of a file takes about a millisecond for each MB on ext4. Meanwhile clients would wait.
_LARGE_BYTES = 4 << 20

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def reason(error: OSError) -> str:
    """The text of an error and the file that it is about."""
    what = error.strerror or str(error)
    return f"{what}: {error.filename}" if error.filename else what


class File(Protocol):
    """A file open for writing."""

    @property
    def size(self) -> int:
        """Its length in bytes."""

    def write(self, data: bytes) -> None:
        """Append all bytes. Raises: OSError; then a part of them may be in the file."""

    def sync(self) -> None:
        """Return when everything written is durable. Raises: OSError."""

    def close(self) -> None:
        """Close the file without a sync."""


class Source(Protocol):
    """A file open for reading."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read into a buffer; return the number of bytes, 0 at the end."""

    def close(self) -> None:
        """Close the file."""


class Lock(Protocol):
    """A held lock on a directory."""

    def release(self) -> None:
        """Release the lock."""


class Disk(Protocol):
    """A file system. Every method raises OSError if the operation fails."""

    def make_dir(self, path: str) -> None:
        """Make a directory and its parents, unless it exists."""

    def names(self, path: str) -> list[str]:
        """The names in a directory; none if it does not exist."""

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory exists."""

    def size(self, path: str) -> int:
        """The length of a file in bytes."""

    def read(self, path: str, offset: int = 0) -> Source:
        """Open a file for reading from `offset` on."""

    def create(self, path: str) -> File:
        """Open a new file for writing; an existing one is emptied."""

    def append_to(self, path: str) -> File:
        """Open an existing file for appending."""

    def truncate(self, path: str, size: int) -> None:
        """Cut a file to `size` bytes, and return when that is durable."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file; one that has the new name is replaced."""

    def link(self, old: str, new: str) -> None:
        """Give a file a second name. Its bytes must be durable."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def sync_dir(self, path: str) -> None:
        """Return when the names in a directory are durable."""

    def lock(self, path: str) -> Lock | None:
        """Lock the file at `path` and its directory; None if another process holds either lock."""


class SystemFile:
    """A file of the operating system."""

    __slots__ = ("_fd", "size")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.size = os.fstat(fd).st_size

    def write(self, data: bytes) -> None:
        """See File. Repeats short writes, which happen when a disk is nearly full."""
        written = os.write(self._fd, data)
        self.size += written
        view = memoryview(data) if written < len(data) else None
        while view is not None and written < len(view):
            view = view[written:]
            written = os.write(self._fd, view)
            self.size += written

    def sync(self) -> None:
        """See File. fdatasync also syncs the size of a file that has grown."""
        os.fdatasync(self._fd)

    def close(self) -> None:
        """See File. May be called again after an interrupt."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class SystemLock:
    """Locks held by this process. The system releases them when the process ends, even after a kill."""

    __slots__ = ("_fds",)

    def __init__(self, *fds: int) -> None:
        self._fds = fds

    def release(self) -> None:
        """See Lock. The file stays: if it were removed, two processes could lock two different files."""
        for fd in self._fds:
            os.close(fd)


def is_lock_held(path: str) -> bool:
    """Tell whether a process holds the lock of `SystemDisk.lock(path)`. Makes no file. Raises: OSError."""
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
        os.close(fd)  # also releases the lock
    return False


def _hold_if_large(path: str) -> int:
    """Open a large file, so that its blocks stay until the descriptor is closed; -1 for any other file."""
    try:
        if Path(path).lstat().st_size < _LARGE_BYTES:
            return -1
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return -1  # unlink reports what is wrong


def _close_in_thread(fd: int) -> None:
    try:
        threading.Thread(target=os.close, args=(fd,), daemon=True).start()
    except RuntimeError:  # no more threads can be started
        os.close(fd)


class SystemDisk:
    """The disk of this machine."""

    def make_dir(self, path: str) -> None:
        """See Disk. Syncs the parent of each directory that it makes."""
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
        """See Disk. Refuses pipes and devices: they have no end, and opening one may block forever."""
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

    def link(self, old: str, new: str) -> None:
        """See Disk. Copies the file where the file system has no links."""
        try:
            os.link(old, new)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            shutil.copyfile(old, new)
            fd = os.open(new, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def remove(self, path: str) -> None:
        """See Disk. Another thread frees the blocks of a large file."""
        held = _hold_if_large(path)
        try:
            Path(path).unlink()
        finally:
            if held >= 0:
                _close_in_thread(held)

    def sync_dir(self, path: str) -> None:
        """See Disk."""
        fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> SystemLock | None:
        """See Disk. Locks the directory, because a lock file can be removed while it is locked.

        Locks the file too, for file systems that cannot lock directories.
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
