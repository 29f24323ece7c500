"""The longest stop of a server: a process that sends PING without a pause, and notes the slowest answer.

Two figures for each answer: the time until it came, and the CPU time that the server's main thread spent
meanwhile (`/proc/PID/schedstat`). On a busy machine the first includes the time in which the server was not
running at all; the second does not. A server that answers with an error, such as LOADING, stands still until
it answers PONG.
"""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

_DONE = "done"
_FORGET = "forget"
_TELL = "tell"


@dataclass(frozen=True, slots=True)
class Stop:
    """The slowest answer in milliseconds, and the most CPU time between a PING and its answer."""

    wall_ms: float
    cpu_ms: float


class Pings:
    """A process that sends PING until the end. Call forget before the work and longest after it."""

    def __init__(self, line: Connection) -> None:
        self._line = line

    def forget(self) -> None:
        self._ask(_FORGET)

    def longest(self) -> Stop:
        found = self._ask(_TELL)
        assert isinstance(found, Stop)
        return found

    def _ask(self, word: str) -> object:
        self._line.send(word)
        return self._line.recv()


@contextmanager
def pinging(port: int, pid: int) -> Iterator[Pings]:
    """Send PING to a server from another process."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_ping, args=(port, pid, theirs))
    process.start()
    try:
        pings = Pings(ours)
        pings.forget()
        yield pings
    finally:
        ours.send(_DONE)
        process.join()


def _ping(port: int, pid: int, line: Connection) -> None:
    longest = most = 0.0
    with (
        Path(f"/proc/{pid}/schedstat").open("rb", buffering=0) as schedstat,
        socket.create_connection(("127.0.0.1", port)) as connection,
    ):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def cpu_ns() -> int:
            schedstat.seek(0)
            return int(schedstat.read(64).split()[0])

        used = cpu_ns()
        while True:
            start = time.perf_counter()
            while not _is_pong(connection):
                pass
            longest = max(longest, time.perf_counter() - start)
            used, before = cpu_ns(), used
            most = max(most, (used - before) / 1e9)
            if line.poll():
                word = line.recv()
                if word == _DONE:
                    return
                line.send(Stop(longest * 1000, most * 1000))
                longest = most = 0.0


def _is_pong(connection: socket.socket) -> bool:
    """Send PING; False if the answer is an error."""
    connection.sendall(b"PING\r\n")
    answer = b""
    while not answer.endswith(b"\r\n"):
        piece = connection.recv(256)
        assert piece, "the server has closed the connection"
        answer += piece
    return answer == b"+PONG\r\n"
