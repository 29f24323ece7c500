"""Servers whose replies a test writes: nodes of a cluster in any state."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable
from io import BufferedIOBase
from pathlib import Path
from types import TracebackType
from typing import Any

Command = list[bytes]
Answer = Callable[[Command], bytes]


class Node:
    """Replies to each command with what `answer` returns. If that is empty, the connection ends."""

    def __init__(self, path: Path | None = None) -> None:
        """`path`: of a Unix socket; without it a port of this machine."""
        self.answer: Answer = lambda _: b"+OK\r\n"
        self.commands: list[Command] = []
        node = self

        class Connection(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while (command := _read_or_none(self.rfile)) is not None:
                    node.commands.append(command)
                    reply = node.answer(command)
                    if not reply:
                        return
                    self.wfile.write(reply)

        self.port = 0
        if path is None:
            self._server: Any = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection)
            self.port = self._server.server_address[1]
        else:
            self._server = socketserver.ThreadingUnixStreamServer(str(path), Connection)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Node:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def names(self) -> list[bytes]:
        """The first word of each command."""
        return [command[0] for command in self.commands]


def _read_or_none(stream: BufferedIOBase) -> Command | None:
    """The next command, or None at the end."""
    head = stream.readline()
    if not head:
        return None
    words = []
    for _ in range(int(head[1:])):
        size = int(stream.readline()[1:])
        words.append(stream.read(size))
        stream.read(2)
    return words


def slots_of(*ranges: tuple[int, int, str, int]) -> bytes:
    """The reply to CLUSTER SLOTS: first, last, host, port of each range."""
    parts = [b"*%d\r\n" % len(ranges)]
    for first, last, host, port in ranges:
        node = b"*3\r\n$%d\r\n%b\r\n:%d\r\n$2\r\nid\r\n" % (len(host), host.encode(), port)
        parts.append(b"*3\r\n:%d\r\n:%d\r\n" % (first, last) + node)
    return b"".join(parts)
