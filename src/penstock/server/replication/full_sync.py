"""Sends a snapshot to replicas: a forked child writes it, the event loop sends it.

    diskless     the child writes into a pipe, and the loop passes it on to all waiting replicas
    with a disk  the child writes a file, and then the loop sends that

A replica gets `+FULLRESYNC id offset` when the child is forked, and keeps getting an empty line every second
until its snapshot begins. The snapshot has the version that all its replicas can read: that of Redis 7.0,
unless they have announced more. Redis 8 announces no number. It gets the version that the data needs: without
the names of producers (IDMP) a Redis 8.6 would add their duplicates. An older one refuses that version. So
replicas that perhaps read newer versions never share a snapshot with those that do not: one kind waits until
the other has its snapshot.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.persist.disk import Disk, Source, reason
from penstock.persist.rdb.writer import version_needed
from penstock.persist.snapshot import write_rdb
from penstock.server.log import LOG
from penstock.server.replication.replicas import Replica, State
from penstock.server.saving.child import ChildSlot
from penstock.server.saving.snapshots import snapshot_options

if TYPE_CHECKING:
    from penstock.engine.execute import Engine
    from penstock.persist.snapshot import SnapshotOptions
    from penstock.server.replication.replication import Replication

TEMP_NAME = "temp-sync.rdb"
_PIECE_BYTES = 64 * 1024
_PIECES_AT_ONCE = 16
_UNSENT_BYTES_MAX = 1 << 20  # more is not read from the child before a replica has taken this
_LOOK_AGAIN_SECONDS = 0.01
_MARK_BYTES = 20  # as 40 hexadecimal digits


class FullSync:
    """One transfer at a time: remove_leftover, start_if_due, keep_alive, stop."""

    def __init__(self, replication: Replication) -> None:
        self._replication = replication
        self._server = replication.server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._targets: list[Replica] = []
        self._mark = b""
        self._pipe = -1  # what is being sent: the pipe, or the file
        self._file: Source | None = None
        self._next_pieces: asyncio.TimerHandle | None = None
        self._path = ""
        self._child_runs = False
        self._may_start = True
        self._failure: str | None = None
        self._is_read = False  # the source has ended
        self._sent_bytes = 0  # of the snapshot, to each target

    @property
    def _child(self) -> ChildSlot:
        assert self._server.durability is not None
        return self._server.durability.child

    @property
    def _disk(self) -> Disk:
        assert self._server.durability is not None
        return self._server.durability.store.disk

    def remove_leftover(self) -> None:
        """Remove the file of a process that was killed."""
        with suppress(OSError):
            self._disk.remove(self._new_path())

    def _new_path(self) -> str:
        return f"{self._replication.setting('dir')}/{TEMP_NAME}"

    # --- Starting ----------------------------------------------------------------------------------

    def keep_alive(self) -> None:
        """Every second: an empty line to replicas whose snapshot has not begun, and who takes the snapshot.

        All targets wait for the slowest one. So a target with nothing left to take is alive, and one that has
        taken nothing of its bytes since the last time is not: it is cut off after repl-timeout.
        """
        for replica in self._waiting():
            replica.write(b"\n")
        for replica in self._alive():
            if self._child_runs and not self._mark:  # the child still writes the file
                replica.write(b"\n")
            elif not self._has_progress(replica):
                continue
            replica.acked_ms = self._server.steady_ms()

    def _has_progress(self, replica: Replica) -> bool:
        link = replica.session.link
        unsent = 0 if link is None else link.unsent_bytes()
        before, replica.taken_bytes = replica.taken_bytes, self._sent_bytes - unsent
        return unsent == 0 or replica.taken_bytes > before

    def _waiting(self) -> list[Replica]:
        return [one for one in self._replication.replicas.all() if one.state is State.WAIT]

    def start_if_due(self) -> None:
        """Begin a transfer if replicas wait for one and nothing is in its way."""
        durability = self._server.durability
        waiting = self._waiting()
        if not self._may_start or not waiting or self._targets:
            return
        if durability is None or durability.child.is_busy:
            return
        if not self._server.engine.context.may_block:
            return  # within a transaction
        first = min(waiting, key=lambda one: one.since_ms)
        waiting = [one for one in waiting if one.reads_newer == first.reads_newer]
        setting = self._replication.setting
        is_marked = setting("repl-diskless-sync") and all(one.can_take_marked for one in waiting)
        waited_ms = self._server.steady_ms() - first.since_ms
        if is_marked and waited_ms < setting("repl-diskless-sync-delay") * 1000:
            return
        try:
            self._start(waiting, is_marked)
        except OSError as error:
            LOG.error("cannot start a snapshot for a replica: %s", reason(error))
            for replica in waiting:
                replica.session.kill()

    def _start(self, waiting: list[Replica], is_marked: bool) -> None:
        """Fork the child at this moment of the stream. Raises: OSError."""
        replication = self._replication
        feed = replication.feed
        feed.hand_over()
        feed.select_again()
        self._loop = asyncio.get_running_loop()
        version = min(one.rdb_version for one in waiting)
        version = min(version, self._server.engine.context.compat.rdb_version)
        assert self._server.config is not None
        options = replace(snapshot_options(self._server.config), rdb_version=version)
        reads_newer = waiting[0].reads_newer
        child = self._child
        engine = self._server.engine
        self._is_read = False
        self._failure = None
        self._sent_bytes = 0
        if is_marked:
            self._pipe, sink = os.pipe()
            try:
                child.start(
                    lambda: _write(_Sink(sink).write, engine, options, reads_newer),
                    self._on_child_end,
                    keep=sink,
                )
            except OSError:
                self._close_pipe()
                raise
            finally:
                os.close(sink)
            os.set_blocking(self._pipe, False)
            self._loop.add_reader(self._pipe, self._pump_pipe)
        else:
            self._path = self._new_path()
            disk, path = self._disk, self._path
            child.start(
                lambda: _write_file(disk, path, engine, options, reads_newer), self._on_child_end
            )
        self._child_runs = True
        self._mark = secrets.token_hex(_MARK_BYTES).encode() if is_marked else b""
        self._targets = waiting
        history = feed.history
        replication.counts.full += 1
        for replica in waiting:
            replica.write(b"+FULLRESYNC %s %d\r\n" % (history.id.encode(), history.offset))
            replica.enter(State.TRANSFER)
            replica.taken_bytes = 0
            replica.acked_ms = self._server.steady_ms()
            if is_marked:
                replica.write(b"$EOF:%s\r\n" % self._mark)
            LOG.info(
                "replica %s:%d gets a snapshot as of offset %d", *replica.address, history.offset
            )

    # --- Sending -----------------------------------------------------------------------------------

    def _alive(self) -> list[Replica]:
        return [one for one in self._targets if one.session.link is not None]

    def _is_slow(self) -> bool:
        return any(
            one.session.link is not None and one.session.link.unsent_bytes() > _UNSENT_BYTES_MAX
            for one in self._targets
        )

    def _pump_pipe(self) -> None:
        """The child has written: pass it on. Stop reading while a replica is slow."""
        assert self._loop is not None
        if self._is_slow():
            self._loop.remove_reader(self._pipe)
            self._loop.call_later(_LOOK_AGAIN_SECONDS, self._resume_pipe)
            return
        try:
            piece = os.read(self._pipe, _PIECE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._failure = reason(error)
            piece = b""
        if not piece:
            self._close_pipe()
            self._is_read = True
            self._finish_if_done()
            return
        self._send(piece)
        if not self._alive():
            self._child.kill(self._on_child_end)

    def _resume_pipe(self) -> None:
        if self._pipe >= 0 and self._loop is not None:
            self._loop.add_reader(self._pipe, self._pump_pipe)

    def _send_file(self) -> None:
        """Send the next pieces of the file, until a replica is slow."""
        assert self._loop is not None
        assert self._file is not None
        buffer = bytearray(_PIECE_BYTES)
        for _ in range(_PIECES_AT_ONCE):
            if self._is_slow():
                break
            try:
                piece = bytes(buffer[: self._file.readinto(memoryview(buffer)) or 0])
            except OSError as error:
                self._failure = reason(error)
                piece = b""
            if not piece or not self._alive():
                self._close_file()
                return
            self._send(piece)
        seconds = _LOOK_AGAIN_SECONDS if self._is_slow() else 0
        self._next_pieces = self._loop.call_later(seconds, self._send_file)

    def _close_file(self) -> None:
        assert self._file is not None
        if self._next_pieces is not None:
            self._next_pieces.cancel()
            self._next_pieces = None
        self._file.close()
        self._file = None
        self._is_read = True
        self._finish_if_done()

    def _send(self, piece: bytes) -> None:
        self._sent_bytes += len(piece)
        for replica in self._alive():
            replica.write(piece)

    # --- Finishing ---------------------------------------------------------------------------------

    def _on_child_end(self, failure: str | None) -> None:
        self._child_runs = False
        self._failure = failure or self._failure
        if self._mark or failure is not None:
            if failure is not None and self._pipe >= 0:
                self._close_pipe()
                self._is_read = True
            self._is_read = self._is_read or failure is not None
            self._finish_if_done()
            return
        try:
            size = self._disk.size(self._path)
            self._file = self._disk.read(self._path)
        except OSError as error:
            self._failure = reason(error)
            self._is_read = True
            self._finish_if_done()
            return
        for replica in self._alive():
            replica.write(b"$%d\r\n" % size)
        self._send_file()

    def _finish_if_done(self) -> None:
        if self._child_runs or not self._is_read:
            return
        if self._path:
            with suppress(OSError):
                self._disk.remove(self._path)
            self._path = ""
        targets, self._targets = self._targets, []
        for replica in targets:
            if replica.session.link is None:
                continue
            if self._failure is not None:
                LOG.error(
                    "the snapshot for replica %s:%d failed: %s", *replica.address, self._failure
                )
                replica.session.kill()
            elif self._mark:
                replica.write(self._mark)
                replica.enter(State.SETTLE)
            else:
                replica.enter(State.ONLINE)
        self.start_if_due()

    def _close_pipe(self) -> None:
        assert self._loop is not None
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
        self._pipe = -1

    def stop(self) -> None:
        """The server stops, or its data changes: end the current transfer, and start no other now."""
        self._may_start = False
        if self._child_runs:
            self._child.kill(self._on_child_end)
        elif self._file is not None:
            self._failure = "it was stopped"
            self._close_file()
        self._may_start = True


class _Sink:
    """In the child: writes all bytes to the pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


def _write_file(
    disk: Disk, path: str, engine: Engine, options: SnapshotOptions, reads_newer: bool
) -> None:
    """In the child: write the snapshot to a file. Nobody needs it after a crash, so it is not synced."""
    file = disk.create(path)
    _write(file.write, engine, options, reads_newer)
    file.close()


def _write(
    write: Callable[[bytes], object], engine: Engine, options: SnapshotOptions, reads_newer: bool
) -> None:
    """In the child: write the snapshot, in the version that the data needs if that can be read."""
    context = engine.context
    if reads_newer:
        assert options.rdb_version is not None
        needed = min(version_needed(context.databases), context.compat.rdb_version)
        options = replace(options, rdb_version=max(options.rdb_version, needed))
    write_rdb(write, engine, options, is_base=False)
